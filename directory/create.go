package directory

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// keyLen is the length of an account key in bytes (protocol/auth.md 4).
const keyLen = 64

// Again decides whether a step that failed in passing (see Passing) is tried again: nil
// tries it again, an error ends the creation. step names it for people.
type Again func(ctx context.Context, step string, err error) error

// once is the Again of a caller that tries everything once.
func once(_ context.Context, _ string, err error) error { return err }

// Passing reports whether err is one that the same step may not meet again: too few
// replicas, or the other location, answer. The outcome may be unknown, since all steps of
// a creation are idempotent.
func Passing(err error) bool {
	if row, ours := storageerr.Of(err); ours {
		return row.Code == storageerr.ServerBusy.Code || row.Code == storageerr.OperationTimedOut.Code
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ranges.ErrNotLeader)
}

// try runs a step until it succeeds, fails for good, or again gives up.
func try(ctx context.Context, again Again, step string, f func() error) error {
	for {
		err := f()
		if err == nil || !Passing(err) {
			return err
		}
		if err := again(ctx, step, err); err != nil {
			return err
		}
	}
}

// Create makes an RA-GRS account whose primary is this location. Absent keys are
// drawn. Errors: AccountAlreadyExists; ServerBusy where the other location cannot
// reserve the name, and a second call then goes on from there: with the keys of the
// first, except those that it is given itself.
func (d *Directory) Create(ctx context.Context, name geo.Account, key1, key2 []byte) (*catalog.Account, error) {
	return d.create(ctx, name, keyPair{key1, key2}, once)
}

// Ensure makes an account as Create does, or finds it, whichever location is its primary.
// The keys given work: AccountAlreadyExists where the account has others, and the message
// names which. Steps that fail in passing are left to again, each by itself, so that what
// is done stays done; nil tries each once.
func (d *Directory) Ensure(ctx context.Context, name geo.Account, key1, key2 []byte, again Again) (*catalog.Account, error) {
	if again == nil {
		again = once
	}
	given := keyPair{key1, key2}
	var found *catalog.Account
	err := try(ctx, again, fmt.Sprintf("account %s: the catalog", name), func() (err error) {
		found, err = d.Account(ctx, name)
		return err
	})
	switch {
	case err == nil:
		return found, given.check(found)
	case !errors.Is(err, storageerr.AccountNotFound):
		return nil, err
	}
	return d.create(ctx, name, given, again)
}

func (d *Directory) create(ctx context.Context, name geo.Account, given keyPair, again Again) (*catalog.Account, error) {
	if !name.Valid() {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf("%q is no account name: 3 to 24 lower-case letters and digits", name))
	}
	all, err := given.drawn()
	if err != nil {
		return nil, err
	}
	put := &putAccount{given: given, want: catalog.Account{
		Name: name, Key1: all[0], Key2: all[1], Redundancy: catalog.RAGRS, Primary: d.stamp.Location(), Secondary: d.other, Epoch: 1,
	}}
	step := func(what string, f func() error) error {
		return try(ctx, again, fmt.Sprintf("account %s: %s", name, what), f)
	}
	if err := step("its record in the catalog", func() error { return d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), put) }); err != nil {
		return nil, err
	}
	a := put.stored
	if err := step("its reservation at "+string(d.other), func() error { return d.reserve(ctx, a) }); err != nil {
		return nil, err
	}
	gate := change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true}
	if err := setGates(ctx, d.stamp, name, gate, again); err != nil {
		return nil, err
	}
	done := &activate{name: name, given: given}
	if err := step("its completion in the catalog", func() error { return d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), done) }); err != nil {
		return nil, err
	}
	return &done.stored, nil
}

// reserve has the other location reserve an account.
func (d *Directory) reserve(ctx context.Context, a catalog.Account) error {
	err := d.peer.Reserve(ctx, a)
	if _, ours := storageerr.Of(err); ours || err == nil {
		return err
	}
	return storageerr.ServerBusy.Saying(fmt.Sprintf("account %s cannot be reserved at %s (%v); try again", a.Name, d.other, err))
}

// keyPair are the keys that a caller names; an empty one is left to the account.
type keyPair [2][]byte

// drawn is the pair with random keys in place of empty ones.
func (k keyPair) drawn() (keyPair, error) {
	for i := range k {
		if len(k[i]) == 0 {
			k[i] = make([]byte, keyLen)
			if _, err := rand.Read(k[i]); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// over is the pair with the keys of an account in place of empty ones.
func (k keyPair) over(a *catalog.Account) (key1, key2 []byte) {
	for i, stored := range [][]byte{a.Key1, a.Key2} {
		if len(k[i]) == 0 {
			k[i] = stored
		}
	}
	return k[0], k[1]
}

// missing names the keys of the pair that an account does not take; empty where it takes
// all of them.
func (k keyPair) missing(a *catalog.Account) string {
	taken := func(key []byte) bool {
		return len(key) == 0 || bytes.Equal(key, a.Key1) || bytes.Equal(key, a.Key2)
	}
	switch first, second := taken(k[0]), taken(k[1]) || bytes.Equal(k[0], k[1]); {
	case first && second:
		return ""
	case first:
		return "key2"
	case second:
		return "key1"
	}
	return "key1 and key2"
}

// check returns an error that names the keys of the pair that an account does not take.
func (k keyPair) check(a *catalog.Account) error {
	missing := k.missing(a)
	if missing == "" {
		return nil
	}
	return storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
		"account %s exists and does not take the given %s; antipodectl account keys %s shows those that it takes", a.Name, missing, a.Name))
}
