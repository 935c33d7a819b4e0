package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/plantedbugs"
	"antipode/stamp/durable"
)

// ClaimsMax bounds the accounts with a claim (invariant 8).
const ClaimsMax = 100_000

// Claim is the claim of a location to become the primary of an account in an epoch.
type Claim struct {
	Account  geo.Account     `json:"account"`
	Number   geo.EpochNumber `json:"number"`
	Location geo.Location    `json:"location"`
	// Version orders the claims: a renewal names the last one that its sender has.
	Version uint64 `json:"version"`
}

// Epoch is the claimed epoch.
func (c Claim) Epoch() geo.Epoch { return geo.Epoch{Number: c.Number, Location: c.Location} }

// Grant is the answer to a renewal.
type Grant struct {
	// Life is the time to live of the lease: see HoldPart.
	Life time.Duration `json:"life"`
	// Claims are those above the version that the question named, oldest first. The lease does not hold for their
	// accounts under lower epochs, nor for those of earlier answers.
	Claims []Claim `json:"claims"`
	// Withdrawn are the accounts whose claim was withdrawn, of those above that version.
	Withdrawn []geo.Account `json:"withdrawn,omitempty"`
	// Version is the newest of all claims; Incarnation names the file that counts them. A sender that knows another
	// incarnation asks again from 0.
	Version     uint64 `json:"version"`
	Incarnation string `json:"incarnation"`
}

// Errors of a claim.
var (
	// ErrPassed: the account has a claim of a higher epoch (of two with one number the location decides, as everywhere); or
	// that claim, or a later one, was withdrawn.
	ErrPassed = errors.New("witness: the account is claimed in a higher epoch")
	// ErrFull: there are ClaimsMax claims.
	ErrFull = errors.New("witness: too many accounts have claims")
	// ErrLocation: a location that this witness does not serve.
	ErrLocation = errors.New("witness: not a location of this witness")
)

// Options configures a Witness. All fields but FS and Life are required.
type Options struct {
	// FS nil means the file system of the machine.
	FS  vfs.FS
	Dir string
	// Locations are those that it serves.
	Locations []geo.Location
	// Life is how long a lease lives. Zero means 10 s. A short one makes promotions quick, and stops writes sooner when
	// the witness is away.
	Life  time.Duration
	Clock clock.Clock
	// Name is the incarnation of a file that Open makes.
	Name string
}

// Witness keeps leases and claims. Methods may be called concurrently.
type Witness struct {
	o Options

	mu     sync.Mutex
	kept   file
	leases map[geo.Location]time.Duration // until when they may be held
	// over is when the leases are over that were granted before the claim of an account.
	over map[geo.Account]time.Duration
	// before is when those of an earlier process are over.
	before time.Duration
}

// file is what a witness keeps on disk, in JSON.
type file struct {
	Format      int    `json:"v"`
	Incarnation string `json:"incarnation"`
	Version     uint64 `json:"version"`
	// Life is the longest that a lease was ever granted for.
	Life   time.Duration         `json:"life"`
	Claims map[geo.Account]Claim `json:"claims"`
	// Withdrawn are the versions at which claims were withdrawn.
	Withdrawn map[geo.Account]uint64 `json:"withdrawn"`
	// Ended are the greatest epochs whose claims were withdrawn, of accounts of Claims or Withdrawn: a claim that comes after
	// its withdrawal, over another connection, would keep the primary from its account for ever.
	Ended map[geo.Account]geo.Epoch `json:"ended,omitempty"`
}

const (
	fileName = "claims.json"
	format   = 1
	// versionsUnsaved is more than a process counts without a write that succeeds.
	versionsUnsaved = 1 << 32
)

// Open opens the witness in a folder, which is made if it is missing.
func Open(o Options) (*Witness, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Life == 0 {
		o.Life = 10 * time.Second
	}
	w := &Witness{o: o, leases: map[geo.Location]time.Duration{}, over: map[geo.Account]time.Duration{}}
	if err := durable.MkdirAll(o.FS, o.Dir); err != nil {
		return nil, err
	}
	b, err := durable.Read(o.FS, o.FS.PathJoin(o.Dir, fileName))
	if err != nil {
		return nil, err
	}
	w.kept = file{Format: format, Incarnation: o.Name, Claims: map[geo.Account]Claim{}, Withdrawn: map[geo.Account]uint64{}}
	if b != nil {
		if err := json.Unmarshal(b, &w.kept); err != nil {
			return nil, fmt.Errorf("%s: %w: a witness without its claims must not answer: restore the file, or have both locations confirmed first", fileName, err)
		}
		if w.kept.Format != format {
			return nil, fmt.Errorf("%s: unknown format version %d", fileName, w.kept.Format)
		}
		// The process before may have counted further than its disk says, where that took nothing: a location that knows a
		// version of then must get every claim that follows.
		w.kept.Version += versionsUnsaved
	}
	if w.kept.Ended == nil { // Of an older program.
		w.kept.Ended = map[geo.Account]geo.Epoch{}
	}
	w.before = o.Clock.Mono() + max(w.kept.Life, o.Life)
	w.kept.Life = max(w.kept.Life, o.Life)
	return w, w.write()
}

// write makes what is kept durable. The caller holds mu, or nobody else has w.
func (w *Witness) write() error {
	b, err := json.Marshal(w.kept)
	if err != nil {
		return err
	}
	return durable.Replace(w.o.FS, w.o.Dir, fileName, b)
}

// Renew grants a location a lease. after is the version of the last claim that the sender has.
func (w *Witness) Renew(l geo.Location, after uint64) (Grant, error) {
	if !slices.Contains(w.o.Locations, l) {
		return Grant{}, fmt.Errorf("%w: %s", ErrLocation, l)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The time is read after the question has come: the sender counts from before it was sent.
	w.leases[l] = max(w.leases[l], w.o.Clock.Mono()+w.o.Life)
	g := Grant{Life: w.o.Life, Version: w.kept.Version, Incarnation: w.kept.Incarnation}
	for _, name := range slices.Sorted(maps.Keys(w.kept.Claims)) {
		if c := w.kept.Claims[name]; c.Version > after && !plantedbugs.Planted(plantedbugs.ClaimsUnlisted) {
			g.Claims = append(g.Claims, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.kept.Withdrawn)) {
		if w.kept.Withdrawn[name] > after {
			g.Withdrawn = append(g.Withdrawn, name)
		}
	}
	return g, nil
}

// Claim registers claims of one location and returns for how long leases that were granted before may be held. The same
// claims again return what is left. Either all are registered, or none.
func (w *Witness) Claim(claims []Claim) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := 0
	for _, c := range claims {
		if !slices.Contains(w.o.Locations, c.Location) {
			return 0, fmt.Errorf("%w: %s", ErrLocation, c.Location)
		}
		have, ok := w.kept.Claims[c.Account]
		if cmp := have.Epoch().Compare(c.Epoch()); cmp > 0 {
			return 0, fmt.Errorf("%w: %s in epoch %s", ErrPassed, c.Account, have.Epoch())
		}
		if ended, known := w.kept.Ended[c.Account]; known && ended.Compare(c.Epoch()) >= 0 {
			return 0, fmt.Errorf("%w: %s in epoch %s, which was withdrawn", ErrPassed, c.Account, ended)
		}
		if !ok {
			fresh++
		}
	}
	if len(w.kept.Claims)+len(w.kept.Withdrawn)+fresh > ClaimsMax {
		return 0, ErrFull
	}
	now, wait := w.o.Clock.Mono(), time.Duration(0)
	for _, c := range claims {
		if have, ok := w.kept.Claims[c.Account]; !ok || have.Epoch() != c.Epoch() {
			w.kept.Version++
			c.Version = w.kept.Version
			// From here on no renewal holds for the account, whether the write below succeeds or not.
			w.kept.Claims[c.Account], w.over[c.Account] = c, w.leasesOver(c.Location)
			delete(w.kept.Withdrawn, c.Account)
		}
		until, known := w.over[c.Account]
		if !known { // The claim is older than this process.
			until = w.before
		}
		wait = max(wait, until-now)
	}
	// A claim that another call has registered may not be durable yet.
	return max(0, wait), w.write()
}

// leasesOver is when all leases that were granted until now to locations but one may no longer be held.
func (w *Witness) leasesOver(but geo.Location) time.Duration {
	over := w.before
	for l, until := range w.leases {
		if l != but {
			over = max(over, until)
		}
	}
	return over
}

// Withdraw takes back the claim of an account, whose epoch can never begin any more: the claiming location has refused it
// for ever (R19). A claim of another epoch stays. One that is still on its way is refused when it
// comes; one that is not here any more may have been listed, where it was never durable, and is listed as withdrawn.
func (w *Witness) Withdraw(a geo.Account, e geo.Epoch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, claimed := w.kept.Claims[a]
	_, known := w.kept.Withdrawn[a]
	switch {
	case claimed && c.Epoch() == e:
		delete(w.kept.Claims, a)
		delete(w.over, a)
		claimed = false
	case w.kept.Ended[a].Compare(e) >= 0:
		return w.write() // Another call may have withdrawn it, and it may not be durable yet.
	case !claimed && !known && len(w.kept.Claims)+len(w.kept.Withdrawn) >= ClaimsMax:
		return nil // It is refused as one too many.
	}
	if !claimed {
		w.kept.Version++
		w.kept.Withdrawn[a] = w.kept.Version
	}
	if w.kept.Ended[a].Compare(e) < 0 {
		w.kept.Ended[a] = e
	}
	return w.write()
}
