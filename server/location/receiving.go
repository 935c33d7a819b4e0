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
	// silenceAfter is how long a source range may send nothing before an alarm.
	silenceAfter = 5 * time.Second
	// leadPoll is how often a process that runs some of the nodes checks whether one of them
	// leads the catalog.
	leadPoll = 50 * time.Millisecond
)

// receiving runs the receiver of the incoming stream. In a location of several processes, the
// process with the catalog's leader receives. The receiver resumes from the cursors, which are
// durable with the data (R14), so two receivers at once, or none, lose and repeat nothing.
type receiving struct {
	l        *Location
	receiver atomic.Pointer[receive.Receiver]

	// stamp is set between start and stop.
	stamp  *stamp.Stamp
	cancel context.CancelFunc // guarded by Location.mu
	wg     sync.WaitGroup
}

// start receives whenever this process should, until stop.
func (r *receiving) start(s *stamp.Stamp) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stamp, r.cancel = s, cancel
	conn := r.l.bus.Load().conn
	r.wg.Go(func() {
		for ctx.Err() == nil {
			if r.poll(ctx, r.mine) {
				r.run(ctx, conn)
			}
		}
	})
}

// stop ends the goroutine of start and waits for it.
func (r *receiving) stop() {
	if r.cancel != nil {
		r.cancel()
		r.wg.Wait()
		r.cancel = nil
	}
}

// mine reports whether this process should receive.
func (r *receiving) mine() bool {
	return r.l.Whole() || r.stamp.Leader(geo.FirstRange(geo.Catalog)) != nil
}

// poll waits until a condition holds; false if ctx ended first.
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

// run receives until ctx ends or another process should receive.
func (r *receiving) run(ctx context.Context, conn *natsbus.Conn) {
	l := r.l
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consumer, err := natsbus.OpenConsumer(conn, natsbus.Options{
		Source: l.o.Other, Replicas: l.o.Replicas, Bounds: l.o.Bounds, Alarm: l.o.OnAlarm, Log: l.o.Logger,
	})
	if err != nil {
		l.o.Logger.Error("cannot open the stream of the other location; trying again", "origin", l.o.Other, "error", err)
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
