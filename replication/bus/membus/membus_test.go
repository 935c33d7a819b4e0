package membus

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/replication/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type suite struct {
	clk *clock.Manual
	c   *Bus
}

func (s suite) Publisher(*testing.T) bus.Publisher { return s.c.OpenPublisher() }
func (s suite) Consumer(*testing.T) bus.Consumer   { return s.c.OpenConsumer() }
func (s suite) Recreate(*testing.T)                { s.c.Wipe() }
func (s suite) Step()                              { s.c.Deliver() }
func (s suite) Pass(d time.Duration)               { s.clk.Advance(d) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// The in-memory bus keeps the promises of every bus.
// It holds invariant 8.
func TestConformance(t *testing.T) {
	bustest.Run(t, func(_ *testing.T, b bus.Bounds) bustest.Bus {
		clk := clock.NewManual(start)
		return suite{clk, New(clk, b)}
	})
}

// rig is a bus with one publisher and the consumer, and what they saw.
type rig struct {
	t       *testing.T
	clk     *clock.Manual
	c       *Bus
	p       *Publisher
	q       *Consumer
	answers []string
}

func newRig(t *testing.T, b bus.Bounds) *rig {
	clk := clock.NewManual(start)
	c := New(clk, b)
	return &rig{t: t, clk: clk, c: c, p: c.OpenPublisher(), q: c.OpenConsumer()}
}

// publish queues each name as a message and remembers what its done is called with.
func (r *rig) publish(names ...string) {
	for _, n := range names {
		require.NoError(r.t, r.p.Publish("geo.x.table.1", []byte(n), func(err error) {
			r.answers = append(r.answers, fmt.Sprint(n, "=", err))
		}))
	}
}

// seen polls everything at hand.
func (r *rig) seen() []string {
	got, err := r.q.Poll(1000)
	require.NoError(r.t, err)
	var names []string
	for _, m := range got {
		names = append(names, string(m.Data))
	}
	return names
}

func named(name string) Predicate {
	return func(m bus.Message) bool { return string(m.Data) == name }
}

// Each fault by hand does what it says, answers the publisher what a faulty bus would, and
// is counted.
func TestFaultsByHand(t *testing.T) {
	for _, tt := range []struct {
		name    string
		do      func(*rig)
		answers []string
		seen    []string
		counts  Counts
	}{
		{
			"lose", func(r *rig) { r.c.LoseIf(named("b")) },
			[]string{"a=<nil>", "b=<nil>", "c=<nil>"},
			[]string{"a", "c"},
			Counts{Lost: 1},
		},
		{
			"double", func(r *rig) { r.c.DoubleIf(named("b")) },
			[]string{"a=<nil>", "b=<nil>", "c=<nil>"},
			[]string{"a", "b", "b", "c"},
			Counts{Doubled: 1},
		},
		{
			"swap", func(r *rig) { r.c.SwapNext() },
			[]string{"b=<nil>", "a=<nil>", "c=<nil>"},
			[]string{"b", "a", "c"},
			Counts{Swapped: 1},
		},
		{
			"hold", func(r *rig) { r.c.HoldIf(named("a")) },
			[]string{"a=<nil>", "b=<nil>", "c=<nil>"},
			[]string{"b", "c"},
			Counts{Delayed: 1},
		},
		{
			"refuse", func(r *rig) { r.c.RefuseIf(named("b")) },
			[]string{"a=<nil>", "b=stream: full", "c=<nil>"},
			[]string{"a", "c"},
			Counts{Refused: 1},
		},
		{
			"cut publishers", func(r *rig) { r.c.Cut(true, false) },
			[]string{"a=stream: unavailable", "b=stream: unavailable", "c=stream: unavailable"},
			nil,
			Counts{Cut: 1, CutEnded: 3},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, bus.Bounds{})
			tt.do(r)
			r.publish("a", "b", "c")
			require.Empty(t, r.answers, "nothing happens outside a Step")
			require.Equal(t, 3, r.c.Deliver())
			require.Equal(t, tt.answers, r.answers)
			require.Equal(t, tt.seen, r.seen())
			require.Equal(t, tt.counts, r.c.Counts())
		})
	}
}

// A held message comes after what was stored meanwhile, with another number, so that an ack
// given meanwhile does not cover it.
func TestHoldAndRelease(t *testing.T) {
	r := newRig(t, bus.Bounds{})
	r.c.HoldIf(named("a"))
	r.publish("a", "b")
	r.c.Deliver()
	got, err := r.q.Poll(10)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.NoError(t, r.q.Ack(got[0]))

	require.Equal(t, 1, r.c.Held())
	require.Equal(t, 1, r.c.Release(-1))
	require.Zero(t, r.c.Held())
	require.Equal(t, []string{"a"}, r.seen())
	require.Equal(t, uint64(1), r.c.Counts().Released)
}

// A cut hides stored messages from the consumer, is reported by Wait once, and
// ends without loss.
func TestCutConsumer(t *testing.T) {
	r := newRig(t, bus.Bounds{})
	r.publish("a")
	r.c.Deliver()
	r.c.Cut(false, true)
	_, err := r.q.Poll(1)
	require.ErrorIs(t, err, bus.ErrUnavailable)
	require.ErrorIs(t, r.q.Ack(bus.Message{}), bus.ErrUnavailable)
	require.ErrorIs(t, r.q.Wait(t.Context()), bus.ErrUnavailable)
	r.c.Cut(false, false)
	require.NoError(t, r.q.Wait(t.Context()))
	require.Equal(t, []string{"a"}, r.seen())
	require.Equal(t, Counts{Cut: 1, Healed: 1}, r.c.Counts())
}

// A wipe on a clock that stands still yields a later incarnation all the same.
func TestWipeIncarnation(t *testing.T) {
	r := newRig(t, bus.Bounds{})
	r.publish("a")
	r.c.Deliver()
	before := r.c.Incarnation()
	r.c.Wipe()
	require.True(t, r.c.Incarnation().After(before))
	require.Zero(t, r.c.Stored())
	require.Empty(t, r.seen())
	require.Equal(t, Counts{Wiped: 1}, r.c.Counts())
}

// A done may publish again, from within a Step.
func TestPublishFromDone(t *testing.T) {
	r := newRig(t, bus.Bounds{WindowMax: 1})
	require.NoError(t, r.p.Publish("s", []byte("a"), func(error) { r.publish("b") }))
	require.Equal(t, 1, r.c.Deliver())
	require.Equal(t, 1, r.c.Deliver())
	require.Equal(t, []string{"a", "b"}, r.seen())
}

// play drives a bus with every fault on and returns a hash of all that the
// publisher and the consumer saw.
func play(t *testing.T, seed uint64) (uint64, Counts) {
	r := newRig(t, bus.Bounds{BytesMax: 4 << 10, AckWait: time.Second, AckPendingMax: 32})
	rng := rand.New(rand.NewPCG(seed, 1))
	r.c.SetFaults(rand.New(rand.NewPCG(seed, 2)), Rates{
		Lose: 0.05, Double: 0.05, Swap: 0.05, Delay: 0.05, Release: 0.05,
		Refuse: 0.05, Cut: 0.01, Heal: 0.2, Wipe: 0.005,
	})
	h := fnv.New64a()
	note := func(v ...any) { _, _ = fmt.Fprintln(h, v...) }
	for i := range 3000 {
		switch rng.IntN(4) {
		case 0, 1:
			_ = r.p.Publish("s", fmt.Append(nil, i), func(err error) { note("done", i, err) })
		case 2:
			note("step", r.c.Step())
		case 3:
			r.clk.Advance(100 * time.Millisecond)
			got, err := r.q.Poll(4)
			note(got, err)
			if len(got) > 0 && rng.IntN(2) == 0 {
				note(r.q.Ack(got[len(got)-1]))
			}
		}
	}
	return h.Sum64(), r.c.Counts()
}

// The same seed gives the same history, another seed another; every fault fires.
func TestDeterminism(t *testing.T) {
	a, counts := play(t, 7)
	b, _ := play(t, 7)
	require.Equal(t, a, b)
	other, _ := play(t, 8)
	require.NotEqual(t, a, other)
	for name, n := range map[string]uint64{
		"lost": counts.Lost, "doubled": counts.Doubled, "swapped": counts.Swapped,
		"delayed": counts.Delayed, "released": counts.Released, "refused": counts.Refused,
		"cut": counts.Cut, "healed": counts.Healed, "wiped": counts.Wiped,
		"cut ended": counts.CutEnded, "cut stored": counts.CutStored,
	} {
		require.NotZero(t, n, "fault %q never fired", name)
	}
}
