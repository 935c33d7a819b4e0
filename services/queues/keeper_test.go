package queues_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/services/queues"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// stepped is a clock that goes on by hand, so that a test decides when windows and pauses end.
type stepped struct {
	*offset
	mono time.Duration
}

func (c *stepped) Mono() time.Duration { return c.mono }

// pass lets time go by, on both clocks.
func (c *stepped) pass(d time.Duration) {
	c.mono += d
	c.step(d)
}

// kept is a rig whose queues are kept by steps.
type kept struct {
	*rig
	*queues.Keeper
	clock  *stepped
	writer services.Writer
	scale  queues.ScaleOptions
	routed queues.Stamp
	acts   map[queues.Act]int
	// away means that the process does not lead the range.
	away bool
	// expired and cleared count messages that were collected.
	expired, cleared int
	log              strings.Builder
}

// quick are the limits of a queue with a handful of messages.
func quick() queues.ScaleOptions {
	return queues.ScaleOptions{Window: time.Second, UpRate: 30, DownSize: 1000, Cooldown: 2 * time.Second, Max: 4, WithinRange: true}
}

func newKept(t *testing.T) *kept {
	k := &kept{rig: newRig(t), acts: map[queues.Act]int{}, scale: quick()}
	k.clock, k.writer, k.routed = &stepped{offset: k.rig.clock}, k.write, k.stamp
	k.renew()
	return k
}

// renew takes another process in the place of the one that keeps.
func (k *kept) renew() {
	k.Service = queues.New(queues.Options{Stamp: k.routed, Writer: k.writer, Clock: k.clock, Alone: true, Collected: func(n int, expired bool) {
		if expired {
			k.expired += n
		} else {
			k.cleared += n
		}
	}})
	k.Keeper = queues.NewKeeper(k.Service, queues.KeeperOptions{
		Leader: func(id geo.RangeID) *ranges.Range {
			if k.away {
				return nil
			}
			return k.stamp.Leader(geo.RangeID(geo.Queue)) // As seams has them, all are in this one.
		},
		Scale: k.scale, Every: time.Second, Logger: slog.New(slog.NewTextHandler(&k.log, nil)),
		Scaled: func(a queues.Act) { k.acts[a]++ },
	})
}

// keep steps for a while.
func (k *kept) keep(d time.Duration) {
	for until := k.clock.mono + d; k.clock.mono < until; {
		k.clock.pass(max(k.Step(context.Background()), time.Millisecond))
	}
}

// load has so many messages come and go.
func (k *kept) load(t *testing.T, n int) {
	for i := range n {
		m := k.put(t, fmt.Sprint("load", i))
		require.NoError(t, k.Delete(t.Context(), k.queue, m.ID, m.Receipt))
	}
}

func (k *kept) states(t *testing.T) (out []queues.State) {
	for _, e := range k.dictionary(t).Subqueues {
		out = append(out, e.State)
	}
	return out
}

// A queue that is busy gets subqueues, one for each pause, up to the maximum; once it is quiet they drain, those with
// messages wait for these, and they go when they are empty. No message is lost, and everything is counted and logged
// (protocol/queue.md 24).
//
// Capability: Queues: Collection and scaling.
func TestQ13KeeperScales(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.keep(5 * time.Second)
	require.Equal(t, []queues.State{queues.StateAll}, k.states(t))
	for i := range 20 {
		k.put(t, fmt.Sprint(i))
	}
	for range 8 {
		k.load(t, 80)
		k.keep(time.Second)
		require.LessOrEqual(t, len(k.states(t)), 4)
	}
	require.Len(t, k.states(t), 4)
	require.Equal(t, map[queues.Act]int{queues.ActAdded: 3}, k.acts)
	for i := range 20 {
		k.put(t, fmt.Sprint(20+i))
	}
	k.keep(12 * time.Second)
	require.Equal(t, 3, k.acts[queues.ActDrained])
	require.Contains(t, k.states(t), queues.StateAllExceptPut, "it has messages")
	require.ElementsMatch(t, texts(40), k.get(t, 32, time.Hour, 2))
	require.Equal(t, 40, k.count(t))
	k.keep(4 * time.Second)
	require.Contains(t, k.states(t), queues.StateAllExceptPut, "hidden messages are messages")
	k.clock.step(2 * time.Hour)
	for range 2 {
		got, err := k.Get(t.Context(), k.queue, 32, time.Hour)
		require.NoError(t, err)
		for _, m := range got {
			require.NoError(t, k.Delete(t.Context(), k.queue, m.ID, m.Receipt))
		}
	}
	k.keep(10 * time.Second)
	require.Equal(t, []queues.State{queues.StateAll}, k.states(t))
	require.Equal(t, map[queues.Act]int{queues.ActAdded: 3, queues.ActDrained: 3, queues.ActRemoved: 3}, k.acts)
	require.Equal(t, 9, strings.Count(k.log.String(), "a queue is scaled"))
	require.Contains(t, k.log.String(), "commands per second")
}

// Between the limits nothing changes: a queue that is neither busy enough for another subqueue nor quiet stays as it is, and
// becomes smaller once it was quiet for a whole window. What a process did not see, since others led, counts as busy.
//
// Capability: Queues: Collection and scaling.
func TestKeeperWaitsForQuiet(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.change(t, add(7))
	k.clock.pass(time.Hour)
	for range 8 {
		k.load(t, 10)
		k.keep(time.Second)
	}
	require.Empty(t, k.acts)
	k.away = true
	k.keep(time.Hour)
	require.Empty(t, k.acts, "another process leads")
	k.away = false
	k.keep(900 * time.Millisecond)
	require.Empty(t, k.acts, "this process does not know yet")
	k.keep(3 * time.Second)
	require.Equal(t, map[queues.Act]int{queues.ActDrained: 1, queues.ActRemoved: 1}, k.acts)
}

// Polls of an empty queue get it no subqueue, however many there are: each poll would ask that one, too. They do not keep
// a queue from draining either.
//
// Capability: Queues: Hostile clients of queues.
func TestPollsScaleNothing(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	poll := func() {
		for range 8 {
			require.Empty(t, k.get(t, 32, time.Hour, 80))
			k.keep(time.Second)
		}
	}
	poll()
	require.Empty(t, k.acts)
	k.change(t, add(7))
	k.clock.pass(time.Hour)
	poll()
	require.Equal(t, map[queues.Act]int{queues.ActDrained: 1, queues.ActRemoved: 1}, k.acts)
}

func texts(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// get gets so many times.
func (k *kept) get(t *testing.T, limit int, timeout time.Duration, times int) (out []string) {
	for range times {
		out = append(out, k.rig.get(t, limit, timeout)...)
	}
	return out
}

// Q20: messages that have expired are deleted in bounded steps, wherever they stand, and then they are not counted; those that
// live stay. A queue whose dictionary has no row is kept, too.
//
// Capability: Queues: A message behind many that have expired.
// Capability: Queues: Collection and scaling.
func TestQ20KeeperCollectsExpired(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	for i := range 3500 {
		o := queues.PutOptions{Text: []byte("x"), TTL: time.Minute}
		if i%500 == 3 || i < 1200 { // The first are more than a step looks at.
			o.TTL = -1
		}
		_, err := k.Put(t.Context(), k.queue, o)
		require.NoError(t, err)
	}
	k.keep(5 * time.Second)
	require.Equal(t, 3500, k.count(t))
	k.clock.step(time.Hour)
	k.keep(5 * time.Second)
	require.Equal(t, 1204, k.count(t))
	require.Equal(t, 2296, k.expired)
	require.Zero(t, k.cleared)
	require.Len(t, k.get(t, 32, time.Hour, 38), 1204)
}

// Q15: what Clear leaves is deleted in bounded steps, and leaves the dictionary; a Clear that ended in its middle is
// finished without another one.
func TestQ15KeeperCollectsCleared(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	for range 2500 {
		k.put(t, strings.Repeat("x", 3000))
	}
	require.NoError(t, k.Clear(t.Context(), k.queue))
	require.Len(t, k.states(t), 2)
	k.put(t, "after")
	k.keep(3 * time.Second)
	require.Equal(t, []queues.State{queues.StateAll}, k.states(t))
	require.Equal(t, map[byte]int{1: 2, 2: 1, 4: 1}, k.rows(t))
	require.Equal(t, 2500, k.cleared)

	d := k.dictionary(t)
	set(queues.StateToBeDeleted, d.Subqueues[0].ID)(d)
	add(7)(d)
	require.NoError(t, k.do(&queues.Open{Command: k.at(7)}))
	require.NoError(t, k.do(&queues.ChangeDictionary{Queue: k.queue, To: d}))
	k.keep(3 * time.Second)
	require.Equal(t, []queues.State{queues.StateAll}, k.states(t))
	require.Zero(t, k.count(t))
}

// A keeper that is in the middle of a long subqueue goes on where that is cleared, or its messages are deleted, meanwhile.
func TestQ20KeeperLeavesWhatWasCleared(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("slow under the race detector")
	}
	for steps := range 4 {
		k := newKept(t)
		for range 1100 { // More than a step looks at.
			k.put(t, "x")
		}
		for range steps {
			k.clock.pass(k.Step(t.Context()))
		}
		require.NoError(t, k.another().Clear(t.Context(), k.queue))
		_, err := k.Put(t.Context(), k.queue, queues.PutOptions{TTL: time.Second})
		require.NoError(t, err)
		k.keep(5 * time.Second)
		require.Equal(t, []queues.State{queues.StateAll}, k.states(t), steps)
		require.Zero(t, k.count(t), steps)
	}
}

// A location changes nothing of an account whose primary is the other one, nor of a queue that is deleted.
func TestKeeperLeavesCopiesAlone(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	_, err := k.Put(t.Context(), k.queue, queues.PutOptions{Text: []byte("a"), TTL: time.Second})
	require.NoError(t, err)
	require.NoError(t, k.Clear(t.Context(), k.queue))
	_, err = k.Put(t.Context(), k.queue, queues.PutOptions{Text: []byte("b"), TTL: time.Second})
	require.NoError(t, err)
	k.clock.step(time.Hour)
	before := k.dictionary(t).Number
	gate := func(r change.Role, open bool) {
		stamptest.Submit(t, k.stamp, geo.FirstRange(geo.Queue), stamptest.Gate{Account: "acct", Gate: change.Gate{
			Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: r, Open: open,
		}})
	}
	w := &counting{Writer: k.write}
	k.writer = w
	k.renew()
	gate(change.RoleSecondary, true)
	k.keep(3 * time.Second)
	require.Zero(t, w.n)
	gate(change.RolePrimary, false)
	k.keep(3 * time.Second)
	require.Zero(t, w.n, "a failover is under way")
	gate(change.RolePrimary, true)
	require.NoError(t, k.write.CloseGeneration(t.Context(), geo.Queue, "acct", k.queue.Name, k.queue.Generation))
	k.keep(3 * time.Second)
	require.Positive(t, w.n)
	require.Equal(t, before, k.dictionary(t).Number)
	require.NotContains(t, k.log.String(), "cannot keep")
}

type counting struct {
	services.Writer
	n int
}

func (c *counting) Write(ctx context.Context, w services.Write) error {
	c.n++
	return c.Writer.Write(ctx, w)
}

// dying fails, for good, at one of the writes to come, before or after it is committed.
type dying struct {
	services.Writer
	left   int
	before bool
	dead   bool
}

var errDead = fmt.Errorf("the process died: %w", kv.ErrUnknown)

func (d *dying) Write(ctx context.Context, w services.Write) error {
	if d.left--; d.left < 0 && !d.dead {
		d.dead = true
		if !d.before {
			_ = d.Writer.Write(ctx, w)
		}
	}
	if d.dead {
		return errDead
	}
	return d.Writer.Write(ctx, w)
}

// Q1, Q6, Q12, Q13, Q14: a keeper that ends before or behind any of its commits leaves a queue that loses nothing, counts
// right, takes and gives messages, and is finished by the next keeper; forced from 1 to 4 subqueues and back, with clears.
//
// Capability: Queues: Collection and scaling.
func TestQ13KeeperDiesAnywhere(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[string]bool{}
	n := 0
	other := k.another() // A front end that lives.
	use := func(times int) {
		for range times {
			n++
			text := fmt.Sprint(n)
			_, err := other.Put(t.Context(), k.queue, queues.PutOptions{Text: []byte(text), TTL: -1})
			require.NoError(t, err)
			live[text] = true
		}
		got, err := other.Get(t.Context(), k.queue, times, 5*time.Second)
		require.NoError(t, err)
		for _, m := range got {
			require.True(t, live[string(m.Text)], "%s was deleted", m.Text)
			require.NoError(t, other.Delete(t.Context(), k.queue, m.ID, m.Receipt))
			delete(live, string(m.Text))
		}
	}
	for round := range 60 {
		use(5)
		if rng.IntN(4) == 0 {
			require.NoError(t, other.Clear(t.Context(), k.queue))
			clear(live)
		}
		d := &dying{Writer: k.write, left: 1000, before: rng.IntN(2) == 0}
		k.writer = d
		k.renew()
		k.load(t, 20*(round%2)) // It is busy in every second round.
		d.left = rng.IntN(4)
		for range 100 {
			if k.clock.pass(max(k.Step(t.Context()), time.Millisecond)); d.dead {
				break
			}
		}
		require.Equal(t, len(live), k.count(t))
		use(5)
		k.clock.pass(10 * time.Second)
	}
	require.Positive(t, k.acts[queues.ActAdded])
	require.Positive(t, k.acts[queues.ActDrained])
	require.Positive(t, k.acts[queues.ActRemoved])
	k.writer = k.write
	k.renew()
	for range 10 {
		use(0)
		got, err := other.Get(t.Context(), k.queue, 32, time.Hour)
		require.NoError(t, err)
		for _, m := range got {
			require.True(t, live[string(m.Text)])
			require.NoError(t, other.Delete(t.Context(), k.queue, m.ID, m.Receipt))
			delete(live, string(m.Text))
		}
		k.keep(10 * time.Second)
	}
	require.Empty(t, live)
	require.Equal(t, []queues.State{queues.StateAll}, k.states(t))
	require.Zero(t, k.count(t))
	require.Zero(t, k.rows(t)[2])
}
