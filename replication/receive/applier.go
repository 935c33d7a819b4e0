package receive

import (
	"time"

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
	// the catalog, payload missing, commit time ahead of the clock here.
	Wait
	// Fork: the previous number belongs to another record here (R16).
	Fork
	// Refused: epoch below the gate, or wrong origin (R7). Nothing of its stream is ever taken, and it
	// is not pulled.
	Refused
	// Stopped: its stream may not go on, which is state of the local range; dropped. It is not
	// pulled.
	Stopped
	// Void: of no number, or numbered before a recovery with loss in which the source lost it; dropped.
	Void
	// Undecodable: the node that evaluates cannot decode it. UnknownVersion: for its format version,
	// which is later than that node knows (R11).
	Undecodable
	UnknownVersion
)

// Record is a received record.
type Record struct {
	Bytes  []byte
	Record change.Record
	// Bad is why Bytes cannot be decoded at the node that evaluates; Record is then zero. It is set
	// there alone.
	Bad     change.StopReason
	Outcome Outcome
	// For is set with Wait.
	For WaitsFor
	// Ahead is set with Wait if the commit time is further ahead of the clock here than R6 lets it
	// be: after so long it no longer is.
	Ahead time.Duration
}

// Batch is what is committed here in one group: records of one source range in
// order, then a closed record.
type Batch struct {
	Source  geo.SourceRange
	Records []*Record
	Closed  *change.Closed
	// ClosedTaken is false after Apply if the closed record does not continue the committed one:
	// the full one has to be pulled (R12), or if ClosedAhead is set: its time is further ahead of
	// the clock here than R6 lets it be, and after so long it no longer is.
	ClosedTaken bool
	ClosedAhead time.Duration
	// ClosedLater: the node that evaluates cannot decode the closed record, which is of a later version; it is
	// not taken, and Closed is nil there.
	ClosedLater bool
	// ClosedStops reports that Closed shows streams to have forked, which are stopped now (R16).
	ClosedStops bool
}

// Applier commits received records; package secondary implements it.
type Applier interface {
	// Apply commits b on the local range's leader and sets the outcomes. done is called once,
	// from any goroutine: with nil once the applied records are on every in-sync replica. After
	// an error the outcomes are unknown, and the caller submits the batch again.
	Apply(b *Batch, done func(error))
	// Stop makes durable that a stream may not go on, with the head at the source as why.There; for
	// StopPoison and StopVersion with a record that cannot be applied, and then only if that is not
	// applied and of the gate's epoch; for StopBudget if the epoch is not below the gate's. It changes nothing if the stream is stopped already. done is
	// called once, from any goroutine; after an error the caller repeats it.
	Stop(st geo.Stream, why change.Stop, done func(error))
	// Resume ends a stop for StopVersion or StopPoison; others stay. done is called once, from any goroutine; after an
	// error the caller repeats it.
	Resume(st geo.Stream, done func(error))
	// Rebase sets the cursor of a stream to the base of the settlement of its fork. It does nothing if the cursor
	// has moved since the source offered the base. Settled ends the settlement from a base, as the source
	// did, once the stream is applied up to a number, and does nothing to another one. done is called once, from any
	// goroutine; after an error the caller repeats it.
	Rebase(r Rebase, done func(error))
	Settled(st geo.Stream, base geo.Head, at geo.Seq, done func(error))
	// Progress reads how far the streams of a source range are applied: all that was committed
	// before the call, and of every stream, so it is for rare use. done is called once, from any
	// goroutine, with an error while the local range has no leader.
	Progress(src geo.SourceRange, done func(cursor.Progress, error))
	// Expects reports whether the source range has something to send: closed records at least, since an
	// account is received from its location (R12). It is called often.
	Expects(src geo.SourceRange) bool
	// PutPayload makes chunks durable on the local replicas before their record is applied.
	PutPayload(ref extent.Ref, data []byte, done func(error))
	// HasPayload reports whether a chunk is durable here.
	HasPayload(ref extent.Ref) bool
}

// Rebase is the base that the source offers for a stream: see ranges.Settle.
type Rebase struct {
	Stream geo.Stream
	// From is the cursor that it was offered to.
	From geo.Head
	// Record is the encoded base.
	Record []byte
}

// Cursor is how far a stream is applied here, as the source gets it.
type Cursor struct {
	geo.Head
	// Below is not zero if the source answered that the stream is deleted there up to this number, and
	// the range here, asked since, is still below it.
	Below geo.Seq
	// Stop is why the stream is stopped here, if the source may not find that itself: StopPoison,
	// StopVersion (R11), StopForked, StopLost (R16). With StopSettling it asks whether the settlement has ended.
	Stop change.StopReason
}

// Mismatch is the answer of the source for a stream whose cursor does not fit its own (R16).
type Mismatch struct {
	Stream geo.Stream
	Reason change.StopReason
	// There is the last record at the source; before a stop for a loss, the last one that it deleted.
	There geo.Head
	// Stopped reports that the source has stopped the stream. Until then it needs the cursor again. A Reason that
	// settles a fork offers the base There with Stopped; without, the settlement has ended, at There or before.
	Stopped bool
}

// Source is the direct link to the location that the stream comes from: what the
// stream lost is pulled over it, keyed by stream and number. done is called once,
// from any goroutine.
type Source interface {
	Records(s geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error))
	Closed(r geo.RangeID, done func(*change.Closed, error))
	// Rest returns the time of the last closed record of a range at rest, 0 for one that is not: see ranges.Range.Rest.
	Rest(r geo.RangeID, done func(geo.Incarnation, geo.Timestamp, error))
	// Acknowledge reports cursors; full means that the streams not named have none. It takes those that
	// fit, and answers for the others, of a full set for streams not named too.
	Acknowledge(r geo.RangeID, cursors map[geo.Stream]Cursor, full bool, done func([]Mismatch, error))
	Chunk(ref extent.Ref, done func([]byte, error))
}
