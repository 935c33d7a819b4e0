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

// Again decides whether a step that failed with a Passing error is tried again: nil tries again,
// an error ends the creation. step names the step for people.
type Again func(ctx context.Context, step string, err error) error

// once is an Again that never tries again.
func once(_ context.Context, _ string, err error) error { return err }

// Passing reports whether a step that failed with err may succeed later: too few replicas, or not
// the other location, answer. The outcome may be unknown; all steps of a creation are
// idempotent.
func Passing(err error) bool {
	if row, ours := storageerr.Of(err); ours {
		return row.Code == storageerr.ServerBusy.Code || row.Code == storageerr.OperationTimedOut.Code
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ranges.ErrNotLeader)
}

// try runs a step until it succeeds, fails with another error than Passing, or again gives up.
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

// Create makes an RA-GRS account whose primary is this location. Missing keys are random. Errors:
// AccountAlreadyExists, also while the other location creates the name; ServerBusy if the other
// location cannot reserve the name. A second call continues from there, with the keys of the first
// call except those given to the second.
func (d *Directory) Create(ctx context.Context, name geo.Account, key1, key2 []byte) (*catalog.Account, error) {
	return d.create(ctx, name, keyPair{key1, key2}, once)
}

// Ensure returns the account if either location has it, and makes it as Create does otherwise. It
// returns AccountAlreadyExists, naming the keys, if the account does not have the given keys.
// again decides about each step that fails with a Passing error, so that finished steps are not
// repeated; nil tries each step once.
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
	b := &begin{given: given, life: d.life, want: catalog.Account{
		Name: name, Key1: all[0], Key2: all[1], Redundancy: catalog.RAGRS, Primary: d.stamp.Location(), Secondary: d.other,
	}}
	for n := 1; ; n++ {
		a, err := d.attempt(ctx, b, again)
		var passed *PassedError
		switch {
		case errors.As(err, &passed):
			b.above = later(b.above, passed.Seen)
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
func (d *Directory) attempt(ctx context.Context, b *begin, again Again) (*catalog.Account, error) {
	name := b.want.Name
	step := func(what string, f func() error) error {
		return try(ctx, again, fmt.Sprintf("account %s: %s", name, what), f)
	}
	submit := func(cmd ranges.Command) func() error {
		return func() error { return d.stamp.Submit(ctx, geo.FirstRange(geo.Catalog), cmd) }
	}
	if err := step("its record in the catalog", submit(b)); err != nil {
		return nil, err
	}
	a := b.stored
	if err := step("its reservation at "+string(d.other), func() error { return d.reserve(ctx, a) }); err != nil {
		return nil, err
	}
	gate := change.Gate{Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: true, Numbered: true}
	if err := setGates(ctx, d.stamp, name, gate, again); err != nil {
		return nil, err
	}
	done := &activate{creation: a, given: b.given}
	if err := step("its completion in the catalog", submit(done)); err != nil {
		return nil, err
	}
	return &done.stored, nil
}

// reserve reserves an account at the other location.
func (d *Directory) reserve(ctx context.Context, a catalog.Account) error {
	err := d.peer.Reserve(ctx, a)
	var passed *PassedError
	if errors.As(err, &passed) {
		return err
	}
	if _, ours := storageerr.Of(err); ours || err == nil {
		return err
	}
	return storageerr.ServerBusy.Saying(fmt.Sprintf("account %s cannot be reserved at %s (%v); try again", a.Name, d.other, err))
}

// keyPair are the keys that a caller chose. An empty key means any.
type keyPair [2][]byte

// drawn returns the pair with random keys in place of empty ones.
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

// over returns the pair with the keys of an account in place of empty ones.
func (k keyPair) over(a *catalog.Account) (key1, key2 []byte) {
	for i, stored := range [][]byte{a.Key1, a.Key2} {
		if len(k[i]) == 0 {
			k[i] = stored
		}
	}
	return k[0], k[1]
}

// missing names the keys of the pair that an account does not accept; "" if it accepts both.
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

// check returns an error that names the keys of the pair that an account does not accept.
func (k keyPair) check(a *catalog.Account) error {
	missing := k.missing(a)
	if missing == "" {
		return nil
	}
	return storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
		"account %s exists and does not take the given %s; antipodectl account keys %s shows those that it takes", a.Name, missing, a.Name))
}
