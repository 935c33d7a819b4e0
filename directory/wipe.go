package directory

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

// wipeCopy deletes the copy of an account that this location holds of epochs before that of gate: the account's
// rows in every range, its containers in the catalog, and with them what they name of payload, once that is collected.
// The record of the account and its highest epoch stay. Each range gets the gate in the group that deletes its
// rows: a closed one, where the location holds no copy any more, or one that is open for a copy that begins empty
// (R17).
//
// It may be repeated at any time. A range whose gate of the epoch is open is not touched: the copy of that epoch has
// begun there. So nothing else may open the gate of an epoch whose copy begins empty. It returns a PassedError if
// a range has the gate of a later epoch, and errHolder where the location is, or was, the account's primary: such
// data is no copy. In neither case it deletes anything in that range.
func (d *Directory) wipeCopy(ctx context.Context, a geo.Account, gate change.Gate) error {
	for _, r := range d.stamp.Route().Everywhere(a) {
		cmd := &wipe{account: a, gate: gate}
		step := fmt.Sprintf("account %s: the deletion of its copy in the %s range", a, r.Service)
		if err := d.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		switch {
		case cmd.found.Role == change.RolePrimary:
			return fmt.Errorf("%s: %w", step, errHolder)
		case cmd.found.Epoch.Compare(gate.Epoch) > 0:
			return &PassedError{cmd.found.Epoch}
		}
	}
	return nil
}

// errHolder refuses to delete rows of an account at its primary, present or former.
var errHolder = errors.New("directory: the location is the account's primary, or was: its rows are no copy")

// wipe commits in one range that an account's copy of earlier epochs is deleted.
type wipe struct {
	account geo.Account
	gate    change.Gate
	// found is the gate that the range had.
	found change.Gate
}

// Evaluate implements ranges.Command.
func (c *wipe) Evaluate(tx *ranges.Tx) error {
	c.found = tx.Gate(c.account)
	if c.gate.Epoch.Location == tx.Location() {
		c.found.Role = change.RolePrimary
	}
	switch cmp := c.found.Epoch.Compare(c.gate.Epoch); {
	case c.found.Role == change.RolePrimary, cmp > 0, cmp == 0 && c.found.Open:
		return nil
	case cmp < 0 || c.gate.Open:
		tx.SetGate(c.account, c.gate)
	}
	if plantedbugs.Planted(plantedbugs.CopyUnwiped) {
		return nil
	}
	for _, span := range copySpans(tx.Range(), c.account) {
		if err := tx.Wipe(span); err != nil {
			return err
		}
	}
	return c.reopen(tx)
}

// reopen forgets which generations this location closed as the primary. Where it lost the account to a promotion, the
// present primary may have them (R20).
func (c *wipe) reopen(tx *ranges.Tx) error {
	held, _ := ranges.Span(tx.Range())
	for _, s := range geo.Services {
		own := keys.AppendAccount(nil, s, c.account)
		here := geo.Span{Start: string(own), End: string(keys.PrefixEnd(own))}.Within(held)
		if s == geo.Catalog || here.Start >= here.End || plantedbugs.Planted(plantedbugs.GenerationsStayClosed) {
			continue
		}
		if err := tx.ReopenGenerations(s, c.account); err != nil {
			return err
		}
	}
	return nil
}

// copySpans are the keys of what a range holds of an account as a copy: of the catalog, its containers.
func copySpans(r geo.RangeID, a geo.Account) (spans []state.Span) {
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
func (c *wipe) Reclaims() {}

// kindWipe is the kind of wipe. It is on the wire: never rename it.
const kindWipe = "directory.wipe"

// Kind implements ranges.Portable.
func (c *wipe) Kind() string { return kindWipe }

// Encode implements ranges.Portable: as a setGate of the gate that the range gets.
func (c *wipe) Encode() []byte {
	return (&setGate{account: c.account, gate: c.gate}).Encode()
}

func parseWipe(b []byte) (*wipe, error) {
	c, err := parseSetGate(b)
	if err != nil {
		return nil, err
	}
	if c.gate.Role == change.RolePrimary || c.gate.Numbered || c.gate.Epoch == (geo.Epoch{}) {
		return nil, fmt.Errorf("%w: a wipe with gate %+v", errCommand, c.gate)
	}
	return &wipe{account: c.account, gate: c.gate}, nil
}

// EncodeResult implements ranges.Portable: the gate that the range had.
func (c *wipe) EncodeResult() []byte { return change.AppendGate(nil, c.found) }

// DecodeResult implements ranges.Portable.
func (c *wipe) DecodeResult(b []byte) (err error) {
	c.found, err = change.ParseGate(b)
	return err
}
