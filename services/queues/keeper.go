package queues

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// A Keeper is the queue manager of protocol/queue.md 13: it deletes messages that have expired and the rows of subqueues that
// are to be deleted, finishes changes that were stopped half way, and scales queues (22 to 25). Each process keeps the ranges
// of the queue service that it leads, of accounts whose primary is here: the expired messages of the subqueues in them, and
// the queues whose dictionaries are in them. Every change is a command that is right also if others do the same at the same
// time, and leaves a state with which another Keeper goes on; so a Keeper remembers nothing that matters.

// Bounds of a step.
const (
	// keepRest is the pause between two steps, keepEvery between two rounds over all ranges.
	keepRest  = 50 * time.Millisecond
	keepEvery = 10 * time.Second
	// keepWait bounds how long a step waits for commits. What it does not finish is found again.
	keepWait = 5 * time.Second
	// busyMax bounds the queues of which a Keeper remembers that they were busy.
	busyMax = 10_000
)

// Act is what a Keeper did with a subqueue to scale its queue. Metrics have it as a label.
type Act string

// The acts.
const (
	ActAdded   Act = "added"
	ActDrained Act = "drained"
	ActRemoved Act = "removed"
)

// Acts returns all of them.
func Acts() []Act { return []Act{ActAdded, ActDrained, ActRemoved} }

// KeeperOptions configures a Keeper.
type KeeperOptions struct {
	// Leader returns a range at its leader, nil while no node of this process leads it.
	Leader func(geo.RangeID) *ranges.Range
	Scale  ScaleOptions
	// Every is the pause between two rounds. Zero means 10 s.
	Every  time.Duration
	Logger *slog.Logger
	// Scaled is called after each change of scaling. May be nil.
	Scaled func(Act)
}

// Keeper keeps the queues of the ranges that this process leads. Step is called by one goroutine.
type Keeper struct {
	o KeeperOptions
	s *Service
	// round is the round under way, nextRound when the next one may begin.
	round     walk
	nextRound time.Duration
	// led are the ranges that this process led last, began since when. busy is when a queue was seen to be busy last.
	led   []geo.RangeID
	began time.Duration
	busy  map[Queue]time.Duration
	// window is when the window under way began. loads are what the one before counted, due the queues to look at for it.
	window time.Duration
	loads  map[Subqueue]load
	due    []Queue
}

// NewKeeper returns a keeper of what a service has.
func NewKeeper(s *Service, o KeeperOptions) *Keeper {
	o.Scale = o.Scale.withDefaults()
	o.Every = cmp.Or(o.Every, keepEvery)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Scaled == nil {
		o.Scaled = func(Act) {}
	}
	now := s.o.Clock.Mono()
	return &Keeper{o: o, s: s, began: now, window: now, busy: map[Queue]time.Duration{}}
}

// Run keeps until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	for rest := keepRest; clock.Wait(ctx, rest) == nil; {
		step, end := context.WithTimeout(ctx, keepWait)
		rest = k.Step(step)
		end()
	}
}

// Step does a bounded part of the work, waits for its commits, and returns after how long it wants to be called again.
func (k *Keeper) Step(ctx context.Context) (rest time.Duration) {
	now := k.s.o.Clock.Mono()
	k.observe(now)
	var err error
	switch {
	case len(k.due) > 0:
		q := k.due[0]
		k.due = k.due[1:]
		_, err = k.keep(ctx, q)
	case now < k.nextRound:
		return max(keepRest, min(k.nextRound, k.window+k.o.Scale.Window)-now)
	default:
		err = k.goOn(ctx, now)
	}
	for _, usual := range []error{nil, kv.ErrBusy, kv.ErrUnknown, ErrStale, storageerr.QueueNotFound} { // Another one was faster, or it is tried again.
		if errors.Is(err, usual) {
			return keepRest
		}
	}
	if ctx.Err() == nil {
		k.o.Logger.Warn("cannot keep a queue; tried again", "error", err)
	}
	return keepRest
}

// observe ends the window if it is over: it looks for queues that are busy, and for those that have to be looked at.
func (k *Keeper) observe(now time.Duration) {
	var led []geo.RangeID
	for _, d := range k.s.o.Stamp.Route().Service(geo.Queue) {
		if k.o.Leader(d.ID) != nil {
			led = append(led, d.ID)
		}
	}
	if !slices.Equal(led, k.led) {
		k.led, k.began = led, now // What came while others led is not known here.
	}
	took := now - k.window
	if took < k.o.Scale.Window {
		return
	}
	k.window, k.loads = now, k.s.loads.take(k.o.Scale.Window, took)
	maps.DeleteFunc(k.busy, func(_ Queue, at time.Duration) bool { return now-at > k.o.Scale.DownQuiet })
	for at, l := range k.loads {
		if !k.o.Scale.quiet(l) && (len(k.busy) < busyMax || k.busy[at.Queue] != 0) {
			k.busy[at.Queue] = now
		}
		if k.o.Scale.up(l) && slices.Contains(led, k.rangeOf(at)) {
			k.look(at.Queue)
		}
	}
	slices.SortFunc(k.due, Queue.compare)
}

func (k *Keeper) rangeOf(at Subqueue) geo.RangeID { return k.s.o.Stamp.Route().Of(at.Partition()) }

// look has a step look at a queue.
func (k *Keeper) look(q Queue) {
	if !slices.Contains(k.due, q) && len(k.due) < busyMax {
		k.due = append(k.due, q)
	}
}

func (q Queue) compare(other Queue) int {
	return cmp.Or(cmp.Compare(q.Account, other.Account), cmp.Compare(q.Name, other.Name),
		cmp.Compare(q.Generation.Epoch, other.Generation.Epoch), cmp.Compare(q.Generation.Created, other.Generation.Created))
}

// keep does what is to be done for a queue, one thing at a time. more: there are other things.
func (k *Keeper) keep(ctx context.Context, q Queue) (more bool, err error) {
	d, err := k.s.dictionary(ctx, q, true)
	if err != nil {
		return false, err
	}
	heads, err := k.s.counts(ctx, k.s.o.Stamp, q, d.Subqueues)
	if err != nil {
		return false, err
	}
	if s := settle(d, heads); s.any() {
		return true, k.s.settle(ctx, q, s)
	}
	if len(d.with(StateToBeDeleted)) > 0 {
		return k.s.Collect(ctx, q)
	}
	seen := observation{schema: schemaCurrent, since: k.s.o.Clock.Now().Sub(d.Changed.Time()), rooms: k.s.rooms(q)}
	seen.quiet = k.s.o.Clock.Mono() - max(k.began, k.busy[q])
	for i, e := range d.Subqueues {
		at := Subqueue{q, e.ID}
		in := k.rangeOf(at)
		seen.subqueues = append(seen.subqueues, observed{e, heads[i], k.loads[at], in})
		if !slices.Contains(k.led, in) {
			seen.quiet = 0 // Its leader alone knows that.
		}
	}
	return false, k.scale(ctx, q, d, k.o.Scale.decide(&seen))
}

// scale carries out a decision that was made on a dictionary.
func (k *Keeper) scale(ctx context.Context, q Queue, d *Dictionary, do decision) (err error) {
	var act Act
	switch do.action {
	case nothing:
		return nil
	case add:
		act = ActAdded
		do.id, err = k.s.addSubqueue(ctx, q, d, do.rooms)
	case drain:
		act, err = ActDrained, k.s.setState(ctx, q, d, do.id, StateAllExceptPut)
	case remove:
		act, err = ActRemoved, k.s.setState(ctx, q, d, do.id, StateToBeDeleted)
	}
	if err != nil {
		return err
	}
	k.o.Scaled(act)
	k.o.Logger.Info("a queue is scaled", "account", string(q.Account), "queue", q.Name, "subqueue", do.id.String(),
		"act", string(act), "range", k.rangeOf(Subqueue{q, do.id}), "why", do.why, "subqueues", len(d.Subqueues))
	return nil
}
