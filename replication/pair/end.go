package pair

import (
	"context"
	"fmt"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/skew"
)

// End is one end of the link: a location, as the other one calls it. Every call may be repeated,
// with the effect of one. Methods may be called concurrently.
type End interface {
	// Records returns encoded records of a stream's outbox from a number on, up to bytesMax or
	// one record; none if the outbox does not hold the first one.
	Records(ctx context.Context, s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error)
	// Closed returns the full closed record of a range.
	Closed(ctx context.Context, r geo.RangeID) (*change.Closed, error)
	// Rest returns the time of the last closed record of a range at rest, 0 for one that is not: see ranges.Range.Rest. With look
	// it commits one if it has left out any, and returns its time: see ranges.Close.
	Rest(ctx context.Context, r geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error)
	// Acknowledge reports how far the caller has streams of a range on its replicas, and
	// returns those that do not fit, in the order of streams: see ship.Shipper.Acknowledge.
	Acknowledge(ctx context.Context, r geo.RangeID, a ship.Acknowledgement) ([]ship.Mismatch, error)
	// Received returns the greatest time that this location has committed of a range of the caller's:
	// of a closed record or of a change; 0 before the first. It includes all that was committed before
	// the call.
	Received(ctx context.Context, src geo.SourceRange) (geo.Timestamp, error)
	// Verify answers an encoded question of package verify about a range.
	Verify(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error)
	// Clock is the wall clock of the node that answers (R6).
	Clock(ctx context.Context) (skew.Own, error)
	// ReadChunk fills p, of the chunk's length, with the chunk.
	ReadChunk(ctx context.Context, ref extent.Ref, p []byte) error
	// PutChunk makes a chunk durable on the replicas. It does not keep data.
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
	// MissingChunks implements payload.Far.
	MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error)
}

// Stamp is the stamp of a location, as far as this process reaches it.
type Stamp interface {
	Location() geo.Location
	// Leader returns a range at its leader, nil while no node of this process leads it.
	Leader(r geo.RangeID) *ranges.Range
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
	MissingChunks(ctx context.Context, refs []extent.Ref) ([]bool, error)
	// Verify answers a question of package verify: ranges.ErrNotLeader if no node of this process leads
	// the range, and the question is about no snapshot that was taken in this process.
	Verify(ctx context.Context, r geo.RangeID, question []byte) ([]byte, error)
	// Clock is the wall clock of a node of this process.
	Clock() (skew.Own, error)
}

// Shippers returns the shipper of a range at the node of this process that leads it, nil while
// none does.
type Shippers func(r geo.RangeID) *ship.Shipper

// stampEnd is an End over a stamp of this process.
type stampEnd struct {
	stamp     Stamp
	shippers  Shippers
	elsewhere link.Elsewhere
}

// NewEnd returns the end of the link over a stamp of this process.
func NewEnd(s Stamp, shippers Shippers, elsewhere link.Elsewhere) End {
	if elsewhere == nil {
		elsewhere = func(geo.RangeID) error { return nil }
	}
	return &stampEnd{s, shippers, elsewhere}
}

// noLeader returns why a range cannot be called in this process: ranges.ErrNotLeader if the
// leader is unknown.
func (e *stampEnd) noLeader(id geo.RangeID) error {
	if err := e.elsewhere(id); err != nil {
		return err
	}
	return fmt.Errorf("range %d: %w", id, ranges.ErrNotLeader)
}

// Records implements End.
func (e *stampEnd) Records(_ context.Context, s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error) {
	r := e.stamp.Leader(s.Range)
	if r == nil {
		return nil, e.noLeader(s.Range)
	}
	records, err := r.Machine.Outbox(s, from, bytesMax)
	if sh := e.shippers(s.Range); sh != nil {
		records = sh.Ready(s, from, records)
	}
	return records, err
}

// Closed implements End.
func (e *stampEnd) Closed(_ context.Context, id geo.RangeID) (*change.Closed, error) {
	s := e.shippers(id)
	if s == nil {
		return nil, e.noLeader(id)
	}
	return s.Full()
}

// Acknowledge implements End.
func (e *stampEnd) Acknowledge(_ context.Context, id geo.RangeID, a ship.Acknowledgement) ([]ship.Mismatch, error) {
	s := e.shippers(id)
	if s == nil {
		return nil, e.noLeader(id)
	}
	return s.Acknowledge(a)
}

// ReadChunk implements End.
func (e *stampEnd) ReadChunk(_ context.Context, ref extent.Ref, p []byte) error {
	_, err := e.stamp.ReadChunk(ref, 0, p)
	return err
}

// PutChunk implements End.
func (e *stampEnd) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	return e.stamp.PutChunk(ctx, ref, data)
}

// Through passes each call to e through the link.
func Through(l *link.Link, e End) End { return &linkedEnd{e, l} }

type linkedEnd struct {
	e End
	l *link.Link
}

// Records implements End.
func (e *linkedEnd) Records(ctx context.Context, s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error) {
	return link.Ask(ctx, e.l, func(ctx context.Context) ([][]byte, error) { return e.e.Records(ctx, s, from, bytesMax) })
}

// Closed implements End.
func (e *linkedEnd) Closed(ctx context.Context, r geo.RangeID) (*change.Closed, error) {
	return link.Ask(ctx, e.l, func(ctx context.Context) (*change.Closed, error) { return e.e.Closed(ctx, r) })
}

// Acknowledge implements End.
func (e *linkedEnd) Acknowledge(ctx context.Context, r geo.RangeID, a ship.Acknowledgement) ([]ship.Mismatch, error) {
	return link.Ask(ctx, e.l, func(ctx context.Context) ([]ship.Mismatch, error) { return e.e.Acknowledge(ctx, r, a) })
}

// ReadChunk implements End.
func (e *linkedEnd) ReadChunk(ctx context.Context, ref extent.Ref, p []byte) error {
	return e.l.Do(ctx, func(ctx context.Context) error { return e.e.ReadChunk(ctx, ref, p) })
}

// PutChunk implements End.
func (e *linkedEnd) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	return e.l.Do(ctx, func(ctx context.Context) error { return e.e.PutChunk(ctx, ref, data) })
}
