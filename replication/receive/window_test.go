package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

const otherRange geo.RangeID = 4

// writeEvery is the pace of TestR15RangeStandsAlone.
const writeEvery = 10 * time.Millisecond

// lags is the time that each record of a range needed until a closed record covered it, greatest
// of all.
type lags struct {
	open  map[geo.Timestamp]time.Duration
	worst time.Duration
}

func (l *lags) look(w *world, id geo.RangeID) {
	for t, at := range l.open {
		if w.taken[id] >= t {
			delete(l.open, t)
			l.worst = max(l.worst, w.clk.Mono()-at)
		}
	}
}

// round lets both ranges commit once, and everybody work.
func (w *world) round(r *Receiver, standing geo.RangeID, l *lags) {
	w.clk.Advance(writeEvery)
	w.writeTo(standing, 3)
	w.writeTo(otherRange, 3)
	l.open[w.closedT[otherRange]] = w.clk.Mono()
	for range 3 {
		r.Step(w.clk.Mono())
		w.deliverAll()
	}
	l.look(w, otherRange)
}

// R15: a range whose applier does not answer, past its share of memory, is left to the pull: the
// other range goes on with its lag unchanged, the bus gets its acknowledgements, and memory stays
// at the share. Afterwards the range is whole by the pull and follows the bus again.
func TestR15RangeStandsAlone(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.payload = true, 4<<10
	o := w.options(testRange, otherRange)
	o.PendingBytesMax = 256 << 10
	r := New(o)
	quiet := lags{open: map[geo.Timestamp]time.Duration{}}
	for range 200 {
		w.round(r, testRange, &quiet)
	}
	w.mute[testRange] = true
	first := lags{open: map[geo.Timestamp]time.Duration{}}
	for range 100 {
		w.round(r, testRange, &first)
	}
	standing := lags{open: first.open}
	for range 1000 {
		w.round(r, testRange, &standing)
		require.Less(t, w.bus.Stored(), 10, "the bus gets its acknowledgements")
	}
	require.LessOrEqual(t, standing.worst, quiet.worst, "the other range does not feel it")
	require.LessOrEqual(t, first.worst, time.Second, "nor for long before the first is left to the pull")

	w.unmute(testRange)
	for i := 0; w.whole() != ""; i++ {
		require.Less(t, i, 1000, w.whole())
		w.clk.Advance(writeEvery)
		r.Step(w.clk.Mono())
		w.deliverAll()
	}
	w.requireOnce()
	pulled := w.pulled
	for range 100 {
		w.round(r, testRange, &quiet)
	}
	require.Equal(t, pulled, w.pulled, "it follows the bus again")
}

// A receiver that is slow as a whole stops fetching, and the bus holds the backlog (R15).
func TestR15SlowAsAWhole(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.payload = true, 4<<10
	o := w.options(testRange, otherRange)
	o.PendingBytesMax = 256 << 10
	r := New(o)
	l := lags{open: map[geo.Timestamp]time.Duration{}}
	w.mute[testRange], w.mute[otherRange] = true, true
	for range 500 {
		w.round(r, testRange, &l)
	}
	require.Greater(t, w.bus.Stored(), 900, "the bus holds the backlog")
	require.Zero(t, w.pulled)
	require.Empty(t, w.alarms)
	w.unmute(testRange)
	w.unmute(otherRange)
	for i := 0; w.whole() != ""; i++ {
		require.Less(t, i, 1000, w.whole())
		w.clk.Advance(writeEvery)
		r.Step(w.clk.Mono())
		w.deliverAll()
	}
	require.Zero(t, w.pulled, "everything came off the bus")
	w.requireOnce()
}

// A range that stands is left to the pull also where it holds few bytes: once UnackedMax messages of
// others wait behind its own, or it has committed nothing for 5 times StandAfter, so that the bus
// neither stops nor delivers again (R15).
func TestR15RangeStandsWithLittle(t *testing.T) {
	for name, o := range map[string]Options{
		"messages": {UnackedMax: 50, StandAfter: 500 * time.Millisecond},
		"time":     {StandAfter: 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.calm = true
			all := w.options(testRange, otherRange)
			all.UnackedMax, all.StandAfter = o.UnackedMax, o.StandAfter
			r := New(all)
			l := lags{open: map[geo.Timestamp]time.Duration{}}
			w.mute[testRange] = true
			for range 110 {
				w.round(r, testRange, &l)
			}
			require.LessOrEqual(t, w.bus.Stored(), 1)
			require.Equal(t, map[string]int{AlarmStands: 1}, w.alarms)
		})
	}
}

// The messages in memory stay within the shares, exceeded by one message each at most. An equal
// part of WindowBytesMax bounds a share: the bound of this queue.
//
// Capability: Two locations: A narrow line between the locations.
func TestWindowIsBounded(t *testing.T) {
	const records = 3
	w := newWorld(t, 1)
	w.calm, w.payload = true, 16<<10
	o := w.options(testRange, otherRange)
	o.WindowBytesMax = 512 << 10
	r := New(o)
	w.mute[testRange], w.mute[otherRange] = true, true
	l := lags{open: map[geo.Timestamp]time.Duration{}}
	most := 0
	for range 200 {
		w.round(r, testRange, &l)
		held := 0
		for _, rr := range r.order {
			held += rr.bytes
		}
		most = max(most, held)
	}
	const message = records * (16<<10 + 256)
	require.Greater(t, most, o.WindowBytesMax/2)
	require.LessOrEqual(t, most, o.WindowBytesMax+2*message)
}

// A commit of a busy node that takes 1.5 s is no range that stands: nothing is dropped, to be pulled over
// the link once more, though more waits than the range's share and another range moves.
//
// Capability: Two locations: A narrow line between the locations.
func TestR15SlowCommitDoesNotStand(t *testing.T) {
	w := newWorld(t, 1)
	w.calm, w.payload = true, 4<<10
	o := w.options(testRange, otherRange)
	o.PendingBytesMax, o.StandAfter = 64<<10, 0
	r := New(o)
	l := lags{open: map[geo.Timestamp]time.Duration{}}
	for range 50 {
		w.round(r, testRange, &l)
	}
	for range 4 {
		w.mute[testRange] = true
		for range 150 * time.Millisecond / writeEvery * 10 {
			w.round(r, testRange, &l)
		}
		w.unmute(testRange)
		w.round(r, testRange, &l)
	}
	require.Empty(t, w.alarms)
	require.Zero(t, w.pulled)
}
