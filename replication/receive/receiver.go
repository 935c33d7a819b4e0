package receive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/stamp/change"
)

// Alarm reasons of the receiving side.
const (
	AlarmGap         = "gap"         // records are missing in the stream and are pulled
	AlarmFork        = "fork"        // this location holds another record under a number
	AlarmChecksum    = "bad_crc"     // a frame or record does not fit its CRC32C
	AlarmEpoch       = "epoch"       // a record of a lower epoch or another origin was refused
	AlarmIncarnation = "incarnation" // the stream was deleted and made again
	AlarmSilence     = "silence"     // no contact with a range for longer than it may be silent
	AlarmUnavailable = "unavailable" // the bus did not answer for as long
)

// Options configures a Receiver.
type Options struct {
	// Origin is the location the stream comes from.
	Origin   geo.Location
	Ranges   []geo.RangeID
	Consumer bus.Consumer
	Source   Source
	Applier  Applier
	Clock    clock.Clock
	// BatchBytesMax bounds what is committed in one group. Zero means 1 MiB.
	BatchBytesMax int
	// PendingBytesMax bounds the records that wait, per range. A receiver that reaches it stops
	// fetching, and the bus holds the backlog (R15). Zero means 4 MiB.
	PendingBytesMax int
	// BehindGrace is how long a stream may stand below a closed head, while this process
	// runs, before its records are pulled. Zero means 500 ms.
	BehindGrace time.Duration
	// RetryAfter is the pause after a failed pull, push or commit. Zero means 200 ms.
	RetryAfter time.Duration
	// AckEvery is how often cursors are sent to the source. Zero means 20 ms.
	AckEvery time.Duration
	// Incarnation is the value that OnIncarnation got last, perhaps before a restart. Zero means
	// that none is known.
	Incarnation time.Time
	// OnIncarnation gets the incarnation of the stream when it differs from the known one. May be
	// nil.
	OnIncarnation func(time.Time)
	// SilenceAfter is how long a range may send nothing, or the bus may not answer, while this
	// process runs. Zero turns these alarms off.
	SilenceAfter time.Duration
	Logger       *slog.Logger
	Alarm        func(reason string)
	Wake         func()
}

func (o Options) withDefaults() Options {
	setDefault(&o.BatchBytesMax, 1<<20)
	setDefault(&o.PendingBytesMax, 4<<20)
	setDefault(&o.BehindGrace, 500*time.Millisecond)
	setDefault(&o.RetryAfter, 200*time.Millisecond)
	setDefault(&o.AckEvery, 20*time.Millisecond)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Alarm == nil {
		o.Alarm = func(string) {}
	}
	if o.OnIncarnation == nil {
		o.OnIncarnation = func(time.Time) {}
	}
	return o
}

// Validate reports every field that cannot be used.
func (o Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{{"BatchBytesMax", o.BatchBytesMax}, {"PendingBytesMax", o.PendingBytesMax}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("receive: %s is %d: want bytes above zero, or zero for the default", f.name, f.value))
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"BehindGrace", o.BehindGrace}, {"RetryAfter", o.RetryAfter}, {"AckEvery", o.AckEvery}, {"SilenceAfter", o.SilenceAfter}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("receive: %s is %s: want a time above zero, or zero for the default", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Receiver takes the stream of one origin. Step is called from one goroutine at a
// time.
//
// The silence of the stream and of the source is measured in running time, here called ran:
// while the process stood still there could be no contact.
type Receiver struct {
	o       Options
	loop    *clock.Loop
	running *clock.Running

	mu sync.Mutex
	// events are results of commits, pulls and acknowledgements, to be handled by
	// Step in the order they came.
	events []func(now time.Duration)
	forked map[geo.Stream]struct{}

	ranges map[geo.RangeID]*rangeReceiver
	order  []*rangeReceiver
	// unacked are the messages not yet acknowledged to the bus, oldest first.
	unacked     []*pending
	incarnation time.Time
	// failing is true if the last poll got no answer, since failingSince in running time;
	// unavailable is true once the alarm was raised for it.
	failing      bool
	failingSince time.Duration
	unavailable  bool
}

// pending is a fetched message.
type pending struct {
	msg  bus.Message
	open int // records and closed record that are not handled yet
}

// New returns a receiver. It does nothing until stepped. It panics if the options are not valid.
func New(o Options) *Receiver {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	r := &Receiver{
		o: o.withDefaults(), loop: clock.NewLoop(o.Wake), running: clock.NewRunning(checkEvery), ranges: map[geo.RangeID]*rangeReceiver{}, incarnation: o.Incarnation,
		forked: map[geo.Stream]struct{}{},
	}
	for _, id := range o.Ranges {
		rr := &rangeReceiver{
			r: r, src: geo.SourceRange{Origin: o.Origin, Range: id}, pulls: map[geo.Stream]*pull{}, behind: map[geo.Stream]time.Duration{},
			toAck: true, // The source compares heads at start (R16).
		}
		r.ranges[id] = rr
		r.order = append(r.order, rr)
	}
	return r
}

// Forked reports whether a stream of an account in a source range has forked (R16). It
// may be called concurrently with Step.
func (r *Receiver) Forked(id geo.RangeID, a geo.Account) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for st := range r.forked {
		if st.Range == id && st.Account == a {
			return true
		}
	}
	return false
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

// pollMax bounds one fetch; with frames of at most 8 MiB it also bounds by how much
// a range may go over PendingBytesMax.
const pollMax = 8

// fetch takes frames from the bus while there is room.
func (r *Receiver) fetch(ran time.Duration) {
	for {
		for _, rr := range r.order {
			if rr.bytes >= r.o.PendingBytesMax {
				return
			}
		}
		batch, err := r.o.Consumer.Poll(pollMax)
		if err != nil {
			r.unanswered(err, ran)
			return
		}
		r.failing, r.unavailable = false, false
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			r.accept(m, ran)
		}
	}
}

// unanswered raises an alarm, once, when the bus does not answer for too long. Some seconds
// without an answer are usual at the start and while its servers elect a leader.
func (r *Receiver) unanswered(err error, ran time.Duration) {
	if !r.failing {
		r.failing, r.failingSince = true, ran
	}
	limit := r.o.SilenceAfter
	if limit == 0 || r.unavailable || ran-r.failingSince < limit {
		return
	}
	r.unavailable = true
	r.o.Alarm(AlarmUnavailable)
	r.o.Logger.Error("the stream does not answer; Last Sync Time stands still until its servers are back",
		"origin", r.o.Origin, "error", err)
}

// accept splits one message into its records and its closed record.
func (r *Receiver) accept(m bus.Message, ran time.Duration) {
	if !m.Incarnation.Equal(r.incarnation) {
		if !r.incarnation.IsZero() {
			r.o.Alarm(AlarmIncarnation)
			r.o.Logger.Warn("the stream was deleted and made again; what it lost is pulled", "origin", r.o.Origin)
			r.unacked = nil // Sequence numbers of the old stream mean nothing in the new one.
		}
		r.incarnation = m.Incarnation
		r.o.OnIncarnation(m.Incarnation)
	}
	p := &pending{msg: m}
	r.unacked = append(r.unacked, p)
	f, err := change.ParseFrame(m.Data)
	rr := r.ranges[f.Range]
	switch {
	case err != nil:
		r.o.Alarm(AlarmChecksum)
		r.o.Logger.Error("frame refused; what it held is pulled", "seq", m.Seq, "error", err)
		return
	case f.Origin != r.o.Origin || rr == nil:
		r.o.Alarm(AlarmEpoch)
		r.o.Logger.Error("frame of a foreign origin or range refused", "origin", f.Origin, "range", f.Range)
		return
	}
	rr.contact = ran
	for _, b := range f.Records {
		rec, err := change.ParseRecord(b)
		if err != nil {
			r.o.Alarm(AlarmChecksum)
			r.o.Logger.Error("record refused; it is pulled", "range", f.Range, "error", err)
			continue
		}
		p.open++
		rr.bytes += len(b)
		rr.frames = append(rr.frames, item{from: p, rec: &Record{Bytes: b, Record: rec}})
	}
	if f.Closed != nil {
		p.open++
		rr.frames = append(rr.frames, item{from: p, closed: f.Closed})
	}
}

// acknowledge confirms to the bus the longest prefix of messages that is done.
func (r *Receiver) acknowledge() {
	n := 0
	for n < len(r.unacked) && r.unacked[n].open == 0 {
		n++
	}
	if n == 0 {
		return
	}
	if err := r.o.Consumer.Ack(r.unacked[n-1].msg); err != nil {
		r.o.Logger.Debug("acknowledgement lost; the stream delivers again", "error", err)
	}
	r.unacked = append(r.unacked[:0:0], r.unacked[n:]...)
}
