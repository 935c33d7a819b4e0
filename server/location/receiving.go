package location

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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

// start receives whenever this process should, goes on with the operations of accounts, and sweeps what is deleted,
// until stop.
func (r *receiving) start(s *stamp.Stamp) {
	ctx, cancel := context.WithCancel(context.Background())
	r.stamp, r.cancel = s, cancel
	conn := r.l.bus.Load().conn
	r.wg.Go(func() { follow(ctx, r.mine, func(ctx context.Context) { r.run(ctx, conn) }) })
	r.wg.Go(func() { r.l.resumeOperations(ctx, s) })
	r.wg.Go(func() { r.l.sweeper(s).Run(ctx) })
}

// stop ends the goroutines of start and waits for them.
func (r *receiving) stop() {
	if r.cancel != nil {
		r.cancel()
		r.wg.Wait()
		r.cancel = nil
	}
}

// mine reports whether this process should receive.
func (r *receiving) mine() bool {
	return r.l.Whole() || r.stamp.Leader(r.l.o.Route.Catalog()) != nil
}

// follow runs f whenever mine holds, until ctx ends. The context of f ends when mine no longer holds;
// f must not return before.
func follow(ctx context.Context, mine func() bool, f func(ctx context.Context)) {
	for poll(ctx, mine) {
		term, end := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { f(term) })
		poll(ctx, func() bool { return !mine() })
		end()
		running.Wait()
	}
}

// poll waits until a condition holds; false if ctx ended first.
func poll(ctx context.Context, until func() bool) bool {
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

// run receives until ctx ends.
func (r *receiving) run(ctx context.Context, conn *natsbus.Conn) {
	l := r.l
	consumer, err := natsbus.OpenConsumer(conn, natsbus.Options{
		Source: l.o.Other, Replicas: l.o.Replicas, Bounds: l.o.Bounds, Alarm: l.o.OnAlarm, Log: l.o.Logger,
	})
	if err != nil {
		l.o.Logger.Error("cannot open the stream of the other location; nothing is received", "origin", l.o.Other, "error", err)
		<-ctx.Done() // The options are wrong, so that trying again is useless.
		return
	}
	receiver := receive.New(receive.Options{
		Origin: l.o.Other, Ranges: l.o.Route.IDs(), Consumer: consumer, Source: l.o.WrapSource(l.far.Source),
		Applier: secondary.NewApplier(r.stamp), Clock: l.o.Clock, SilenceAfter: silenceAfter, Logger: l.o.Logger, Alarm: l.o.OnAlarm,
		Incarnation: l.knownIncarnation(), OnIncarnation: l.rememberIncarnation,
	})
	r.receiver.Store(receiver)
	_ = receiver.Run(ctx) // Run ends with ctx alone.
	r.receiver.Store(nil)
	if err := consumer.Close(); err != nil {
		l.o.Logger.Warn("cannot close the consumer of the stream", "origin", l.o.Other, "error", err)
	}
}
