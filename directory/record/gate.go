package record

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// PrimaryGate is the gate of an account at its primary. Changes have numbers where they are copied
// to a secondary (R10). It is closed while the account moves to the other location (R19).
func PrimaryGate(a *catalog.Account) change.Gate {
	return change.Gate{
		Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: !a.Closed(), Numbered: a.Ships(), Turn: a.Turn, Agreed: a.Agreed(),
	}
}

// SecondaryGate is the gate of an account at the other location: closed where it is no secondary.
func SecondaryGate(a *catalog.Account) change.Gate {
	if !a.Redundancy.Geo() {
		return change.Gate{Epoch: a.GeoEpoch()}
	}
	return change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}
}

// SetGates commits the gate of an account in every range of a location but the catalog, whose gate
// changes with the record of the account (R7). Behind it every range commits above after. It returns a
// PassedError if a range has the gate of a higher epoch.
func SetGates(ctx context.Context, s Stamp, a geo.Account, g change.Gate, after geo.Timestamp, again Again) error {
	for _, r := range s.Route().Data(a) {
		set := &SetGate{Account: a, Gate: g, After: after}
		step := fmt.Sprintf("account %s: its gate in the %s range", a, r.Service)
		err := Try(ctx, again, step, func() error { return s.Submit(ctx, r.ID, set) })
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if set.Found.Compare(g.Epoch) > 0 {
			return &PassedError{Seen: set.Found}
		}
	}
	return nil
}

// SetGate commits the gate of an account in a range.
type SetGate struct {
	Account geo.Account
	Gate    change.Gate
	// After is what later commit times of the range are above, zero for anything.
	After geo.Timestamp
	// Found is the epoch that the range had.
	Found geo.Epoch
}

// Evaluate implements ranges.Command. A gate of a higher epoch stays, and one that is further in its epoch: of a later
// turn, and within a turn a gate opens and then gets numbers, and never the other way. A command that is late would
// leave a hole in the streams. A range whose gates are not compared yet takes none: it may not show what it had.
func (c *SetGate) Evaluate(tx *ranges.Tx) error {
	switch {
	case tx.Uncompared():
		return kv.ErrBusy
	case c.Gate.Role == change.RolePrimary && c.Gate.Epoch.Location != tx.Location():
		return fmt.Errorf("%w: the gate of a primary at %s in epoch %s", ErrCommand, tx.Location(), c.Gate.Epoch)
	}
	c.Set(tx)
	return nil
}

// Set stages the gate.
func (c *SetGate) Set(tx *ranges.Tx) {
	have := tx.Gate(c.Account)
	c.Found = have.Epoch
	switch later := cmp.Or(have.Epoch.Compare(c.Gate.Epoch), cmp.Compare(have.Turn, c.Gate.Turn)); {
	case later > 0, have == c.Gate, later == 0 && (have.Open && !c.Gate.Open || have.Numbered && !c.Gate.Numbered):
		return
	case later == 0 && have.Agreed == 0 && c.Gate.Agreed != 0 && have.Role == change.RolePrimary:
		return // The other location knows of the epoch by now.
	}
	if c.After != 0 {
		tx.ClosedAfter(c.After)
	}
	if have.Epoch == c.Gate.Epoch && have.Open && !have.Numbered && c.Gate.Numbered {
		tx.AwaitImage(c.Account, c.Gate.Epoch)
	}
	tx.SetGate(c.Account, c.Gate)
}

// Reclaims implements ranges.Reclaimer: it begins with what frees room, and needs almost none.
func (c *SetGate) Reclaims() {}

// KindSetGate is the kind of SetGate. It is on the wire: never rename it.
const KindSetGate = "directory.setGate"

// Kind implements ranges.Portable.
func (c *SetGate) Kind() string { return KindSetGate }

// Encode implements ranges.Portable: after and the length of the account as varints, the account,
// the gate.
func (c *SetGate) Encode() []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.After)), uint64(len(c.Account)))
	return change.AppendGate(append(b, c.Account...), c.Gate)
}

// ErrCommand refuses the bytes of a command.
var ErrCommand = errors.New("directory: malformed command")

// ParseSetGate parses an encoded SetGate.
func ParseSetGate(b []byte) (*SetGate, error) {
	after, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, ErrCommand
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, ErrCommand
	}
	b = b[n:]
	c := &SetGate{Account: geo.Account(b[:length]), After: geo.Timestamp(after)}
	if !c.Account.Valid() {
		return nil, fmt.Errorf("%w: account %q", ErrCommand, c.Account)
	}
	var err error
	c.Gate, err = change.ParseGate(b[length:])
	return c, err
}

// EncodeResult implements ranges.Portable: the epoch that the range had, in the form of a gate.
func (c *SetGate) EncodeResult() []byte { return change.AppendGate(nil, change.Gate{Epoch: c.Found}) }

// DecodeResult implements ranges.Portable.
func (c *SetGate) DecodeResult(b []byte) error {
	g, err := change.ParseGate(b)
	c.Found = g.Epoch
	return err
}
