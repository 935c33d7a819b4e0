package pair

import (
	"context"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/pair/wire"
	"antipode/stamp/ranges"
)

// Received implements End.
func (e *stampEnd) Received(ctx context.Context, src geo.SourceRange) (t geo.Timestamp, err error) {
	r := e.stamp.Leader(src.Range)
	if r == nil {
		return 0, e.noLeader(src.Range)
	}
	err = r.Read(ctx, func(s ranges.State) error {
		t = s.Received(src)
		return nil
	})
	return t, err
}

// Received implements End.
func (e *linkedEnd) Received(ctx context.Context, src geo.SourceRange) (geo.Timestamp, error) {
	return link.Ask(ctx, e.l, func(ctx context.Context) (geo.Timestamp, error) { return e.e.Received(ctx, src) })
}

// Received implements End.
func (r *remoteEnd) Received(ctx context.Context, src geo.SourceRange) (geo.Timestamp, error) {
	a, err := call[wire.ReceivedAnswer](ctx, r.c, methodReceived, &wire.ReceivedRequest{Origin: string(src.Origin), Range: uint32(src.Range)})
	return geo.Timestamp(a.GetTime()), err
}

func serveReceived(h link.Handlers, l *link.Link, e End) {
	handle(h, l, methodReceived, func(ctx context.Context, q *wire.ReceivedRequest) (*wire.ReceivedAnswer, error) {
		t, err := e.Received(ctx, geo.SourceRange{Origin: geo.Location(q.GetOrigin()), Range: geo.RangeID(q.GetRange())})
		return &wire.ReceivedAnswer{Time: uint64(t)}, err
	})
}
