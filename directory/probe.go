package directory

import (
	"context"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// Writable returns nil when a range takes writes: it has a leader that holds its lease and
// has a second replica in sync. A disk that is full is not looked at: it ends by itself,
// and reads go on. It changes nothing.
func Writable(ctx context.Context, s ranges.Submitter, r geo.RangeID) error {
	return s.Submit(ctx, r, probe{})
}

// probe is a command without an effect: it is refused where any write is.
type probe struct{}

// Evaluate implements ranges.Command.
func (probe) Evaluate(*ranges.Tx) error { return nil }

// Reclaims implements ranges.Reclaimer: it takes no room.
func (probe) Reclaims() {}

// kindProbe is probe's kind.
const kindProbe = "failover.probe"

// Kind implements ranges.Portable.
func (probe) Kind() string { return kindProbe }

// Encode implements ranges.Portable.
func (probe) Encode() []byte { return nil }

// EncodeResult implements ranges.Portable.
func (probe) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (probe) DecodeResult([]byte) error { return nil }
