package location

import (
	"fmt"
	"math"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// copySamples is how many samples of a bootstrap are kept to measure its speed: 30 s of them. Steps that wait
// for the other location come seconds apart.
const copySamples = 61

// copyKey is the bootstrap of an account.
type copyKey struct {
	account geo.Account
	epoch   geo.Epoch
}

// copied is how far the bootstrap of an account is, all ranges together.
type copied struct {
	copied, total change.ImageSize
	// counted: total is of all ranges; numbered: the images of all ranges have come to the end.
	counted, numbered bool
	// waiting is what the outboxes hold.
	waiting change.Volume
}

// add adds a range.
func (c *copied) add(m change.Image, epoch geo.Epoch, waiting change.Volume) {
	c.waiting.Bytes += waiting.Bytes
	c.waiting.Payload += waiting.Payload
	if m.Epoch != epoch {
		c.counted, c.numbered = false, false
		return
	}
	c.copied, c.numbered = c.copied.Add(m.Copied), c.numbered && m.Done != nil
	// Rows that clients have written since the count are copied too.
	c.total = c.total.Add(change.ImageSize{
		Rows: max(m.Total.Rows, m.Copied.Rows), Bytes: max(m.Total.Bytes, m.Copied.Bytes), Payload: max(m.Total.Payload, m.Copied.Payload),
	})
}

// bytesOf returns the bytes of an amount, payload included.
func bytesOf(s change.ImageSize) uint64 { return s.Bytes + s.Payload }

// describe describes it. speed is in bytes per second, and so is the bound of the bootstrap; 0 is none.
func (c copied) describe(speed float64, known bool, bound uint64) *wire.Copied {
	out := &wire.Copied{CopySize: sizeOf(c.copied), WaitingBytes: c.waiting.Bytes + c.waiting.Payload, BytesPerSecondMax: bound}
	if known {
		out.BytesPerSecond = &speed
	}
	if !c.counted {
		return out
	}
	total := sizeOf(c.total)
	out.Total = &total
	percent := 100.
	if !c.numbered {
		percent = 99.9
		if all := bytesOf(c.total); all > 0 {
			percent = min(percent, math.Floor(1000*float64(bytesOf(c.copied))/float64(all))/10)
		}
	}
	out.Percent = &percent
	goes := speed
	if bound > 0 {
		goes = min(speed, float64(bound)) // What was seen may be of a time before a lower bound.
	}
	if known && goes > 0 {
		left := float64(bytesOf(c.total)-bytesOf(c.copied)) / goes
		out.SecondsLeft = &left
	}
	return out
}

func sizeOf(s change.ImageSize) wire.CopySize {
	return wire.CopySize{Rows: s.Rows, Bytes: s.Bytes, PayloadBytes: s.Payload}
}

// copiedNow returns how far the bootstrap of an account is whose primary is this location, from the replicas in this
// process; false without one, and where a range has no replica here.
func (l *Location) copiedNow(a *catalog.Account) (out copied, known bool) {
	stamp, err := l.Stamp()
	if err != nil || !a.Copying() || a.Primary != l.o.Name {
		return out, false
	}
	out.counted, out.numbered = true, true
	for _, d := range l.o.Route.Ranges() {
		r := stamp.Replica(d.ID)
		if r == nil {
			return out, false
		}
		m, err := ranges.ImageIn(r.State(), d.ID, a.Name)
		if err != nil {
			return out, false
		}
		out.add(m, a.GeoEpoch(), r.Machine.Waiting(a.Name, a.GeoEpoch()))
	}
	return out, true
}

// Copied describes how far the bootstrap of an account is whose primary is this location; nil without one, and where
// this process does not know.
func (l *Location) Copied(a *catalog.Account) *wire.Copied {
	now, known := l.copiedNow(a)
	if !known {
		return nil
	}
	speed, known := l.watching.copies.speed(copyKey{a.Name, a.GeoEpoch()})
	return now.describe(speed, known, a.Operation.Rate)
}

// DescribeOperation adds to the description of an account what this process knows of its operation: how far a
// bootstrap is, and why the operation cannot go on.
func (l *Location) DescribeOperation(a *catalog.Account, out *wire.Account) {
	out.Copied, out.OperationWaits = l.Copied(a), l.operationWaits(a)
	l.describeFollowed(a, out)
}

// describeFollowed describes a failover that this location has followed, by its copy of the record. The copy shows it as under way
// until the new primary has sent that it is over, also where that one is away since.
func (l *Location) describeFollowed(a *catalog.Account, out *wire.Account) {
	op := a.Operation
	if op != nil && op.Kind == catalog.OperationTaken && a.Primary != l.o.Name && !op.Rewinding && !op.Diverged {
		out.Operation = fmt.Sprintf("the failover to %s: %s has followed, and does not know whether it is over", a.Primary, l.o.Name)
	}
}

// operationWaits is why the operation of an account cannot go on, as the process knows that goes on with it.
func (l *Location) operationWaits(a *catalog.Account) string {
	if a.Operation == nil || a.Primary != l.o.Name || l.Leader(l.o.Route.Catalog()) == nil {
		return ""
	}
	return l.Directory.Waits(a)
}

// sampleCopies looks at the bootstraps of the accounts whose primary is here.
func (w *watching) sampleCopies() {
	found := map[copyKey]int64{}
	for _, a := range w.accounts {
		if now, known := w.l.copiedNow(a); known {
			found[copyKey{a.Name, a.GeoEpoch()}] = int64(bytesOf(now.copied))
		}
	}
	w.copies.add(w.l.o.Clock.Mono(), found)
}
