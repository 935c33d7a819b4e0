package pair

import (
	"context"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/replication/payload"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp/change"
)

// Bounds of a Source. An answer with records has about 256 KiB to 1 MiB, 6 MiB in the worst case; the others
// are small or rare.
const (
	bulkRunning  = 16
	briefRunning = 16
	callsOpen    = 1024
)

// Source implements receive.Source: the outbox of the far location.
type Source struct {
	far         End
	bulk, brief *link.Calls
	// Fetcher has calls apart, so that no record waits for the turn of a chunk.
	*payload.Fetcher
}

// NewSource returns a Source over the outbox of the location at the far end of l.
func NewSource(l *link.Link, far End, c clock.Clock) *Source {
	return &Source{
		far: Through(l, far), bulk: link.NewCalls(l, bulkRunning, callsOpen), brief: link.NewCalls(l, briefRunning, callsOpen),
		Fetcher: payload.NewFetcher(l, far, c),
	}
}

// Records implements receive.Source.
func (s *Source) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	var out [][]byte
	s.bulk.Start(func(ctx context.Context) (err error) {
		out, err = s.far.Records(ctx, st, from, bytesMax)
		return err
	}, func(err error) { done(out, err) })
}

// Closed implements receive.Source.
func (s *Source) Closed(id geo.RangeID, done func(*change.Closed, error)) {
	var out *change.Closed
	s.brief.Start(func(ctx context.Context) (err error) {
		out, err = s.far.Closed(ctx, id)
		return err
	}, func(err error) { done(out, err) })
}

// Acknowledge implements receive.Source.
func (s *Source) Acknowledge(id geo.RangeID, cursors map[geo.Stream]receive.Cursor, full bool, done func([]receive.Mismatch, error)) {
	var out []receive.Mismatch
	s.brief.Start(func(ctx context.Context) error {
		mismatches, err := s.far.Acknowledge(ctx, id, Acknowledgement(cursors, full))
		out = Mismatches(mismatches)
		return err
	}, func(err error) { done(out, err) })
}

// Acknowledgement is what a source takes for the cursors of a receiver.
func Acknowledgement(cursors map[geo.Stream]receive.Cursor, full bool) ship.Acknowledgement {
	a := ship.Acknowledgement{Cursors: make([]ship.StreamCursor, 0, len(cursors)), Full: full}
	for st, c := range cursors {
		a.Cursors = append(a.Cursors, ship.StreamCursor{Stream: st, Head: c.Head, Below: c.Below, Stop: c.Stop})
	}
	return a
}

// Mismatches are the answers of a source as a receiver takes them.
func Mismatches(in []ship.Mismatch) []receive.Mismatch {
	out := make([]receive.Mismatch, len(in))
	for i, v := range in {
		out[i] = receive.Mismatch{Stream: v.Stream, Reason: v.Reason, There: v.Here, Stopped: v.Stopped}
	}
	return out
}
