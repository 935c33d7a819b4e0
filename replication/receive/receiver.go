package receive

import (
	"context"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
)

// Receiver takes the stream of one origin. Step is called from one goroutine at a
// time.
//
// The silence of the stream and of the source is measured in running time, here called ran:
// while the process stood still there could be no contact.
type Receiver struct {
	o       Options
	seen    *observer
	loop    *clock.Loop
	running *clock.Running
	names   change.Names

	mu sync.Mutex
	// events are results of commits, pulls and acknowledgements, to be handled by
	// Step in the order they came.
	events []func(now time.Duration)
	// ahead are the ranges of which something waits for the clock here (R6), until when at least.
	ahead map[geo.RangeID]time.Duration

	ranges      map[geo.RangeID]*rangeReceiver
	order       []*rangeReceiver
	window      window
	chunks      chunks
	incarnation time.Time
	// failing is true if the last poll got no answer, since failingSince in running time;
	// unavailable is true once the alarm was raised for it.
	failing      bool
	failingSince time.Duration
	unavailable  bool
}

// New returns a receiver. It does nothing until stepped. It panics if the options are not valid.
func New(o Options) *Receiver {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	seen := observe(&o)
	r := &Receiver{
		o: o, seen: seen, loop: clock.NewLoop(o.Wake), running: clock.NewRunning(checkEvery), ranges: map[geo.RangeID]*rangeReceiver{}, incarnation: o.Incarnation,
		ahead: map[geo.RangeID]time.Duration{},
	}
	for _, id := range o.Ranges {
		rr := &rangeReceiver{
			r: r, src: geo.SourceRange{Origin: o.Origin, Range: id}, pulls: newPulls(r.o.PullBytesMax / len(o.Ranges)), mirror: newMirror(),
			waiting: waiting{share: min(r.o.PendingBytesMax, r.o.WindowBytesMax/len(o.Ranges))},
			stopped: map[geo.Stream]change.StopReason{}, again: map[geo.Stream]*again{}, refused: map[geo.Stream]struct{}{}, unreported: map[geo.Stream]geo.Seq{},
			acks: acks{lost: map[geo.Stream]geo.Seq{}, below: map[geo.Stream]geo.Seq{}},
		}
		r.ranges[id] = rr
		r.order = append(r.order, rr)
	}
	return r
}

// Wake asks for a step soon.
func (r *Receiver) Wake() { r.loop.Wake() }

// post queues the result of a callback for the next Step.
func (r *Receiver) post(f func(now time.Duration)) {
	r.mu.Lock()
	r.events = append(r.events, f)
	r.mu.Unlock()
	r.Wake()
}

// Run steps until ctx ends. A second goroutine waits for the bus.
func (r *Receiver) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	arrived := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		r.watch(ctx, arrived)
	}()
	defer wg.Wait()
	defer cancel()
	r.loop.Run(ctx, r.o.Clock, arrived, r.Step)
	return nil
}

// watch wakes the step loop for arrivals, one at a time.
func (r *Receiver) watch(ctx context.Context, arrived chan<- struct{}) {
	for ctx.Err() == nil {
		if err := r.o.Consumer.Wait(ctx); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(r.o.RetryAfter):
			}
			continue
		}
		select {
		case <-ctx.Done():
		case arrived <- struct{}{}:
		}
	}
}

// Step does what is due and returns how long the caller may wait before the next step.
func (r *Receiver) Step(now time.Duration) time.Duration {
	ran := r.running.Advance(now)
	r.mu.Lock()
	events := r.events
	r.events = nil
	r.mu.Unlock()
	for _, f := range events {
		f(now)
	}
	r.fetch(ran)
	next := checkEvery
	for _, rr := range r.order {
		next = min(next, rr.step(now, ran))
	}
	r.acknowledge()
	return next
}
