package link

import (
	"context"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// Bounds of a Source. An answer with records or a chunk has about 256 KiB to 1 MiB, 6 MiB in the
// worst case; the others are small or rare.
const (
	bulkRunning  = 16
	briefRunning = 16
	callsOpen    = 1024
)

// Source implements receive.Source: the outbox of the far location.
type Source struct {
	far         End
	bulk, brief *calls
}

// NewSource returns a Source over the outbox of the location at the far end of l.
func NewSource(l *Link, far End) *Source {
	return &Source{far: l.End(far), bulk: newCalls(l, bulkRunning, callsOpen), brief: newCalls(l, briefRunning, callsOpen)}
}

// Records implements receive.Source.
func (s *Source) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	var out [][]byte
	s.bulk.start(func(ctx context.Context) (err error) {
		out, err = s.far.Records(ctx, st, from, bytesMax)
		return err
	}, func(err error) { done(out, err) })
}

// Closed implements receive.Source.
func (s *Source) Closed(id geo.RangeID, done func(*change.Closed, error)) {
	var out *change.Closed
	s.brief.start(func(ctx context.Context) (err error) {
		out, err = s.far.Closed(ctx, id)
		return err
	}, func(err error) { done(out, err) })
}

// Acknowledge implements receive.Source.
func (s *Source) Acknowledge(id geo.RangeID, cursors map[geo.Stream]geo.Head, done func(error)) {
	list := make([]ship.StreamCursor, 0, len(cursors))
	for st, h := range cursors {
		list = append(list, ship.StreamCursor{Stream: st, Head: h})
	}
	s.brief.start(func(ctx context.Context) error {
		forked, err := s.far.Acknowledge(ctx, id, list)
		if len(forked) > 0 {
			return &receive.ForkError{Streams: forked}
		}
		return err
	}, done)
}

// Chunk implements receive.Source.
func (s *Source) Chunk(ref extent.Ref, done func([]byte, error)) {
	var data []byte
	s.bulk.start(func(ctx context.Context) error {
		data = make([]byte, ref.Length)
		return s.far.ReadChunk(ctx, ref, data)
	}, func(err error) {
		if err != nil {
			data = nil
		}
		done(data, err)
	})
}
