package ship

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// R12, R16: the first closed record of a leader is full, and so is the first of a time after all that its range held as it began,
// whatever is in it; those behind it are not.
//
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
func TestR16FirstOwnTimeIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("acct")
	w.write(10, false, lanes("acct")[:3]...)
	w.open(Options{}) // A leader that begins with what its range holds.
	began := w.stamp.Leader(geo.FirstRange(geo.Table)).Machine.AppliedState().Last
	var full []bool
	own := func() {
		w.drain(func(f change.Frame) {
			require.Equal(t, f.Closed.T > began, len(full) > 0, "the first is of a time of before")
			full = append(full, f.Closed.Full)
		})
	}
	own()
	for range 3 {
		stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), stamptest.Closed{})
		w.step(200 * time.Millisecond)
		own()
	}
	require.Equal(t, []bool{true, true, false, false}, full)
}

// R16: a full closed record names the last record that the receiver has acknowledged, where it has pulled ahead of the frames:
// it would not decide of such a stream else.
func TestR16FullNamesWhatWasPulled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("acct")
	w.write(10, false, lanes("acct")[:2]...)
	w.drain(nil)
	want := map[geo.Lane]geo.Head{}
	for st, head := range w.ship.named {
		if len(want) == 0 {
			head = geo.Head{Seq: head.Seq + 3, Hash: 7}
			w.ship.acked[st] = head
		}
		want[st.Lane] = head
	}
	c, err := w.ship.Full()
	require.NoError(t, err)
	for _, h := range c.Heads {
		require.Equal(t, want[h.Lane], h.Head())
		delete(want, h.Lane)
	}
	require.Empty(t, want)
}

// R18, R12: what fell out of the outbox is named by each closed record of a backlog, not by the first alone: a receiver may join any
// of them, and when the records were committed that it lacks is not known.
func TestR18FellOutIsNamedWhileABacklogDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Budget: Budget{Bytes: 20_000}})
	w.gates("a", "b")
	a, b := lanes("a")[0], lanes("b")
	w.write(3000, false, a)
	for range 6 {
		w.write(3000, false, a)
		w.write(1000, false, b[:2]...)
	}
	w.step(budgetEvery)
	require.True(t, w.fellOut("a"))
	require.False(t, w.fellOut("b"))

	w.open(Options{Bounds: Bounds{FrameBytesMax: 1000}})
	began := w.leader().Machine.AppliedState().Last
	before, st := 0, w.stream("a", 0)
	w.drain(func(f change.Frame) {
		if f.Closed.T >= began {
			return
		}
		before++
		require.True(t, slices.ContainsFunc(f.Closed.Heads, func(h change.StreamHead) bool { return f.Closed.Stream(h) == st }), "frame %d", before)
	})
	require.Greater(t, before, 3)
}
