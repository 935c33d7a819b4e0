package directory

import (
	"context"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Writable returns nil if a range takes writes: its leader holds its lease and has a second
// replica in sync, and its gates are compared since it was recovered with loss. A full disk does not count: reads go on, and the condition ends by itself.
// Writable changes nothing.
func Writable(ctx context.Context, s ranges.Submitter, r geo.RangeID) error {
	return s.Submit(ctx, r, probe{})
}

// probe is a command without an effect. It is refused whenever a write is.
type probe struct{}

// Evaluate implements ranges.Command.
func (probe) Evaluate(tx *ranges.Tx) error {
	if tx.Uncompared() {
		return kv.ErrBusy
	}
	return nil
}

// Probes implements ranges.Probe: a probe takes no room on the disk.
func (probe) Probes() {}

// kindProbe is the kind of probe. It is on the wire: never rename it.
const kindProbe = "directory.probe"

// Kind implements ranges.Portable.
func (probe) Kind() string { return kindProbe }

// Encode implements ranges.Portable.
func (probe) Encode() []byte { return nil }

// EncodeResult implements ranges.Portable.
func (probe) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (probe) DecodeResult([]byte) error { return nil }
