package location

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"antipode/internal/clock"
	"antipode/replication/bus/natsbus"
	"antipode/replication/receive"
	"antipode/replication/site"
	"antipode/secondary"
	"antipode/stamp"
	"antipode/stamp/node"
)

// silenceAfter is how long a source range may send nothing before an alarm.
const silenceAfter = 5 * time.Second

// following carries out what the site of this process decides, while the location runs: see package site.
type following struct {
	clock clock.Clock
	// lead returns the term in which a node here leads the catalog, 0 for none. read returns what the
	// location knows of the incoming stream, within about a second. receive runs a receiver until its context ends.
	lead    func() site.Term
	read    func() (time.Time, error)
	receive func(ctx context.Context, e site.StartReceiver)

	mu   sync.Mutex
	site *site.Machine // guarded by mu

	// end ends the receiver. It belongs to the goroutine of run.
	end context.CancelFunc
	// happened are events of what was begun. A receiver waits until its end is taken.
	happened chan site.Event
	running  sync.WaitGroup
}

func newFollowing(c clock.Clock, o site.Options) *following {
	return &following{clock: c, site: site.New(o), happened: make(chan site.Event)}
}

// run receives whenever this process should, until ctx ends.
func (f *following) run(ctx context.Context) {
	defer f.running.Wait()
	ticker := time.NewTicker(site.LookEvery)
	defer ticker.Stop()
	for {
		f.step(site.Look{Lead: f.lead()})
		select {
		case <-ctx.Done():
			f.step(site.Stop{})
			for !f.stopped() {
				f.step(<-f.happened)
			}
			return
		case <-ticker.C:
		case e := <-f.happened:
			f.step(e)
		}
	}
}

func (f *following) stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, _ := f.site.State()
	return s == site.Stopped
}

// decide returns what is to be done after an event.
func (f *following) decide(e site.Event) []site.Effect {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.site.Step(f.clock.Mono(), e)
}

// step lets the site decide about the receiver and carries that out.
func (f *following) step(e site.Event) {
	for _, e := range f.decide(e) {
		f.carryOut(e)
	}
}

func (f *following) carryOut(e site.Effect) {
	switch e := e.(type) {
	case site.Read:
		known, err := f.read()
		if err != nil {
			f.step(site.Failed(e))
			return
		}
		f.step(site.Known{Term: e.Term, Incarnation: known})
	case site.StartReceiver:
		var ctx context.Context
		ctx, f.end = context.WithCancel(context.Background())
		f.running.Go(func() {
			f.receive(ctx, e)
			f.happened <- site.Ended{Term: e.Term}
		})
	case site.EndReceiver:
		f.end()
	}
}

// receiving is what this process does of the incoming stream, and beside it.
type receiving struct {
	l        *Location
	receiver atomic.Pointer[receive.Receiver]
	cancel   context.CancelFunc // guarded by Location.mu
	wg       sync.WaitGroup
}

// following returns the site of this process on a stamp that is not started.
func (r *receiving) following(s *stamp.Stamp) *following {
	l := r.l
	f := newFollowing(l.o.Clock, site.Options{Whole: l.Whole(), Ranges: l.o.Route.IDs()})
	f.lead = func() site.Term {
		if lead := s.Leader(l.o.Route.Catalog()); lead != nil {
			return site.Term(lead.LeadTerm())
		}
		return 0
	}
	f.read = func() (time.Time, error) { return l.knownIncarnation(context.Background(), s) }
	conn := l.bus.Load().conn
	f.receive = func(ctx context.Context, e site.StartReceiver) { r.run(ctx, s, conn, e.Incarnation) }
	s.OnStart(func(n *node.Node) { l.ship(n, f.decide(site.NodeStarted{Node: n.ID(), Ranges: l.rangesOf(n)})) })
	s.OnStop(func(n *node.Node) { l.unship(n, f.decide(site.NodeStops{Node: n.ID()})) })
	return f
}

// start runs the site, goes on with the operations of accounts, sweeps what is deleted, and keeps queues, until stop.
func (r *receiving) start(s *stamp.Stamp, f *following) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.wg.Go(func() { f.run(ctx) })
	r.wg.Go(func() { r.l.resumeOperations(ctx, s) })
	if r.l.o.Witness != nil {
		r.wg.Go(func() { r.l.releaseClaims(ctx, s) })
	}
	r.wg.Go(func() { r.l.compareGates(ctx, s) })
	r.wg.Go(func() { r.l.settleForks(ctx, s) })
	r.wg.Go(func() { r.l.sweeper(s).Run(ctx) })
	r.wg.Go(func() { r.l.queueing.keeper(s).Run(ctx) })
}

// stop ends the goroutines of start and waits for them.
func (r *receiving) stop() {
	if r.cancel != nil {
		r.cancel()
		r.wg.Wait()
		r.cancel = nil
	}
}

// run receives until ctx ends. The receiver resumes from the cursors, which are durable with the data (R14).
func (r *receiving) run(ctx context.Context, s *stamp.Stamp, conn *natsbus.Conn, incarnation time.Time) {
	l := r.l
	consumer, err := natsbus.OpenConsumer(conn, natsbus.Options{
		Source: l.o.Other, Replicas: l.o.Replicas, Bounds: l.o.Bounds, Alarm: l.o.OnAlarm, Log: l.o.Logger,
		Closed: func() bool { return busClosed(s, l.o.Local) },
	})
	if err != nil {
		l.o.Logger.Error("cannot open the stream of the other location; nothing is received", "origin", l.o.Other, "error", err)
		<-ctx.Done() // The options are wrong, so that trying again is useless.
		return
	}
	var remembering sync.WaitGroup
	defer remembering.Wait()
	receiver := receive.New(receive.Options{
		Origin: l.o.Other, Ranges: l.from.IDs(), Consumer: consumer, Source: l.o.WrapSource(l.far.Source),
		Applier: secondary.NewApplier(s, l.from), Clock: l.o.Clock, SilenceAfter: silenceAfter, Logger: l.o.Logger, Alarm: l.o.OnAlarm,
		Incarnation: incarnation, OnIncarnation: func(made time.Time) {
			remembering.Go(func() { l.rememberIncarnation(ctx, s, made) })
		},
	})
	r.receiver.Store(receiver)
	_ = receiver.Run(ctx) // Run ends with ctx alone.
	r.receiver.Store(nil)
	if err := consumer.Close(); err != nil {
		l.o.Logger.Warn("cannot close the consumer of the stream", "origin", l.o.Other, "error", err)
	}
}
