package location

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/replication/bus/natsbus"
	"antipode/replication/receive"
	"antipode/secondary"
	"antipode/stamp"
)

const (
	// silenceAfter is how long a source range may say nothing before an alarm.
	silenceAfter = 5 * time.Second
	// leadPoll is how often a process that runs some of the nodes looks whether one of them
	// leads the catalog, and so receives.
	leadPoll = 50 * time.Millisecond
)

// receiving is the location's part in the stream that comes in. One process of a location
// receives, the one with the catalog's leader: it goes on from the cursors, which are
// durable with the data, so that two of them for a moment, or none, lose and double nothing
// (R14).
type receiving struct {
	l        *Location
	receiver atomic.Pointer[receive.Receiver]

	// stamp is the one that runs between start and stop.
	stamp  *stamp.Stamp
	cancel context.CancelFunc // guarded by Location.mu
	wg     sync.WaitGroup
}

// start begins to receive whenever it is this process's turn, until stop.
func (r *receiving) start(s *stamp.Stamp) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stamp, r.cancel = s, cancel
	conn := r.l.carrier.Load().conn
	r.wg.Go(func() {
		for ctx.Err() == nil {
			if r.awaitTurn(ctx) {
				r.run(ctx, conn)
			}
		}
	})
}

// stop ends what start began and waits for it.
func (r *receiving) stop() {
	if r.cancel != nil {
		r.cancel()
		r.wg.Wait()
		r.cancel = nil
	}
}

// mine reports whether this process is the one that receives.
func (r *receiving) mine() bool {
	return r.l.Whole() || r.stamp.Leader(geo.FirstRange(geo.Catalog)) != nil
}

// awaitTurn waits until it is this process's turn; false when ctx ended first.
func (r *receiving) awaitTurn(ctx context.Context) bool {
	return r.poll(ctx, r.mine)
}

func (r *receiving) poll(ctx context.Context, until func() bool) bool {
	ticker := time.NewTicker(leadPoll)
	defer ticker.Stop()
	for !until() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return ctx.Err() == nil
}

// run receives until ctx ends or another process's turn has come.
func (r *receiving) run(ctx context.Context, conn *natsbus.Conn) {
	l := r.l
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consumer, err := natsbus.OpenConsumer(conn, natsbus.Options{
		Source: l.o.Other, Replicas: l.o.Replicas, Bounds: l.o.Bounds, Alarm: l.o.OnAlarm, Log: l.o.Logger,
	})
	if err != nil {
		l.o.Logger.Error("cannot take the stream of the other location; trying again", "origin", l.o.Other, "error", err)
		_ = r.poll(ctx, func() bool { return !r.mine() })
		return
	}
	receiver := receive.New(receive.Options{
		Origin: l.o.Other, Ranges: Ranges(), Consumer: consumer, Source: l.o.WrapSource(l.far.Source),
		Applier: secondary.NewApplier(r.stamp), Clock: l.o.Clock, SilenceAfter: silenceAfter, Logger: l.o.Logger, Alarm: l.o.OnAlarm,
		Incarnation: l.knownIncarnation(), OnIncarnation: l.rememberIncarnation,
	})
	r.receiver.Store(receiver)
	if !l.Whole() {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			r.poll(ctx, func() bool { return !r.mine() })
			cancel()
		})
	}
	_ = receiver.Run(ctx) // Run ends with ctx alone.
	r.receiver.Store(nil)
	if err := consumer.Close(); err != nil {
		l.o.Logger.Warn("cannot close the consumer of the stream", "origin", l.o.Other, "error", err)
	}
}
