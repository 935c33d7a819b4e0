package pair

import (
	"context"
	"time"

	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/stamp/skew"
)

// Clock implements End.
func (e *stampEnd) Clock(context.Context) (skew.Own, error) { return e.stamp.Clock() }

// Clock implements End.
func (e *linkedEnd) Clock(ctx context.Context) (skew.Own, error) {
	return link.Ask(ctx, e.l, e.e.Clock)
}

// Clock implements End.
func (r *remoteEnd) Clock(ctx context.Context) (skew.Own, error) {
	a, err := call[wire.ClockAnswer](ctx, r.c, methodClock, &wire.ClockRequest{})
	return skew.Own{Wall: a.GetWall(), Unsure: a.GetUnsure(), Leapt: time.Duration(a.GetLeapt())}, err
}

func serveClock(h link.Handlers, l *link.Link, e End) {
	handle(h, l, methodClock, func(ctx context.Context, _ *wire.ClockRequest) (*wire.ClockAnswer, error) {
		o, err := e.Clock(ctx)
		return &wire.ClockAnswer{Wall: o.Wall, Unsure: o.Unsure, Leapt: int64(o.Leapt)}, err
	})
}
