package ship

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// holding is a copy for tests of Budget.over.
func holding(a geo.Account, r geo.RangeID, bytes, payload int64) held {
	return held{Holding: ranges.Holding{Copy: outbox.Copy{Account: a}, Backlog: outbox.Backlog{Bytes: bytes, Payload: payload}}, rangeID: r}
}

// R18: the copy with the most falls out, payload counted, while all copies together pass the budget, or those of its
// account that of an account; equal ones in the order of names and ranges. Nothing does at the budget (table).
//
// Capability: Two locations: The outbox has a budget.
func TestR18LargestFallsOut(t *testing.T) {
	t.Parallel()
	all := []held{holding("b", 2, 50, 50), holding("a", 2, 10, 0), holding("a", 4, 99, 1), holding("c", 3, 0, 70)}
	for name, c := range map[string]struct {
		budget  Budget
		account geo.Account
		at      geo.RangeID
	}{
		"no bound":               {Budget{}, "", 0},
		"age alone":              {Budget{Age: 1}, "", 0},
		"at the budget":          {Budget{Bytes: 280, AccountBytes: 110}, "", 0},
		"past it":                {Budget{Bytes: 279, AccountBytes: 110}, "a", 4},
		"past that of accounts":  {Budget{Bytes: 280, AccountBytes: 109}, "a", 4},
		"past that of all three": {Budget{AccountBytes: 1}, "a", 4},
	} {
		most, ok := c.budget.over(all)
		require.Equal(t, c.account != "", ok, name)
		require.Equal(t, [2]any{c.account, c.at}, [2]any{most.Account, most.rangeID}, name)
		require.Equal(t, ok, most.why != "", name)
	}
	most, _ := Budget{AccountBytes: 60}.over(all[1:])
	require.Equal(t, geo.RangeID(4), most.rangeID)
	most, _ = Budget{AccountBytes: 60}.over([]held{all[3], all[1]})
	require.Equal(t, geo.Account("c"), most.Account)
}

// fellOut reports whether the account fell out.
func (w *world) fellOut(a geo.Account) bool {
	for _, h := range w.leader().Machine.Holdings() {
		if h.Account == a {
			return h.FellOut
		}
	}
	return false
}

// R18, R12: no closed record lets a receiver that knows of no stop pass a record that was deleted without
// being there (property). It holds whatever becomes of frames, pushes, acknowledgements and leaders while
// copies fall out, with or without payload. Writers have no error; what the outbox holds stays near the
// budget; and what did not fall out arrives.
//
// Capability: Two locations: The outbox has a budget.
func TestR18Honest(t *testing.T) {
	t.Parallel()
	const budget = 30_000
	rng := rand.New(rand.NewPCG(18, 3))
	w := newWorld(t, Options{})
	w.gates("a", "b", "c")
	parts := append(append(append(lanes("a")[:6], lanes("a")[:6]...), lanes("b")[:6]...), lanes("c")[:1]...)
	h := history{}
	alarms := 0
	for range 40 {
		w.open(Options{
			Bounds: Bounds{
				FrameBytesMax: 300 + rng.IntN(4000), QueueBytesMax: 2000 + rng.IntN(8000), AheadBytesMax: 1 + rng.IntN(8000),
				FlyingMax: 1 + rng.IntN(5), PushesMax: 1 + rng.IntN(3), FullBytesMax: 100 + rng.IntN(3000),
			},
			Budget: Budget{Bytes: budget}, Alarm: func(string) { alarms++ },
		})
		for range 30 {
			w.play(rng, h, parts)
		}
		w.step(budgetEvery)
		w.step(budgetEvery)
		b, err := w.leader().Machine.Backlog()
		require.NoError(t, err)
		require.LessOrEqual(t, b.Size(), int64(budget))
	}
	require.True(t, w.fellOut("a"))
	require.False(t, w.fellOut("c"))
	require.Positive(t, alarms)
	require.LessOrEqual(t, alarms, 2, "one for each")
	missing := 0
	for st, times := range h {
		missing += len(times) - int(w.receiver.Applied(st).Seq)
	}
	require.Positive(t, missing)

	w.refuse = nil
	for i := 0; w.receiver.syncTimeOf("c") < lastOf(h) || i < 100; i++ {
		require.Less(t, i, 10_000)
		for _, done := range w.pushes {
			done(nil)
		}
		w.pushes = nil
		w.step(50 * time.Millisecond)
		w.arrive(nil)
		w.pull(h)
		h.check(w)
	}
	require.Less(t, w.receiver.syncTimeOf("a"), lastOf(h))
	for st, times := range h {
		if !w.fellOut(st.Account) {
			require.Len(t, times, int(w.receiver.Applied(st).Seq), "%s", st)
		}
	}
}

// R18, R12: a stream may be whole at the receiver when its copy falls out, or have no record yet. It is behind
// from its next record on, by every way to a frame: from the queue, from the outbox where the queue overflowed,
// held back for payload, and with a new leader (table). A receiver that knows of no stop does not pass it.
//
// Capability: Two locations: The outbox has a budget.
func TestR18NextRecordIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bounds Bounds
		chunks bool
		reopen bool
	}{
		"queue":      {},
		"payload":    {chunks: true},
		"outbox":     {bounds: Bounds{QueueBytesMax: 1}},
		"new leader": {reopen: true},
	} {
		o := Options{Bounds: c.bounds, Budget: Budget{Bytes: 2000}}
		w, h := newWorld(t, o), history{}
		w.gates("a")
		a := lanes("a")
		w.write(10, false, a[0], a[1])
		h.learn(w)
		w.drain(nil)
		w.acknowledge()
		require.EqualValues(t, 1, w.receiver.Applied(w.stream("a", 1)).Seq)
		w.write(3000, false, a[0])
		h.learn(w)
		w.step(budgetEvery)
		require.True(t, w.fellOut("a"))
		for range 3 {
			w.write(10, c.chunks, a[1], a[2])
			h.learn(w)
			if c.reopen {
				w.open(o)
			}
			w.drain(func(change.Frame) { h.check(w) })
			w.step(budgetEvery)
			w.drain(func(change.Frame) { h.check(w) })
		}
		_, last := w.leader().Machine.Heads()
		require.Equal(t, last, w.receiver.Known(w.receiver.src).Closed, "%s: closed records go on", name)
		behind := w.receiver.Progress(w.receiver.src, "a").Behind()
		require.Contains(t, behind, w.stream("a", 1), name)
		require.Contains(t, behind, w.stream("a", 2), name)
		require.Less(t, w.receiver.syncTimeOf("a"), last, name)
	}
}

// R18: nothing of a copy that fell out is sent, nor its payload pushed; what is written goes on to be deleted;
// the answer to its cursors is why, to those of a full set for each of its streams; and what was
// acknowledged is shown, not what was deleted. The receiver is sent a full closed record, for which
// it sends a full set.
func TestR18FellOutIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Budget: Budget{AccountBytes: 2000}})
	w.gates("a", "b")
	a, b := lanes("a"), lanes("b")
	w.write(10, false, a[0], b[0])
	w.drain(nil)
	w.acknowledge()
	w.step(w.ship.o.TrimEvery)
	w.write(1500, true, a[0], a[1])
	w.write(10, false, b[0])
	w.step(budgetEvery)
	require.True(t, w.fellOut("a"))
	for _, done := range w.pushes {
		done(nil)
	}
	w.pushes, w.flying = nil, nil
	w.open(Options{Budget: Budget{AccountBytes: 2000}})
	w.write(1500, true, a[2])
	full := 0
	w.drain(func(f change.Frame) {
		for _, rec := range f.Records {
			h, err := change.ParseHeader(rec)
			require.NoError(t, err)
			require.Equal(t, geo.Account("b"), h.Stream.Account)
		}
		if f.Closed.Full {
			full++
		}
	})
	require.Equal(t, 1, full)
	require.Empty(t, w.pushes)
	w.step(budgetEvery)
	for _, h := range w.leader().Machine.Holdings() {
		require.Equal(t, h.FellOut, h.Account == "a")
		require.Equal(t, h.FellOut, h.Records == 0)
	}
	got, err := w.ship.Acknowledge(Acknowledgement{Full: true, Cursors: []StreamCursor{{Stream: w.stream("b", 0), Head: w.leader().Machine.Head(w.stream("b", 0))}}})
	require.NoError(t, err)
	require.Len(t, got, geo.LaneCount)
	for _, m := range got {
		require.Equal(t, Mismatch{m.Stream, change.StopBudget, m.Here, true}, m)
		require.Equal(t, geo.Account("a"), m.Stream.Account)
	}
	view := w.ship.View("a").Streams[w.stream("a", 0)]
	require.Equal(t, StreamView{Built: 2, Acked: 1, Stopped: change.StopBudget}, view)
}

// stream is the stream of a lane.
func (w *world) stream(a geo.Account, lane geo.Lane) geo.Stream {
	return geo.Stream{Account: a, Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: lane}
}

// R18: a copy falls out for its age once its oldest record stood for the grace, as this leader saw; not at once after the
// stamp was off for long, nor while it is acknowledged, however late.
func TestR18TooOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Budget: Budget{Age: 72 * time.Hour}})
	require.Equal(t, time.Hour, w.ship.keeper.o.Grace)
	w.gates("a", "b")
	a, b := lanes("a")[0], lanes("b")[0]
	w.write(10, false, a)
	_, last := w.leader().Machine.Heads()
	w.clock.Advance(last.Time().Sub(w.clock.Now()) + 71*time.Hour)
	look := func(pass time.Duration) {
		w.clock.Advance(pass)
		w.step(pass)
		w.step(0)
	}
	for range 3 {
		look(time.Minute) // Not old yet.
		require.Empty(t, w.ship.keeper.old)
	}
	w.write(10, false, a, b)
	look(2 * time.Hour)
	require.Len(t, w.ship.keeper.old, 2, "b's record was committed long before by the clock of this test")
	look(59 * time.Minute)
	require.False(t, w.fellOut("a"))
	_, err := w.ship.Acknowledge(Acknowledgement{Cursors: []StreamCursor{{Stream: w.stream("a", a.Lane()), Head: w.firstOf(w.stream("a", a.Lane()))}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		w.step(w.ship.o.TrimEvery)
		return w.leader().Machine.Trimmed(w.stream("a", a.Lane())) == 1
	}, time.Minute, time.Millisecond)
	look(2 * time.Minute)
	require.True(t, w.fellOut("b"), "nothing of it has moved for an hour")
	require.False(t, w.fellOut("a"), "its oldest record is another one now")
	look(30 * time.Minute)
	require.False(t, w.fellOut("a"))
	look(31 * time.Minute)
	require.True(t, w.fellOut("a"))
}

// firstOf is the first record of a stream, which the outbox holds with the second.
func (w *world) firstOf(st geo.Stream) geo.Head {
	at, ok, err := w.leader().Machine.OutboxAt(st, 1)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	return at.Head
}

// R18: the budget is that of all ranges of the node: what others hold counts, and the range with the most drops
// it, not this one.
func TestR18BudgetOfTheNode(t *testing.T) {
	t.Parallel()
	other := newWorld(t, Options{})
	other.gates("x")
	other.write(3000, false, lanes("x")[0])
	w := newWorld(t, Options{})
	ask := func() []*ranges.Range { return []*ranges.Range{w.leader(), other.leader()} }
	w.open(Options{Budget: Budget{Bytes: 4500, Ranges: ask}})
	w.gates("a")
	w.write(1000, false, lanes("a")[0])
	w.step(budgetEvery)
	require.False(t, w.fellOut("a"), "4,000 bytes of 4,500")
	w.write(3000, false, lanes("a")[1])
	w.step(budgetEvery)
	require.True(t, w.fellOut("a"), "it has most of 7,000")
	w.step(budgetEvery)
	require.False(t, other.fellOut("x"), "only the leader of its range may decide")
	stamptest.Submit(t, other.stamp, geo.FirstRange(geo.Table), fallOut{{Holding: ranges.Holding{Copy: outbox.Copy{Account: "x", Epoch: north1()}}}})
	require.True(t, other.fellOut("x"))
}
