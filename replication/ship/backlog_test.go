package ship

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/stamp/change"
)

// Every frame ends with a closed record, also a frame that was read from the outbox (R12). A new leader
// ships 2,480 records in some 80 frames. After each frame the receiver's sync time is the commit time of
// the frame's last record, so that Last Sync Time moves on while a backlog drains.
//
// Capability: Two locations: A backlog drains with Last Sync Time moving (R12).
func TestR12BacklogFramesAreClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("a", "b")
	parts := append(lanes("a"), lanes("b")...)
	for i := 0; i < 2480; i += 62 {
		w.write(8<<10, false, parts[:62]...)
	}
	frames, records := 0, 0
	w.drain(func(f change.Frame) {
		if len(f.Records) == 0 {
			return
		}
		frames, records = frames+1, records+len(f.Records)
		require.NotNil(t, f.Closed, "frame %d has no closed record", frames)
		require.Equal(t, lastCommit(t, &f), f.Closed.T)
		require.Equal(t, f.Closed.T, w.receiver.syncTime(), "after frame %d", frames)
	})
	require.Equal(t, 2480, records)
	require.InDelta(t, 80, frames, 5)
	require.Zero(t, w.receiver.unjoined)
}

// A new leader's frames may be lost although the bus confirmed them, and the receiver, which has what was in
// them, then never reports its cursors to that leader: the full closed record is repeated, at growing pauses,
// until there is a cursor for everything (R14, R15).
// It holds R12.
func TestR15FullIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("a")
	w.write(10, false, lanes("a")...)
	w.drain(nil)
	fulls := func(pass time.Duration) (n int) {
		for range int(pass / time.Second) {
			w.step(time.Second)
			for _, p := range w.answer(nil) { // Confirmed, and lost.
				if p.frame.Closed.Full {
					n++
				}
			}
		}
		return n
	}
	w.open(Options{})
	require.Equal(t, 4, fulls(40*time.Second), "at the start, after 5 s, 15 s and 35 s")
	require.InDelta(t, 12, fulls(time.Hour), 4)
	w.acknowledge()
	require.Zero(t, fulls(time.Hour))
}
