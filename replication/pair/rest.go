package pair

import (
	"context"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/stamp/ranges"
)

// Rest implements End.
func (e *stampEnd) Rest(ctx context.Context, id geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error) {
	lead := e.stamp.Leader(id)
	if lead == nil {
		return 0, 0, e.noLeader(id)
	}
	if !look {
		i, t := lead.Rest()
		return i, t, nil
	}
	if !lead.Rests() {
		return 0, 0, nil // It closes by itself.
	}
	var c ranges.Close
	if err := lead.Do(ctx, &c); err != nil {
		return 0, 0, err // It may still be evaluated.
	}
	return lead.Machine.Incarnation(), c.T, nil
}

type restAnswer struct {
	incarnation geo.Incarnation
	t           geo.Timestamp
}

// Rest implements End.
func (e *linkedEnd) Rest(ctx context.Context, r geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error) {
	a, err := link.Ask(ctx, e.l, func(ctx context.Context) (a restAnswer, err error) {
		a.incarnation, a.t, err = e.e.Rest(ctx, r, look)
		return a, err
	})
	return a.incarnation, a.t, err
}

// Rest implements End.
func (r *remoteEnd) Rest(ctx context.Context, id geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error) {
	a, err := call[wire.RestAnswer](ctx, r.c, methodRest, &wire.RestRequest{Range: uint32(id), Look: look})
	return geo.Incarnation(a.GetIncarnation()), geo.Timestamp(a.GetTime()), err
}

func serveRest(h link.Handlers, l *link.Link, e End) {
	handle(h, l, methodRest, func(ctx context.Context, q *wire.RestRequest) (*wire.RestAnswer, error) {
		i, t, err := e.Rest(ctx, geo.RangeID(q.GetRange()), q.GetLook())
		return &wire.RestAnswer{Incarnation: uint64(i), Time: uint64(t)}, err
	})
}

// Rest implements receive.Source.
func (s *Source) Rest(id geo.RangeID, done func(geo.Incarnation, geo.Timestamp, error)) {
	var a restAnswer
	s.brief.Start(func(ctx context.Context) (err error) {
		a.incarnation, a.t, err = s.far.Rest(ctx, id, false)
		return err
	}, func(err error) { done(a.incarnation, a.t, err) })
}
