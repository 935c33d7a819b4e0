package receive

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// accountStream is one of many streams of a range.
func accountStream(id geo.RangeID, n int) geo.Stream {
	st := testStream(id, geo.Lane(n%geo.LaneCount))
	st.Account = geo.Account(fmt.Sprint("account", n/geo.LaneCount))
	return st
}

// miss commits records that the bus has lost, and leaves them to the pull.
func (w *world) miss(r *Receiver, st geo.Stream, n, size int) {
	w.now++
	for range n {
		w.record(st, size)
	}
	r.ranges[st.Range].leaveToPull(st, w.heads[st].Seq)
}

// until steps the receiver until the condition holds.
func (w *world) until(r *Receiver, done func() bool) {
	for i := 0; !done(); i++ {
		require.Less(w.t, i, 20000, w.whole())
		w.clk.Advance(10 * time.Millisecond)
		r.Step(w.clk.Mono())
		w.deliverSome()
	}
}

// All pulls together ask for and hold PullBytesMax at most, whatever the number of streams; what is
// larger than a share comes alone. Streams take turns: one that has much to pull is served no more often
// than those that have little. In the end everything is here, and nothing is reserved (invariant 8).
//
// Capability: Two locations: What waits in a shipper or receiver is bounded.
func TestPullBytesMax(t *testing.T) {
	const large = 400 << 10
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			o := w.options(testRange, otherRange)
			o.PullBytesMax, o.BatchBytesMax = 1<<20, 64<<10
			r := New(o)
			long := accountStream(testRange, 0)
			w.miss(r, long, 60, 100<<10)
			for n := 1; n < 200; n++ {
				w.miss(r, accountStream(testRange, n), 3, 10<<10)
				w.miss(r, accountStream(otherRange, n), 3, 10<<10)
			}
			w.miss(r, accountStream(testRange, 200), 3, large)
			held := 0
			w.until(r, func() bool {
				sum := 0
				for _, rr := range r.order {
					sum += rr.pulls.bytes
					require.LessOrEqual(t, rr.pulls.asking, pullsMax)
				}
				held = max(held, sum)
				return w.pulls[accountStream(testRange, 199)] > 0
			})
			require.LessOrEqual(t, w.pulls[long], 3, "it waits for all others, but for answers that get lost")
			w.until(r, func() bool { return w.whole() == "" })
			require.LessOrEqual(t, held, o.PullBytesMax)
			require.LessOrEqual(t, w.askedMost, o.PullBytesMax)
			require.GreaterOrEqual(t, w.askedMost, o.PullBytesMax/2)
			w.requireOnce()
			for _, rr := range r.order {
				require.Zero(t, rr.pulls.bytes)
				require.Zero(t, rr.pulls.asking)
			}
		})
	}
}

// Records that are larger than a share are pulled one at a time: all that is held is one of them (invariant 8).
//
// Capability: Two locations: What waits in a shipper or receiver is bounded.
func TestPullLargeRecords(t *testing.T) {
	w := newWorld(t, 1)
	o := w.options(testRange)
	o.PullBytesMax = 512 << 10
	r := New(o)
	const size = 2 << 20
	for n := range 5 {
		w.miss(r, accountStream(testRange, n), 3, size)
	}
	w.until(r, func() bool {
		require.Less(t, r.order[0].pulls.bytes, size+512<<10+1<<10)
		return w.whole() == ""
	})
	w.requireOnce()
}

// A range whose source does not answer takes no room from another: the shares are equal (R15).
//
// Capability: Two locations: One range that stands does not stop the others (R15).
// Capability: Two locations: What waits in a shipper or receiver is bounded.
func TestR15PullsOfAnotherRange(t *testing.T) {
	w := newWorld(t, 1)
	r := New(w.options(testRange, otherRange))
	w.hung = map[geo.RangeID]bool{testRange: true}
	for n := range 100 {
		w.miss(r, accountStream(testRange, n), 1, 10)
		w.miss(r, accountStream(otherRange, n), 1, 10)
	}
	w.until(r, func() bool {
		for n := range 100 {
			if st := accountStream(otherRange, n); w.cursors[st] != w.heads[st] {
				return false
			}
		}
		return true
	})
	require.LessOrEqual(t, w.asked, 4<<20)
}

// A stream whose next record waits is tried again after pauses that double, up to 5 s, with that record alone, which is
// kept: it crosses the link once. Where there is no room for it, it is asked for again. One that goes on is pulled in
// whole answers at once. Another stream does not feel it. (It was pulled 477 times in 10 s.)
func TestPullPauses(t *testing.T) {
	for _, kept := range []bool{true, false} {
		w := newWorld(t, 1)
		w.calm = true
		waits, free := accountStream(testRange, 1), accountStream(testRange, 2)
		open, asked := false, 0 // Each outcome is asked for twice.
		w.outcome = func(rec *Record) Outcome {
			if rec.Record.Stream() == waits && rec.Record.Seq >= 3 && !open {
				asked++
				return Wait
			}
			return 0
		}
		r := w.receiver()
		pulled := 1
		if !kept {
			r.order[0].pulls.keptMax = 10 << 10 // A record has more.
		}
		w.miss(r, waits, 50, 10<<10)
		w.run(r, 10*time.Second)
		require.EqualValues(t, 2, w.cursors[waits].Seq)
		require.LessOrEqual(t, asked/2, 12)
		if !kept {
			pulled = asked / 2
		}
		require.Equal(t, pulled, w.pulls[waits])
		require.Equal(t, w.pulls[waits]-1, w.probes)
		w.run(r, 50*time.Second)
		require.InDelta(t, 21, asked/2, 3)
		w.miss(r, free, 1, 10)
		w.run(r, 100*time.Millisecond)
		require.Equal(t, w.heads[free], w.cursors[free])

		open = true
		before := w.pulls[waits]
		w.run(r, 6*time.Second)
		require.Empty(t, w.whole())
		require.LessOrEqual(t, w.pulls[waits]-before, 1+2, "the one, and 470 KiB in two answers")
		require.Empty(t, r.order[0].pulls.of)
		require.Zero(t, r.order[0].pulls.kept)
		w.requireOnce()
	}
}

// A record that waits for a gate is not fetched twice: neither one that was pulled, nor one that came off the bus. That
// holds for each stream, while there is room; what is kept is a copy of the record, and takes no room from other pulls.
// It holds R22.
func TestR7WaitingRecordIsKept(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.payload = true, 1<<10
	open := false
	w.outcome = func(*Record) Outcome {
		if open {
			return 0
		}
		return Wait
	}
	r := w.receiver()
	for range 8 {
		w.writeTo(testRange, 1)
	}
	w.run(r, time.Minute)
	require.Zero(t, w.pulled)
	require.Len(t, w.heads, 4)
	ps := &r.order[0].pulls
	require.Zero(t, ps.bytes)
	sum := 0
	for st := range w.heads {
		sum += len(w.outbox[st][1])
	}
	require.Equal(t, sum, ps.kept)

	open = true
	w.run(r, 10*time.Second)
	require.Empty(t, w.whole())
	require.Zero(t, ps.kept)
	w.requireOnce()
}

// A record that was kept and is applied meanwhile, by another receiver, is not taken again, and what follows it is pulled.
func TestKeptRecordIsApplied(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	open := false
	w.outcome = func(*Record) Outcome {
		if open {
			return 0
		}
		return Wait
	}
	r := w.receiver()
	st := accountStream(testRange, 1)
	w.miss(r, st, 3, 100)
	w.run(r, 10*time.Second)
	require.Equal(t, 1, w.pulls[st])
	open = true
	other := w.receiver()
	other.ranges[testRange].leaveToPull(st, 1)
	w.run(other, 100*time.Millisecond)
	require.NotZero(t, w.cursors[st].Seq)
	w.run(r, 20*time.Second)
	require.Equal(t, w.heads[st], w.cursors[st])
	require.Zero(t, r.order[0].pulls.kept)
	w.requireOnce()
}

// Pulls go on while the range commits without a pause what comes off the bus, and the bus goes on
// while pulled records wait (R15).
func TestR15PullsUnderLoad(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.payload = true, 1<<10
	o := w.options(testRange)
	o.BatchBytesMax = 8 << 10
	r := New(o)
	lost := accountStream(testRange, 100)
	w.miss(r, lost, 300, 1<<10)
	busy, frames := 0, w.taken[testRange]
	for i := range 200 {
		w.clk.Advance(10 * time.Millisecond)
		w.writeTo(testRange, 3)
		under := w.waiting // A commit takes as long as a frame takes to come.
		w.waiting = nil
		for _, f := range under {
			f()
		}
		r.Step(w.clk.Mono())
		if r.order[0].committing {
			busy++
		}
		if i%20 == 19 {
			require.Greater(t, w.taken[testRange], frames, "what comes off the bus stands")
			frames = w.taken[testRange]
		}
	}
	require.Greater(t, busy, 195)
	require.Equal(t, w.heads[lost], w.cursors[lost])
	w.drain([]*Receiver{r})
	w.requireOnce()
}

// Payload of pulled records is fetched four chunks at a time for each stream, and ChunkBytesMax for all;
// streams take turns, each chunk comes once, and the records are applied (invariant 8, R3).
func TestChunkBytesMax(t *testing.T) {
	for _, limit := range []int{0, 650, 50} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(limit, " ", seed), func(t *testing.T) {
				w := newWorld(t, seed)
				w.here = map[extent.Ref]bool{}
				w.calm = limit == 0 // Without lost answers.
				o := w.options(testRange, otherRange)
				o.ChunkBytesMax = limit
				r := New(o)
				for n := range 4 {
					st := accountStream(geo.RangeID(3+n%2), n)
					for i := range 3 {
						var refs []extent.Ref
						for c := range 10 {
							refs = append(refs, extent.Ref{ID: extent.ChunkID{byte(n), byte(i), byte(c)}, Length: 100})
						}
						w.record(st, 10, refs...)
					}
					r.ranges[st.Range].leaveToPull(st, 3)
				}
				w.until(r, func() bool { return w.whole() == "" })
				w.requireOnce()
				require.Len(t, w.here, 4*3*10)
				require.Zero(t, w.twice)
				require.Equal(t, map[int]int{0: 16, 650: 6, 50: 1}[limit], w.chunksMost)
				w.runFor(r, 10*time.Second, func() {})
				require.Zero(t, r.chunks.bytes)
				require.Empty(t, r.chunks.line)
				for _, rr := range r.order {
					require.Zero(t, rr.pulls.bytes)
				}
			})
		}
	}
}

// A closed record that can be taken now is not given up for a full one behind it whose time is ahead of
// the clock here. It is tried again while pulled records wait (R6).
func TestR6ClosedBeforeFullOneAhead(t *testing.T) {
	w := newWorld(t, 1)
	w.calm = true
	const now = 100
	w.ahead = func(ts geo.Timestamp) time.Duration { return max(0, time.Duration(ts)-now) }
	r := w.receiver()
	rr := r.order[0]
	w.taken[testRange] = 10
	first := &change.Closed{Origin: testOrigin, Range: testRange, T0: 10, T: 20}
	rr.pulledItems = []item{{closed: first}, {closed: &change.Closed{Origin: testOrigin, Range: testRange, Full: true, T: now + 50}}}
	rr.commit()
	w.deliverAll()
	r.Step(0)
	require.EqualValues(t, 20, w.taken[testRange])

	rr.pulledItems, rr.frames, rr.committing = nil, nil, true
	rr.ahead = &closedAhead{closed: &change.Closed{T: 30}, at: 0}
	rr.pulledItems = []item{{rec: &Record{}}}
	rr.retryClosed(0)
	require.Equal(t, rr.ahead.closed, rr.pulledItems[0].closed)
}
