package directory

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

// primaryGate is the gate of an account at its primary. Changes have numbers where they are copied
// to a secondary (R10). It is closed while the account moves to the other location (R19).
func primaryGate(a *catalog.Account) change.Gate {
	return change.Gate{
		Epoch: a.GeoEpoch(), Role: change.RolePrimary, Open: !a.Closed(), Numbered: a.Ships(), Turn: a.Turn, Agreed: a.Agreed(),
	}
}

// secondaryGate is the gate of an account at the other location: closed where it is no secondary.
func secondaryGate(a *catalog.Account) change.Gate {
	if !a.Redundancy.Geo() {
		return change.Gate{Epoch: a.GeoEpoch()}
	}
	return change.Gate{Epoch: a.GeoEpoch(), Role: change.RoleSecondary, Open: true}
}

// setGates commits the gate of an account in every range of a location but the catalog, whose gate
// changes with the record of the account (R7). Behind it every range commits above after. It returns a
// PassedError if a range has the gate of a higher epoch.
func setGates(ctx context.Context, s Stamp, a geo.Account, g change.Gate, after geo.Timestamp, again Again) error {
	for _, r := range s.Route().Data(a) {
		set := &setGate{account: a, gate: g, after: after}
		step := fmt.Sprintf("account %s: its gate in the %s range", a, r.Service)
		err := try(ctx, again, step, func() error { return s.Submit(ctx, r.ID, set) })
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if set.found.Compare(g.Epoch) > 0 {
			return &PassedError{set.found}
		}
	}
	return nil
}

type setGate struct {
	account geo.Account
	gate    change.Gate
	// after is what later commit times of the range are above, zero for anything.
	after geo.Timestamp
	// found is the epoch that the range had.
	found geo.Epoch
}

// Evaluate implements ranges.Command. A gate of a higher epoch stays, and one that is further in its epoch: of a later
// turn, and within a turn a gate opens and then gets numbers, and never the other way. A command that is late would
// leave a hole in the streams. A range whose gates are not compared yet takes none: it may not show what it had.
func (c *setGate) Evaluate(tx *ranges.Tx) error {
	switch {
	case tx.Uncompared():
		return kv.ErrBusy
	case c.gate.Role == change.RolePrimary && c.gate.Epoch.Location != tx.Location():
		return fmt.Errorf("%w: the gate of a primary at %s in epoch %s", errCommand, tx.Location(), c.gate.Epoch)
	}
	c.set(tx)
	return nil
}

// set stages the gate.
func (c *setGate) set(tx *ranges.Tx) {
	have := tx.Gate(c.account)
	c.found = have.Epoch
	switch later := cmp.Or(have.Epoch.Compare(c.gate.Epoch), cmp.Compare(have.Turn, c.gate.Turn)); {
	case later > 0, have == c.gate, later == 0 && (have.Open && !c.gate.Open || have.Numbered && !c.gate.Numbered):
		return
	case later == 0 && have.Agreed == 0 && c.gate.Agreed != 0 && have.Role == change.RolePrimary:
		return // The other location knows of the epoch by now.
	}
	if c.after != 0 {
		tx.ClosedAfter(c.after)
	}
	if have.Epoch == c.gate.Epoch && have.Open && !have.Numbered && c.gate.Numbered {
		tx.AwaitImage(c.account, c.gate.Epoch)
	}
	tx.SetGate(c.account, c.gate)
}

// Reclaims implements ranges.Reclaimer: see alter.
func (c *setGate) Reclaims() {}

// kindSetGate is the kind of setGate. It is on the wire: never rename it.
const kindSetGate = "directory.setGate"

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindForgetStreams:   func(body []byte) (ranges.Portable, error) { return parseForgetStreams(body) },
		kindSetGate:         func(body []byte) (ranges.Portable, error) { return parseSetGate(body) },
		kindWipe:            func(body []byte) (ranges.Portable, error) { return parseWipe(body) },
		kindFree:            func(body []byte) (ranges.Portable, error) { return parseFree(body) },
		kindEndStreams:      func(body []byte) (ranges.Portable, error) { return parseEndStreams(body, true) },
		kindDropStreams:     func(body []byte) (ranges.Portable, error) { return parseEndStreams(body, false) },
		kindAgain:           func(body []byte) (ranges.Portable, error) { return parseAgain(body) },
		kindDrained:         func(body []byte) (ranges.Portable, error) { return parseDrained(body) },
		kindReached:         func(body []byte) (ranges.Portable, error) { return parseReached(body) },
		kindOpenTaken:       func(body []byte) (ranges.Portable, error) { return parseOpenTaken(body) },
		kindKeepLost:        func(body []byte) (ranges.Portable, error) { return parseKeepLost(body) },
		kindRewound:         func(body []byte) (ranges.Portable, error) { return parseRewound(body) },
		kindLostRows:        func(body []byte) (ranges.Portable, error) { return parseLostRowsAt(body) },
		kindRejoin:          func(body []byte) (ranges.Portable, error) { return parseRejoin(body) },
		kindKeysOf:          func(body []byte) (ranges.Portable, error) { return parseKeysOf(body) },
		kindRegain:          func(body []byte) (ranges.Portable, error) { return parseRegain(body) },
		kindFollow:          func(body []byte) (ranges.Portable, error) { return parseFollow(body) },
		kindFreeze:          func(body []byte) (ranges.Portable, error) { return parseFreeze(body) },
		kindThaw:            func(body []byte) (ranges.Portable, error) { return parseThaw(body) },
		kindSetLocation:     func(body []byte) (ranges.Portable, error) { return parseSetLocation(body) },
		kindCheckPromotions: func(body []byte) (ranges.Portable, error) { return parseCheckPromotions(body) },
		kindRaiseLevels:     func(body []byte) (ranges.Portable, error) { return parseRaiseLevels(body) },
		kindSalvageRows:     func(body []byte) (ranges.Portable, error) { return parseSalvageRows(body) },
		kindProbe:           func([]byte) (ranges.Portable, error) { return probe{}, nil },
	}
}

// Kind implements ranges.Portable.
func (c *setGate) Kind() string { return kindSetGate }

// Encode implements ranges.Portable: after and the length of the account as varints, the account,
// the gate.
func (c *setGate) Encode() []byte {
	b := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.after)), uint64(len(c.account)))
	return change.AppendGate(append(b, c.account...), c.gate)
}

var errCommand = errors.New("directory: malformed command")

func parseSetGate(b []byte) (*setGate, error) {
	after, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, errCommand
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, errCommand
	}
	b = b[n:]
	c := &setGate{account: geo.Account(b[:length]), after: geo.Timestamp(after)}
	if !c.account.Valid() {
		return nil, fmt.Errorf("%w: account %q", errCommand, c.account)
	}
	var err error
	c.gate, err = change.ParseGate(b[length:])
	return c, err
}

// EncodeResult implements ranges.Portable: the epoch that the range had, in the form of a gate.
func (c *setGate) EncodeResult() []byte { return change.AppendGate(nil, change.Gate{Epoch: c.found}) }

// DecodeResult implements ranges.Portable.
func (c *setGate) DecodeResult(b []byte) error {
	g, err := change.ParseGate(b)
	c.found = g.Epoch
	return err
}
