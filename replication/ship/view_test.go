package ship

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
)

// The view shows how far each stream of the account is in frames and acknowledged, and which is held back
// for payload. It shows since when the bus does not confirm, or fails.
func TestViewOfStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	require.False(t, w.ship.View("a").Leading)
	w.gates("a", "b")
	quick, slow := lanes("a")[0], lanes("a")[1]
	w.write(10, false, quick)
	w.step(0)
	of := func() (quickly, slowly StreamView) {
		v := w.ship.View("a")
		require.True(t, v.Leading)
		st := func(lane geo.Lane) geo.Stream {
			return geo.Stream{Account: "a", Epoch: north1(), Range: geo.FirstRange(geo.Table), Lane: lane}
		}
		return v.Streams[st(quick.Lane())], v.Streams[st(slow.Lane())]
	}
	one, _ := of()
	require.Equal(t, StreamView{Built: 1}, one)
	require.Empty(t, w.ship.View("nobody").Streams)
	w.clock.Advance(3 * time.Second)
	require.Equal(t, []any{1, 3 * time.Second, error(nil)}, []any{w.ship.View("a").Frames, w.ship.View("a").Oldest, w.ship.View("a").Err})

	w.answer(bus.ErrFull)
	w.clock.Advance(time.Second)
	v := w.ship.View("a")
	require.Equal(t, []any{bus.ErrFull, time.Second, true}, []any{v.Err, v.Failing, v.Full})
	w.step(time.Second)
	w.step(time.Second) // After the pause.
	w.drain(nil)
	v = w.ship.View("a")
	require.Equal(t, []any{0, error(nil), false}, []any{v.Frames, v.Err, v.Full})

	w.write(10, true, slow)
	w.drain(nil)
	_, two := of()
	require.Equal(t, StreamView{Built: 1, Held: true}, two)
	for _, done := range w.pushes {
		done(errors.New("the receiver fetches it"))
	}
	w.drain(nil)
	w.acknowledge()
	one, two = of()
	require.Equal(t, []StreamView{{Built: 1, Acked: 1}, {Built: 1, Acked: 1}}, []StreamView{one, two})
}
