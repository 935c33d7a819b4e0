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
	"antipode/replication/pace"
	"antipode/stamp/change"
	"antipode/stamp/extent"
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
	// RetryAfter is the pause after a failed publish. Zero means 200 ms. While the bus is full
	// the pause doubles, up to eight times this, since each attempt costs a frame of bandwidth.
	RetryAfter time.Duration
	// TrimEvery is how often acknowledged records are deleted from the outbox. Zero
	// means 200 ms. A rare trim makes a larger outbox; each costs a group.
	TrimEvery time.Duration
	// Bounds of the memory of one Shipper; docs/limits.md has them all.
	Bounds
	// Budget bounds what the outbox holds on disk.
	Budget Budget
	Logger *slog.Logger
	// Alarm counts a named alarm.
	Alarm func(reason string)
	// Wake is called, from any goroutine, when Step has work.
	Wake func()
	// Withheld reports that the other location cannot take the records of a stream now: see withheld.go. It is called
	// for each record, from any goroutine. Nil withholds nothing.
	Withheld func(st geo.Stream) bool
}

// Bounds are what one Shipper may hold in memory, and have under way.
type Bounds struct {
	// FrameBytesMax is where a frame is cut, in bytes. A larger record goes alone. Zero means
	// change.FrameBytesMax.
	FrameBytesMax int
	// QueueBytesMax bounds the records that wait for a frame, in bytes. Past it they are dropped
	// and read from the outbox later. Zero means 4 MiB. A low one costs reads on a slow link.
	QueueBytesMax int
	// AheadBytesMax bounds what is read ahead from the outbox, for all streams together, in bytes.
	// Zero means 4 MiB. A low one makes records of many streams be read twice.
	AheadBytesMax int
	// FlyingMax bounds the frames under way, and FlyingBytesMax their bytes; a larger frame flies
	// alone. Zero means 16 frames, a fair share for four ranges of the bus's window of 64, and 8 MiB.
	FlyingMax      int
	FlyingBytesMax int
	// FlyingBytesFirst bounds the bytes under way until it is known how long the bus takes: see pace.Window. Zero
	// means 512 KiB. A high one blocks a narrow line at each start.
	FlyingBytesFirst int
	// PushesMax bounds the records whose payload is being pushed, and PushBytesMax the bytes of that
	// payload, small (SmallPush) and large apart; more payload is pushed alone. Other streams wait, held back, in
	// the outbox. Zero means 32 records and 64 MiB.
	PushesMax    int
	PushBytesMax int64
	// FullBytesMax is the size of a full closed record, in bytes, above which a frame does not carry
	// it and the receiver pulls it in pages. Zero means 4 MiB, some 60,000 streams.
	FullBytesMax int
}

func (o Options) withDefaults() Options {
	setDefault(&o.Linger, 2*time.Millisecond)
	setDefault(&o.RetryAfter, 200*time.Millisecond)
	setDefault(&o.TrimEvery, 200*time.Millisecond)
	setDefault(&o.FrameBytesMax, change.FrameBytesMax)
	setDefault(&o.QueueBytesMax, 4<<20)
	setDefault(&o.AheadBytesMax, 4<<20)
	setDefault(&o.FlyingMax, 16)
	setDefault(&o.FlyingBytesMax, 8<<20)
	setDefault(&o.FlyingBytesFirst, 512<<10)
	setDefault(&o.PushesMax, 32)
	setDefault(&o.PushBytesMax, 64<<20)
	setDefault(&o.FullBytesMax, 4<<20)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Alarm == nil {
		o.Alarm = func(string) {}
	}
	return o
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
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
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"FrameBytesMax", int64(o.FrameBytesMax)},
		{"QueueBytesMax", int64(o.QueueBytesMax)},
		{"AheadBytesMax", int64(o.AheadBytesMax)},
		{"FlyingMax", int64(o.FlyingMax)},
		{"FlyingBytesMax", int64(o.FlyingBytesMax)},
		{"FlyingBytesFirst", int64(o.FlyingBytesFirst)},
		{"PushesMax", int64(o.PushesMax)},
		{"PushBytesMax", o.PushBytesMax},
		{"FullBytesMax", int64(o.FullBytesMax)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("ship: %s is %d: want a number above zero, or zero for the default", f.name, f.value))
		}
	}
	return errors.Join(append(errs, o.Budget.validate()...)...)
}

// Shipper ships one range from one node, while that node leads the range. Step is
// called from one goroutine at a time; Acknowledge, Full, View and Dropped from any.
//
// Records come first from the backlog, which reads the outbox, and after it from the queue, which
// the range feeds. Both give the records of the range in commit order:
//
//	begin ──> backlog, up to the heads as of its start ──> queue
//	queue over its bound: dropped ──> backlog, up to the heads of then ──> queue
//
// A record that names payload holds its stream back: the stream's records are left out of the frames
// and sent, late, from the outbox once the payload is there. They are named in closed records all the
// same.
type Shipper struct {
	o    Options
	loop *clock.Loop
	// read reads the outbox: a seam for tests.
	read func(s geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error)

	mu sync.Mutex
	// acked is how far the other location has each stream on its replicas, of those with records
	// that may go for it.
	acked    map[geo.Stream]geo.Head
	stops    stops
	trimming bool
	// named is the last record of each stream that is in a frame, or held back: what a closed record
	// names. Step alone writes it.
	named map[geo.Stream]geo.Head
	// closedT and closedWall are T and the wall of the last closed record put into a frame.
	closedT, closedWall geo.Timestamp
	dropped             Dropped
	air                 air
	// arrived are holds whose push has ended.
	arrived []push
	rebuild bool

	// Below: Step only.
	leading  bool
	upTo     geo.Timestamp // commit or closed time of the newest event put into a frame, or named
	wall     geo.Timestamp // that of the newest event with one: see event
	fullNext bool
	// ledFrom is the newest time of the range as it began to lead, and shown reports that a full closed record of a
	// later time went out: see firstOwn.
	ledFrom geo.Timestamp
	shown   bool
	// fullAt is when a full closed record is due again, fullPause how long after the last one.
	fullAt, fullPause time.Duration
	changed           map[geo.Stream]struct{} // named since the last closed record
	queue             queue
	backlog           *backlog // nil if the queue has what follows
	early             early
	// lost reports that what follows the backlog, or the last frame, is no longer in the queue.
	lost   bool
	holds  holds
	trimAt time.Duration
	keeper *keeper
}

// Dropped counts what left the queue for lack of room, to be read from the outbox.
type Dropped struct{ Times, Records, Bytes int64 }

// New returns a shipper. It does nothing until stepped. It panics if the options are not valid.
func New(o Options) *Shipper {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	s := &Shipper{
		o: o.withDefaults(), loop: clock.NewLoop(o.Wake), read: o.Range.Machine.Outbox,
		acked: map[geo.Stream]geo.Head{},
	}
	s.keeper = newKeeper(o.Budget, o.Range, s.Wake)
	s.o.Range.Feed().OnPush(s.Wake)
	return s
}

// Dropped returns what left the queue for lack of room since the start.
func (s *Shipper) Dropped() Dropped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
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

// blockedPause is how long Step waits at most for room on the bus; the end of a publish wakes it
// earlier.
const blockedPause = 20 * time.Millisecond

// fullPauseLeast and fullPauseMost bound the pause between full closed records: see repeatFull.
const (
	fullPauseLeast = 5 * time.Second
	fullPauseMost  = 5 * time.Minute
)

// Step does what is due and returns how long the caller may wait before the next step.
func (s *Shipper) Step(now time.Duration) time.Duration {
	s.reportUnsure()
	if !s.o.Range.Leading() {
		s.end()
		return idle
	}
	added, lost := s.o.Range.Feed().Take()
	if s.rebuilds() {
		s.end()
	}
	switch {
	case !s.leading:
		s.begin(now)
	case lost:
		s.drop()
	default:
		s.take(added, now)
	}
	s.trim(now)
	s.keep(now)
	s.endPushes()
	s.endWithheld(now)
	next := s.send(now)
	if len(s.holds.withheld) > 0 {
		next = min(next, withheldEvery)
	}
	return next
}

// begin starts shipping as the range's new leader: everything not acknowledged is
// sent again, and the first closed record is full.
func (s *Shipper) begin(now time.Duration) {
	s.leading, s.lost, s.fullNext = true, true, true
	s.upTo, s.wall, s.changed, s.early = 0, 0, map[geo.Stream]struct{}{}, early{}
	s.trimAt = now + s.o.TrimEvery
	s.fullAt, s.fullPause = now+fullPauseLeast, fullPauseLeast
	heads, last := s.o.Range.Machine.Heads()
	s.ledFrom, s.shown = last, false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimming = false
	s.holds.of = map[geo.Stream]*hold{}
	s.closedT, s.closedWall = 0, 0
	s.air.window = pace.Window{Bytes: s.o.FlyingBytesFirst, Least: windowLeast, Most: s.o.FlyingBytesMax}
	s.named = make(map[geo.Stream]geo.Head, len(heads))
	for st, head := range heads {
		at := s.acked[st]
		if n := s.o.Range.Machine.Trimmed(st); n > at.Seq {
			at = geo.Head{Seq: n} // The record behind it has its hash: see openBacklog.
		}
		if at.Seq == head.Seq {
			at = head
		}
		s.named[st] = at
	}
}

// end forgets everything but the acknowledgements: the range is led elsewhere.
func (s *Shipper) end() {
	if !s.leading {
		return
	}
	s.leading, s.backlog, s.queue, s.changed = false, nil, queue{}, nil
	s.keeper.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds.of, s.holds.late, s.holds.withheld, s.holds.small.waiting, s.holds.large.waiting = nil, nil, nil, nil, nil
	s.named, s.closedT, s.closedWall = nil, 0, 0
	s.air = air{}
}
