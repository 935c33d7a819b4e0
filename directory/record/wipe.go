package record

import (
	"context"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// WipeCopy deletes the copy of an account that this location holds of epochs before that of gate: the account's
// rows in every range, its containers in the catalog, and with them what they name of payload, once that is collected.
// The record of the account and its highest epoch stay. Each range gets the gate in the group that deletes its
// rows: a closed one, where the location holds no copy any more, or one that is open for a copy that begins empty
// (R17).
//
// It may be repeated at any time. A range whose gate of the epoch is open is not touched: the copy of that epoch has
// begun there. So nothing else may open the gate of an epoch whose copy begins empty. It returns a PassedError if
// a range has the gate of a later epoch, and ErrHolder where the location is, or was, the account's primary: such
// data is no copy. In neither case it deletes anything in that range.
func (s *Store) WipeCopy(ctx context.Context, a geo.Account, gate change.Gate) error {
	for _, r := range s.Route().Everywhere(a) {
		cmd := &Wipe{Account: a, Gate: gate}
		step := fmt.Sprintf("account %s: the deletion of its copy in the %s range", a, r.Service)
		if err := s.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		switch {
		case cmd.Found.Role == change.RolePrimary:
			return fmt.Errorf("%s: %w", step, ErrHolder)
		case cmd.Found.Epoch.Compare(gate.Epoch) > 0:
			return &PassedError{cmd.Found.Epoch}
		}
	}
	return nil
}

// ErrHolder refuses to delete rows of an account at its primary, present or former.
var ErrHolder = errors.New("directory: the location is the account's primary, or was: its rows are no copy")

// Wipe commits in one range that an account's copy of earlier epochs is deleted.
type Wipe struct {
	Account geo.Account
	Gate    change.Gate
	// Found is the gate that the range had.
	Found change.Gate
}

// Evaluate implements ranges.Command.
func (c *Wipe) Evaluate(tx *ranges.Tx) error {
	c.Found = tx.Gate(c.Account)
	if c.Gate.Epoch.Location == tx.Location() {
		c.Found.Role = change.RolePrimary
	}
	switch cmp := c.Found.Epoch.Compare(c.Gate.Epoch); {
	case c.Found.Role == change.RolePrimary, cmp > 0, cmp == 0 && c.Found.Open:
		return nil
	case cmp < 0 || c.Gate.Open:
		tx.SetGate(c.Account, c.Gate)
	}
	if plantedbugs.Planted(plantedbugs.CopyUnwiped) {
		return nil
	}
	for _, span := range CopySpans(tx.Range(), c.Account) {
		if err := tx.Wipe(span); err != nil {
			return err
		}
	}
	return c.reopen(tx)
}

// reopen forgets which generations this location closed as the primary. Where it lost the account to a promotion, the
// present primary may have them (R20).
func (c *Wipe) reopen(tx *ranges.Tx) error {
	held, _ := ranges.Span(tx.Range())
	for _, s := range geo.Services {
		own := keys.AppendAccount(nil, s, c.Account)
		here := geo.Span{Start: string(own), End: string(keys.PrefixEnd(own))}.Within(held)
		if s == geo.Catalog || here.Start >= here.End || plantedbugs.Planted(plantedbugs.GenerationsStayClosed) {
			continue
		}
		if err := tx.ReopenGenerations(s, c.Account); err != nil {
			return err
		}
	}
	return nil
}

// CopySpans are the keys of what a range holds of an account as a copy: of the catalog, its containers.
func CopySpans(r geo.RangeID, a geo.Account) (spans []state.Span) {
	held, _ := ranges.Span(r)
	add := func(prefix []byte) {
		own := geo.Span{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}.Within(held)
		if own.Start < own.End {
			spans = append(spans, state.Span{Lower: []byte(own.Start), Upper: []byte(own.End)})
		}
	}
	for _, s := range geo.Services {
		add(keys.AppendAccount(nil, s, a))
		add(catalog.ContainersPrefix(s, a))
	}
	return spans
}

// Reclaims implements ranges.Reclaimer.
func (c *Wipe) Reclaims() {}

// KindWipe is the kind of Wipe. It is on the wire: never rename it.
const KindWipe = "directory.wipe"

// Kind implements ranges.Portable.
func (c *Wipe) Kind() string { return KindWipe }

// Encode implements ranges.Portable: as a SetGate of the gate that the range gets.
func (c *Wipe) Encode() []byte {
	return (&SetGate{Account: c.Account, Gate: c.Gate}).Encode()
}

// ParseWipe parses an encoded Wipe.
func ParseWipe(b []byte) (*Wipe, error) {
	c, err := ParseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.Gate.Role == change.RolePrimary || c.Gate.Numbered || c.Gate.Epoch == (geo.Epoch{}) {
		return nil, fmt.Errorf("%w: a wipe with gate %+v", ErrCommand, c.Gate)
	}
	return &Wipe{Account: c.Account, Gate: c.Gate}, nil
}

// EncodeResult implements ranges.Portable: the gate that the range had.
func (c *Wipe) EncodeResult() []byte { return change.AppendGate(nil, c.Found) }

// DecodeResult implements ranges.Portable.
func (c *Wipe) DecodeResult(b []byte) (err error) {
	c.Found, err = change.ParseGate(b)
	return err
}
