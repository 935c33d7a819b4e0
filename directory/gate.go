package directory

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// setGates commits the gate of an account in every range of a location (R7).
func setGates(ctx context.Context, s Stamp, a geo.Account, g change.Gate, again Again) error {
	for _, svc := range slices.Concat([]geo.Service{geo.Catalog}, geo.Services[:]) {
		step := fmt.Sprintf("account %s: its gate in the %s range", a, svc)
		err := try(ctx, again, step, func() error { return s.Submit(ctx, geo.FirstRange(svc), setGate{a, g}) })
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

type setGate struct {
	account geo.Account
	gate    change.Gate
}

// Evaluate implements ranges.Command. A gate of a higher epoch stays.
func (c setGate) Evaluate(tx *ranges.Tx) error {
	if have := tx.Gate(c.account); have != c.gate && have.Epoch.Compare(c.gate.Epoch) <= 0 {
		tx.SetGate(c.account, c.gate)
	}
	return nil
}

// kindSetGate is the kind of setGate. It is on the wire: never rename it.
const kindSetGate = "directory.setGate"

// Commands are the commands of this package that nodes submit to each other.
func Commands() ranges.Commands {
	return ranges.Commands{
		kindSetGate: func(body []byte) (ranges.Portable, error) { return parseSetGate(body) },
		kindProbe:   func([]byte) (ranges.Portable, error) { return probe{}, nil },
	}
}

// Kind implements ranges.Portable.
func (c setGate) Kind() string { return kindSetGate }

// Encode implements ranges.Portable: the length of the account, a varint, the account,
// the gate.
func (c setGate) Encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(c.account)))
	return change.AppendGate(append(b, c.account...), c.gate)
}

var errSetGate = errors.New("directory: malformed command")

func parseSetGate(b []byte) (setGate, error) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return setGate{}, errSetGate
	}
	b = b[n:]
	c := setGate{account: geo.Account(b[:length])}
	if !c.account.Valid() {
		return setGate{}, fmt.Errorf("%w: account %q", errSetGate, c.account)
	}
	var err error
	c.gate, err = change.ParseGate(b[length:])
	return c, err
}

// EncodeResult implements ranges.Portable.
func (c setGate) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (c setGate) DecodeResult([]byte) error { return nil }
