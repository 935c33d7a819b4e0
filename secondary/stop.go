package secondary

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// kindStop is the kind of stop.
const kindStop = "secondary.stop"

// Stop implements receive.Applier.
func (a *Applier) Stop(st geo.Stream, why change.Stop, done func(error)) {
	a.submit(st.Source(), &stop{st, why}, done)
}

// Resume implements receive.Applier.
func (a *Applier) Resume(st geo.Stream, done func(error)) {
	a.submit(st.Source(), &ranges.Resume{Stream: st}, done)
}

// stop is the command that makes durable that a stream may not go on (R11, R16, R18). The first reason
// stays: what is found of a stopped stream later follows from it.
type stop struct {
	stream geo.Stream
	why    change.Stop
}

// Evaluate implements ranges.Command.
func (c *stop) Evaluate(tx *ranges.Tx) error {
	if why, _ := tx.Stopped(c.stream); why.Reason.Stands() {
		return nil
	}
	gate := tx.Gate(c.stream.Account)
	if c.stream.Epoch.Compare(gate.Epoch) < 0 {
		return nil // The gate has dropped the streams of former epochs. A recovery of the source may bring them back there.
	}
	why := c.why
	why.Here = tx.Cursor(c.stream).Applied
	switch why.Reason {
	case change.StopPoison, change.StopVersion: // Another receiver may have decoded the record.
		if why.Here.Seq >= why.There.Seq || gate.Role != change.RoleSecondary || !gate.Open || gate.Epoch != c.stream.Epoch {
			return nil
		}
	case change.NotStopped, change.StopBudget, change.StopForked, change.StopLost, change.StopSettling, change.StopTaking:
	}
	tx.Stop(c.stream, why)
	return nil
}

// Reclaims implements ranges.Reclaimer: it needs almost no room, and Last Sync Time must not go on
// for want of it.
func (c *stop) Reclaims() {}

// Kind implements ranges.Portable.
func (c *stop) Kind() string { return kindStop }

// Encode implements ranges.Portable: the body of a change.PartStop.
func (c *stop) Encode() []byte { return change.AppendStopPart(nil, c.stream, c.why) }

func parseStop(body []byte) (ranges.Portable, error) {
	st, why, err := change.ParseStopPart(body)
	if err != nil {
		return nil, err
	}
	return &stop{st, why}, nil
}

// EncodeResult implements ranges.Portable.
func (c *stop) EncodeResult() []byte { return nil }

// DecodeResult implements ranges.Portable.
func (c *stop) DecodeResult(b []byte) error {
	if len(b) != 0 {
		return errApply
	}
	return nil
}
