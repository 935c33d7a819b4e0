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

// Bounds (invariant 8).
const (
	// ClaimsMax bounds the accounts with a claim. One is over once its promotion has ended without effect, or the former
	// primary knows of it: then the claiming location withdraws it.
	ClaimsMax = 100_000
	// WithdrawnMax bounds the accounts whose claim was withdrawn, and that are remembered; the oldest are forgotten first.
	WithdrawnMax = 1000
)

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
	// All: withdrawals above the version that the question named were forgotten. Claims are all that there are: others that
	// the sender knows of were withdrawn.
	All bool `json:"all,omitempty"`
	// Position is the newest version of all claims. A sender that knows another incarnation asks again from 0.
	Position
}

// Position is how far a caller knows what a witness has counted: claims and withdrawals up to a version, in the life of one
// process, its incarnation. A witness whose file was restored has another one.
type Position struct {
	Version     uint64 `json:"version"`
	Incarnation string `json:"incarnation"`
}

// Errors of a claim.
var (
	// ErrPassed: the account has a claim of a higher epoch (of two with one number the location decides, as everywhere); or
	// that claim, or a later one, was withdrawn.
	ErrPassed = errors.New("witness: the account is claimed in a higher epoch")
	// ErrLate: the call may have been sent before something that was forgotten since. It may be sent again, from where the
	// witness is now.
	ErrLate = errors.New("witness: the call is late")
	// ErrFull: there are ClaimsMax claims.
	ErrFull = errors.New("witness: too many accounts have claims")
	// ErrLocation: a location that this witness does not serve.
	ErrLocation = errors.New("witness: not a location of this witness")
)

// Options configures a Witness. All fields but FS, Life and Observer are required.
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
	// Name is the incarnation: no two processes have the same.
	Name string
	// Observer nil counts nothing.
	Observer Observer
}

// Witness keeps leases and claims. Methods may be called concurrently.
type Witness struct {
	o Options

	mu     sync.Mutex
	kept   file
	leases map[geo.Location]time.Duration // until when they may be held
	// over is when the leases are over that were granted before the claim of an account.
	over map[geo.Account]time.Duration
	// began is when the process did, and before when the leases of an earlier one are over.
	began, before time.Duration
	// forgotten is the newest version of a withdrawal that is not remembered any more. One of an earlier process has no
	// meaning: what was sent to that is late.
	forgotten uint64
}

// file is what a witness keeps on disk, in JSON.
type file struct {
	Format  int    `json:"v"`
	Version uint64 `json:"version"`
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
)

// Open opens the witness in a folder, which is made if it is missing.
func Open(o Options) (*Witness, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Life == 0 {
		o.Life = 10 * time.Second
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	w := &Witness{o: o, leases: map[geo.Location]time.Duration{}, over: map[geo.Account]time.Duration{}}
	if err := durable.MkdirAll(o.FS, o.Dir); err != nil {
		return nil, err
	}
	b, err := durable.Read(o.FS, o.FS.PathJoin(o.Dir, fileName))
	if err != nil {
		return nil, err
	}
	w.kept = file{Format: format, Claims: map[geo.Account]Claim{}, Withdrawn: map[geo.Account]uint64{}}
	if b != nil {
		if err := json.Unmarshal(b, &w.kept); err != nil {
			return nil, fmt.Errorf("%s: %w: a witness without its claims must not answer: restore the file, or have both locations confirmed first", fileName, err)
		}
		if w.kept.Format != format {
			return nil, fmt.Errorf("%s has format version %d, this program knows %d: start the version that wrote it", fileName, w.kept.Format, format)
		}
	}
	if w.kept.Ended == nil { // Of an older program.
		w.kept.Ended = map[geo.Account]geo.Epoch{}
	}
	w.forget()
	w.began = o.Clock.Mono()
	w.before = w.began + max(w.kept.Life, o.Life)
	w.kept.Life = max(w.kept.Life, o.Life)
	return w, w.write()
}

// write makes what is kept durable. The caller holds mu, or nobody else has w.
func (w *Witness) write() error {
	b, err := json.Marshal(w.kept)
	if err != nil {
		return err
	}
	if err = durable.Replace(w.o.FS, w.o.Dir, fileName, b); err != nil {
		w.o.Observer.Failed()
	}
	return err
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
	g := Grant{Life: w.o.Life, Position: w.position(), All: after < w.forgotten}
	for _, name := range slices.Sorted(maps.Keys(w.kept.Claims)) {
		if c := w.kept.Claims[name]; (c.Version > after || g.All) && !plantedbugs.Planted(plantedbugs.ClaimsUnlisted) {
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

func (w *Witness) position() Position { return Position{w.kept.Version, w.o.Name} }

// Position returns how far the witness has counted.
func (w *Witness) Position() Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.position()
}

// Claim registers claims of one location and returns for how long leases that were granted before may be held. The same
// claims again return what is left. Either all are registered, or none. sent is a Position that the sender knew before it sent
// the call. ErrLate: a claim of then may have been withdrawn since, and that forgotten.
func (w *Witness) Claim(claims []Claim, sent Position) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent.Incarnation != w.o.Name || sent.Version < w.forgotten {
		return 0, ErrLate
	}
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
	if len(w.kept.Claims)+fresh > ClaimsMax {
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
			delete(w.kept.Ended, c.Account) // That is of a lower epoch.
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

// Withdraw takes back the claim of an account that is over: its epoch can never begin any more, since the claiming location
// has refused it for ever (R19), or the former primary knows of it. A claim of another epoch stays. One that is still on its way is refused when it
// comes; one that is not here any more may have been listed, where it was never durable, and is listed as withdrawn.
func (w *Witness) Withdraw(a geo.Account, e geo.Epoch) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, claimed := w.kept.Claims[a]
	switch {
	case claimed && c.Epoch() == e:
		delete(w.kept.Claims, a)
		delete(w.over, a)
		claimed = false
	case w.kept.Ended[a].Compare(e) >= 0:
		return w.write() // Another call may have withdrawn it, and it may not be durable yet.
	}
	if !claimed {
		w.kept.Version++
		w.kept.Withdrawn[a] = w.kept.Version
	}
	if w.kept.Ended[a].Compare(e) < 0 {
		w.kept.Ended[a] = e
	}
	w.forget()
	return w.write()
}

// forget forgets the oldest withdrawals, down to their bound. The caller holds mu, or nobody else has w.
func (w *Witness) forget() {
	for len(w.kept.Withdrawn) > WithdrawnMax {
		oldest, at := geo.Account(""), ^uint64(0)
		for a, v := range w.kept.Withdrawn {
			if v < at {
				oldest, at = a, v
			}
		}
		delete(w.kept.Withdrawn, oldest)
		delete(w.kept.Ended, oldest)
		w.forgotten = max(w.forgotten, at)
	}
}
