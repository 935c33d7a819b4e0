package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// Wanted is what an account is to have. Its zero values leave the choice to the directory.
type Wanted struct {
	Name geo.Account
	// Key1 and Key2 are random where they are empty.
	Key1, Key2 []byte
	// Redundancy is RA-GRS where it is empty.
	Redundancy catalog.Redundancy
}

// CheckKeys returns InvalidInput for a key below 16 bytes, which could be guessed. CreateAs leaves that to its caller, who
// knows whether a person chose the keys.
func (w Wanted) CheckKeys() error {
	for i, key := range [...][]byte{w.Key1, w.Key2} {
		if n := len(key); n > 0 && n < keyLenMin {
			return storageerr.InvalidInput.Saying(fmt.Sprintf("key%d has %d bytes: a key has %d at least, and best %d that are random", i+1, n, keyLenMin, keyLen))
		}
	}
	return nil
}

func (w Wanted) given() given { return given{keyPair{w.Key1, w.Key2}, w.Redundancy} }

// Create makes an RA-GRS account: see CreateAs.
func (d *Directory) Create(ctx context.Context, name geo.Account, key1, key2 []byte) (*catalog.Account, error) {
	return d.CreateAs(ctx, Wanted{Name: name, Key1: key1, Key2: key2, Redundancy: catalog.RAGRS})
}

// CreateAs makes an account whose primary is this location. Errors: AccountAlreadyExists, also while the
// other location creates the name; ServerBusy if the other location cannot reserve the name, which
// it does for every redundancy. A second call continues from there, with the choices of the first
// call except those that the second makes.
func (d *Directory) CreateAs(ctx context.Context, w Wanted) (*catalog.Account, error) {
	return d.create(ctx, w.Name, w.given(), record.Once)
}

// Ensure is EnsureAs for an account of any redundancy, which is RA-GRS if it is made.
func (d *Directory) Ensure(ctx context.Context, name geo.Account, key1, key2 []byte, again record.Again) (*catalog.Account, error) {
	return d.EnsureAs(ctx, Wanted{Name: name, Key1: key1, Key2: key2}, again)
}

// EnsureAs returns the account if either location has it, and makes it as CreateAs does otherwise, with keys that pass
// CheckKeys. It
// returns AccountAlreadyExists, naming what differs, if the account does not have the given keys and
// redundancy. again decides about each step that fails with a Passing error, so that finished steps
// are not repeated; nil tries each step once.
func (d *Directory) EnsureAs(ctx context.Context, w Wanted, again record.Again) (*catalog.Account, error) {
	if again == nil {
		again = record.Once
	}
	var found *catalog.Account
	err := record.Try(ctx, again, fmt.Sprintf("account %s: the catalog", w.Name), func() (err error) {
		found, err = d.Account(ctx, w.Name)
		return err
	})
	switch {
	case err == nil:
		return found, w.given().check(found)
	case !errors.Is(err, storageerr.AccountNotFound):
		return nil, err
	}
	if err := w.CheckKeys(); err != nil {
		return nil, err
	}
	return d.create(ctx, w.Name, w.given(), again)
}

func (d *Directory) create(ctx context.Context, name geo.Account, given given, again record.Again) (*catalog.Account, error) {
	if !name.Valid() {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf("%q is no account name: 3 to 24 lower-case letters and digits", name))
	}
	all, err := given.drawn()
	if err != nil {
		return nil, err
	}
	b := &begin{given: given, life: d.life, other: d.other, want: catalog.Account{Name: name, Key1: all[0], Key2: all[1], Primary: d.stamp.Location()}}
	b.want.SetRedundancy(cmp.Or(given.redundancy, catalog.RAGRS), d.other)
	for n := 1; ; n++ {
		a, err := d.attempt(ctx, b, again)
		var passed *record.PassedError
		switch {
		case errors.As(err, &passed):
			b.above = record.Later(b.above, passed.Seen)
		case !errors.Is(err, errReplaced):
			return a, err
		}
		if n%attemptsMax != 0 {
			continue
		}
		busy := storageerr.ServerBusy.Saying(fmt.Sprintf("account %s is being created at %s, too, or was freed; try again", name, d.other))
		if err := again(ctx, fmt.Sprintf("account %s: its epoch", name), busy); err != nil {
			return nil, err
		}
	}
}

// attemptsMax is how often a creation begins again above the epochs of others, before its caller
// is asked to wait.
const attemptsMax = 4

// attempt goes through the steps of a creation once. errReplaced and PassedError: it may begin
// again.
//
// The steps keep two promises, whatever is lost, repeated or late between the locations. Epochs of
// incomplete records only rise at each location, and a location completes its own record alone.
//
//   - At most one location completes a name. A creation e of the north completes after the south
//     took its reservation, and one of the south, f, after the north did. Say e is below f. The
//     north took f either before it completed e, and then its record was no longer e, or after it,
//     and then it refused.
//   - No gate is above the epoch of the complete account, so that its records are taken. Gates of
//     f are set where f was reserved, and after that where it began.
func (d *Directory) attempt(ctx context.Context, b *begin, again record.Again) (*catalog.Account, error) {
	name := b.want.Name
	step := func(what string, f func() error) error {
		return record.Try(ctx, again, fmt.Sprintf("account %s: %s", name, what), f)
	}
	submit := func(cmd ranges.Command) func() error {
		return func() error { return d.stamp.Commit(ctx, cmd) }
	}
	if err := step("its record in the catalog", submit(b)); err != nil {
		return nil, err
	}
	a := b.stored
	if err := step("its reservation at "+string(d.other), func() error { return d.reserve(ctx, a) }); err != nil {
		return nil, err
	}
	if err := record.SetGates(ctx, d.stamp, name, record.PrimaryGate(&a), 0, again); err != nil {
		return nil, err
	}
	done := &activate{creation: a, given: b.given}
	if err := step("its completion in the catalog", submit(done)); err != nil {
		return nil, err
	}
	_ = d.resumeNow(ctx, &done.stored) // Resume follows.
	return &done.stored, nil
}

// reserve reserves an account at the other location.
func (d *Directory) reserve(ctx context.Context, a catalog.Account) error {
	err := d.peer.Reserve(ctx, a)
	var passed *record.PassedError
	if errors.As(err, &passed) {
		return err
	}
	if _, ours := storageerr.Of(err); ours || err == nil {
		return err
	}
	return storageerr.ServerBusy.Saying(fmt.Sprintf(
		"account %s cannot be reserved at %s (%v), so it is not made, and its name stays reserved: try again once that is mended, or give it up with antipodectl account free %[1]s --yes",
		a.Name, d.other, err))
}
