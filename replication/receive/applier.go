package receive

import (
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/extent"
)

// Outcome is the result of classifying one received record.
type Outcome byte

// The outcomes.
const (
	// Applied: committed here, or its cursor was advanced past it.
	Applied Outcome = iota + 1
	// Duplicate: was committed here before; dropped.
	Duplicate
	// Gap: a record before it is missing.
	Gap
	// Wait: it cannot be applied yet: epoch above the gate, generation not yet in
	// the catalog, payload missing.
	Wait
	// Fork: the previous number belongs to another record here (R16).
	Fork
	// Refused: epoch below the gate, wrong origin, or damaged (R7, R11).
	Refused
)

// Record is a received record.
type Record struct {
	Bytes   []byte
	Record  change.Record
	Outcome Outcome
}

// Batch is what is committed here in one group: records of one source range in
// order, then a closed record.
type Batch struct {
	Source  geo.SourceRange
	Records []*Record
	Closed  *change.Closed
	// ClosedTaken is false after Apply if the closed record does not continue the committed one:
	// the full one has to be pulled (R12).
	ClosedTaken bool
}

// Applier commits received records; package secondary implements it.
type Applier interface {
	// Apply commits b on the local range's leader and sets the outcomes. done is called once,
	// from any goroutine: with nil once the applied records are on every in-sync replica. After
	// an error the outcomes are unknown, and the caller submits the batch again.
	Apply(b *Batch, done func(error))
	// Progress returns how far the streams of a source range are applied; ok is false while
	// the local range has no leader.
	Progress(src geo.SourceRange) (p cursor.Progress, ok bool)
	// PutPayload makes chunks durable on the local replicas before their record is applied.
	PutPayload(ref extent.Ref, data []byte, done func(error))
	// HasPayload reports whether a chunk is durable here.
	HasPayload(ref extent.Ref) bool
}

// ForkError reports streams here that do not fit those of the source (R16). The other
// cursors of the same call were taken.
type ForkError struct{ Streams []geo.Stream }

func (e *ForkError) Error() string {
	return fmt.Sprintf("receive: %d streams forked, the first is %s", len(e.Streams), e.Streams[0])
}

// Source is the direct link to the location that the stream comes from: what the
// stream lost is pulled over it, keyed by stream and number. done is called once,
// from any goroutine; by Acknowledge perhaps with a ForkError.
type Source interface {
	Records(s geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error))
	Closed(r geo.RangeID, done func(*change.Closed, error))
	Acknowledge(r geo.RangeID, cursors map[geo.Stream]geo.Head, done func(error))
	Chunk(ref extent.Ref, done func([]byte, error))
}
