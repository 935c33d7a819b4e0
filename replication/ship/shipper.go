package ship

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
	"antipode/stamp/extent"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
)

// PayloadPusher puts chunks into the stamp of the other location, ahead of the
// frame that names them. done is called once, from any goroutine.
type PayloadPusher interface {
	Push(refs []extent.Ref, done func(error))
}

// Options configures a Shipper.
type Options struct {
	Location geo.Location
	Range    *ranges.Range
	// Publisher leads to the stream of the other location.
	Publisher bus.Publisher
	Pusher    PayloadPusher
	Clock     clock.Clock
	// Linger is how long a frame that is not full waits for more records while
	// others are on their way. Zero means 2 ms (R12).
	Linger time.Duration
	// RetryAfter is the pause after a failed publish. Zero means 200 ms.
	RetryAfter time.Duration
	// TrimEvery is how often acknowledged records are deleted from the outbox. Zero
	// means 200 ms. A rare trim makes a larger outbox; each costs a group.
	TrimEvery time.Duration
	Logger    *slog.Logger
	// Alarm counts a named alarm.
	Alarm func(reason string)
	// Wake is called, from any goroutine, when Step has work.
	Wake func()
}

func (o Options) withDefaults() Options {
	if o.Linger == 0 {
		o.Linger = 2 * time.Millisecond
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = 200 * time.Millisecond
	}
	if o.TrimEvery == 0 {
		o.TrimEvery = 200 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Alarm == nil {
		o.Alarm = func(string) {}
	}
	return o
}

// Validate reports every field that cannot be used.
func (o Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Linger", o.Linger}, {"RetryAfter", o.RetryAfter}, {"TrimEvery", o.TrimEvery}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("ship: %s is %s: want a time above zero, or zero for the default", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

// Shipper ships one range from one node, while that node leads the range. Step is
// called from one goroutine at a time; Acknowledge from any.
type Shipper struct {
	o    Options
	loop *clock.Loop

	mu sync.Mutex
	// acked is how far the other location has each stream on its replicas.
	acked   map[geo.Stream]geo.Head
	forked  map[geo.Stream]struct{} // confirmed under a lease since the start
	flying  int
	failed  bool
	blocked bool         // the bus was full; the end of a publish makes room
	pushed  []geo.Stream // held-back streams whose payload has arrived
	badPush []geo.Stream

	// Below: Step only.
	leading  bool
	catchUp  bool
	sent     map[geo.Stream]geo.Seq
	closedT  geo.Timestamp // T of the last closed record put into a frame
	fullNext bool
	target   map[geo.Stream]geo.Head
	targetT  geo.Timestamp
	queue    []outbox.Record
	queued   int
	since    time.Duration // when the oldest record entered the queue
	upTo     geo.Timestamp // commit or closed time of the newest event taken
	changed  map[geo.Stream]struct{}
	held     map[geo.Stream][]outbox.Record
	retryAt  time.Duration
	trimAt   time.Duration
	trimming bool
}

// New returns a shipper. It does nothing until stepped. It panics if the options are not valid.
func New(o Options) *Shipper {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	s := &Shipper{o: o.withDefaults(), loop: clock.NewLoop(o.Wake), acked: map[geo.Stream]geo.Head{}, forked: map[geo.Stream]struct{}{}}
	s.o.Range.Feed().OnPush(s.Wake)
	return s
}

// Wake asks for a step soon.
func (s *Shipper) Wake() { s.loop.Wake() }

// Run steps until ctx ends.
func (s *Shipper) Run(ctx context.Context) error {
	s.loop.Run(ctx, s.o.Clock, nil, s.Step)
	return nil
}

// idle is how long Step lets the caller sleep when nothing is due. The range wakes it
// when it begins to lead and when it applied something.
const idle = time.Second

// blockedPause is how long Step waits at most for a full bus; the end of a publish wakes it
// earlier.
const blockedPause = 20 * time.Millisecond

// Step does what is due and returns how long the caller may wait before the next step.
func (s *Shipper) Step(now time.Duration) time.Duration {
	if !s.o.Range.Leading() {
		s.leading = false
		return idle
	}
	added, lost := s.o.Range.Feed().Take()
	if !s.leading {
		s.begin(now)
		lost = true
	}
	s.mu.Lock()
	failed := s.failed
	s.failed = false
	s.mu.Unlock()
	if failed {
		// Publishes in flight may be lost, and later ones out of order: send again everything
		// above what the other location has.
		s.retryAt = now + s.o.RetryAfter
		s.rewind()
		lost = true
	}
	s.trim(now)
	if lost || s.catchUp {
		// The records just taken are in the outbox too, behind those that are not sent yet.
		s.startCatchUp()
	} else {
		s.take(added, now)
	}
	s.release(now)
	if now < s.retryAt {
		return s.retryAt - now
	}
	if s.catchUp && !s.sendBacklog() {
		return blockedPause
	}
	return s.sendQueue(now)
}

// begin starts shipping as the range's new leader: everything not acknowledged is
// sent again, and the first closed record is full.
func (s *Shipper) begin(now time.Duration) {
	s.leading = true
	s.held = map[geo.Stream][]outbox.Record{}
	s.changed = map[geo.Stream]struct{}{}
	s.closedT, s.upTo = 0, 0
	s.trimAt = now + s.o.TrimEvery
	s.trimming = false
	s.rewind()
}

// rewind forgets what was sent beyond what is acknowledged.
func (s *Shipper) rewind() {
	heads, _ := s.o.Range.Machine.Heads()
	s.sent = make(map[geo.Stream]geo.Seq, len(heads))
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range heads {
		s.sent[st] = max(s.o.Range.Machine.Trimmed(st), s.acked[st].Seq)
	}
	s.pushed, s.badPush = nil, nil
}

// startCatchUp takes the next frames from the outbox, up to the present heads.
func (s *Shipper) startCatchUp() {
	s.queue, s.queued = nil, 0
	clear(s.held)
	s.target, s.targetT = s.o.Range.Machine.Heads()
	s.catchUp, s.fullNext = true, true
}

// take queues what the leader applied, in commit order.
func (s *Shipper) take(added []outbox.Added, now time.Duration) {
	for _, a := range added {
		for _, r := range a.Records {
			s.upTo = max(s.upTo, r.CommitTime)
			s.changed[r.Stream] = struct{}{}
			s.enqueue(r, now)
		}
		if a.Closed != 0 {
			s.upTo = max(s.upTo, a.Closed)
		}
	}
}

// enqueue puts a record into the frame queue, or holds its stream back while the payload it names
// is on its way. Other streams continue.
func (s *Shipper) enqueue(r outbox.Record, now time.Duration) {
	if r.Seq <= s.sent[r.Stream] {
		return
	}
	waiting, isHeld := s.held[r.Stream]
	if isHeld || r.Chunks {
		s.held[r.Stream] = append(waiting, r)
		if !isHeld {
			s.push(r)
		}
		return
	}
	s.put(r, now)
}

func (s *Shipper) put(r outbox.Record, now time.Duration) {
	if len(s.queue) == 0 {
		s.since = now
	}
	s.queue = append(s.queue, r)
	s.queued += len(r.Bytes)
	s.sent[r.Stream] = r.Seq
}

// push sends a record's payload ahead.
func (s *Shipper) push(r outbox.Record) {
	rec, err := change.ParseRecord(r.Bytes)
	if err != nil {
		s.o.Logger.Error("record in memory does not parse", "stream", r.Stream, "seq", r.Seq, "error", err)
		return
	}
	st := r.Stream
	s.o.Pusher.Push(rec.Chunks, func(err error) {
		s.mu.Lock()
		if err == nil {
			s.pushed = append(s.pushed, st)
		} else {
			s.badPush = append(s.badPush, st)
		}
		s.mu.Unlock()
		s.Wake()
	})
}

// release queues the records of held-back streams whose payload has arrived. If a push failed,
// the record is sent without it, and the receiver fetches the payload itself.
func (s *Shipper) release(now time.Duration) {
	s.mu.Lock()
	ready := append(s.pushed, s.badPush...)
	s.pushed, s.badPush = nil, nil
	s.mu.Unlock()
	for _, st := range ready {
		waiting := s.held[st]
		delete(s.held, st)
		for i, r := range waiting {
			if i > 0 && r.Chunks {
				s.held[st] = waiting[i:]
				s.push(r)
				break
			}
			s.put(r, now)
		}
	}
}
