package link

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
)

// Stamp is the stamp at the far end.
type Stamp interface {
	Location() geo.Location
	Leader(r geo.RangeID) *ranges.Range
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
}

// errNoLeader: the far range has no leader now.
var errNoLeader = errors.New("the range has no leader at the other location now")

// Source implements receive.Source over the link: the outbox of the far stamp.
type Source struct {
	l   *Link
	far Stamp
	// shipper finds the shipper of a range at the node that leads it.
	shipper func(geo.RangeID) *ship.Shipper
}

// NewSource returns the far stamp's outbox as seen through l.
func NewSource(l *Link, far Stamp, shipper func(geo.RangeID) *ship.Shipper) *Source {
	return &Source{l, far, shipper}
}

// call runs f at the far end with the range's leader.
func call[T any](s *Source, id geo.RangeID, done func(T, error), f func(*ranges.Range) (T, error)) {
	s.l.Go(func(_ context.Context, err error) {
		var out T
		if err == nil {
			if r := s.far.Leader(id); r != nil {
				out, err = f(r)
			} else {
				err = errNoLeader
			}
		}
		done(out, err)
	})
}

// Records implements receive.Source.
func (s *Source) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	call(s, st.Range, done, func(r *ranges.Range) ([][]byte, error) {
		return r.Machine.Outbox(st, from, bytesMax)
	})
}

// Closed implements receive.Source.
func (s *Source) Closed(id geo.RangeID, done func(*change.Closed, error)) {
	call(s, id, done, func(r *ranges.Range) (*change.Closed, error) {
		return ship.FullClosed(s.far.Location(), r), nil
	})
}

// Acknowledge implements receive.Source.
func (s *Source) Acknowledge(id geo.RangeID, cursors map[geo.Stream]geo.Head, done func(error)) {
	call(s, id, func(_ struct{}, err error) { done(err) }, func(*ranges.Range) (struct{}, error) {
		sh := s.shipper(id)
		if sh == nil {
			return struct{}{}, errNoLeader
		}
		list := make([]ship.StreamCursor, 0, len(cursors))
		for st, h := range cursors {
			list = append(list, ship.StreamCursor{Stream: st, Head: h})
		}
		forked, err := sh.Acknowledge(list)
		if len(forked) > 0 {
			err = &receive.ForkError{Streams: forked}
		}
		return struct{}{}, err
	})
}

// Chunk implements receive.Source.
func (s *Source) Chunk(ref extent.Ref, done func([]byte, error)) {
	s.l.Go(func(_ context.Context, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		data := make([]byte, ref.Length)
		if _, err := s.far.ReadChunk(ref, 0, data); err != nil {
			done(nil, err)
			return
		}
		done(data, nil)
	})
}

// Pusher implements ship.PayloadPusher: chunks of the near stamp into the far one.
type Pusher struct {
	l         *Link
	near, far Stamp
	bufs      *extent.Buffers
}

// What pushes hold in memory at once; the rest wait.
const (
	pushBytes  = 1 << 20
	pushesOpen = 8
)

// NewPusher returns the way for payload from near to far.
func NewPusher(l *Link, near, far Stamp) *Pusher {
	return &Pusher{l: l, near: near, far: far, bufs: extent.NewBuffers(pushBytes, pushesOpen)}
}

// Push implements ship.PayloadPusher.
func (p *Pusher) Push(refs []extent.Ref, done func(error)) {
	p.l.Go(func(ctx context.Context, err error) {
		for _, ref := range refs {
			if err != nil {
				break
			}
			err = p.push(ctx, ref)
		}
		done(err)
	})
}

func (p *Pusher) push(ctx context.Context, ref extent.Ref) error {
	data, err := p.bufs.Get(ctx, int(ref.Length))
	if err != nil {
		return err
	}
	defer p.bufs.Put(data)
	if _, err := p.near.ReadChunk(ref, 0, data); err != nil {
		return err
	}
	return p.far.PutChunk(ctx, ref, data)
}
