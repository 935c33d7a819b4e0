package directory

import (
	"context"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// Incomplete lists the records of this location by name that are no accounts: creations that have
// not ended, and reservations for those of the other location.
func (d *Directory) Incomplete(ctx context.Context) ([]*catalog.Account, error) {
	return d.List(ctx, func(a *catalog.Account) bool { return !a.Active })
}

// Free gives up the incomplete record of a name at this location, and returns it; nil if there is
// none. AccountAlreadyExists: the account is complete.
//
// A creation whose own record is freed never completes. One whose reservation alone is freed may
// still complete, and then the account is here, too. The highest epoch of the name stays, so that
// late calls of the freed creation change nothing (R8). So do the gates: they let nothing through
// while there is no account, and those of the next creation replace them. A gate that was raised
// here instead might be above the epoch of a creation that completes at the other location.
func (d *Directory) Free(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	cmd := &free{name: name}
	if err := d.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	if a := cmd.found; a != nil && a.Active {
		return nil, storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
			"account %s is complete, its primary is %s: only a name whose creation has not ended can be freed", name, a.Primary))
	}
	return cmd.found, nil
}

type free struct {
	name geo.Account
	// found is the record that was there, nil for none: freed unless it is complete.
	found *catalog.Account
}

// Evaluate implements ranges.Command.
func (c *free) Evaluate(tx *ranges.Tx) error {
	have, err := record.Look(tx, c.name)
	if err != nil {
		return err
	}
	if c.found = have.Account; c.found == nil || c.found.Active {
		return nil
	}
	p := catalog.AccountPartition(c.name)
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Delete: true}}})
}

// kindFree is the kind of free. It is on the wire: never rename it.
const kindFree = "directory.free"

// Kind implements ranges.Portable.
func (c *free) Kind() string { return kindFree }

// Encode implements ranges.Portable.
func (c *free) Encode() []byte { return []byte(c.name) }

func parseFree(b []byte) (*free, error) {
	c := &free{name: geo.Account(b)}
	if !c.name.Valid() {
		return nil, fmt.Errorf("%w: account %q", record.ErrCommand, c.name)
	}
	return c, nil
}

// EncodeResult implements ranges.Portable: the record that was there without its keys, nothing for
// none.
func (c *free) EncodeResult() []byte {
	if c.found == nil {
		return nil
	}
	a := *c.found
	a.Key1, a.Key2 = nil, nil
	b, err := a.Encode()
	if err != nil {
		return []byte{0} // Not the encoding of a record: the caller learns that the result is unknown.
	}
	return b
}

// DecodeResult implements ranges.Portable.
func (c *free) DecodeResult(b []byte) (err error) {
	if c.found = nil; len(b) > 0 {
		c.found, err = catalog.ParseAccount(b)
	}
	return err
}
