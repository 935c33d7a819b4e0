package natsbus

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
)

// A stream for which there is no room takes no message, from a restart on as well; it delivers what it holds, raises no
// alarm, and takes messages again by itself once there is room.
//
// Capability: Storage on a node: A disk that is nearly full.
func TestClosedForWantOfRoom(t *testing.T) {
	s := newSite(t, bus.Bounds{})
	var closed atomic.Bool
	s.o.Closed = closed.Load
	s.o.Alarm = func(reason string) { t.Errorf("alarm %s", reason) }
	p, q := s.Publisher(t), s.Consumer(t)
	require.Eventually(t, func() bool { return publish(p, []byte("held")) == nil }, patience, roomEvery/10)
	closed.Store(true)
	stored := 1
	require.Eventually(t, func() bool {
		err := publish(p, []byte("held"))
		if err == nil {
			stored++
			return false
		}
		require.ErrorIs(t, err, bus.ErrFull)
		return true
	}, patience, roomEvery/10)

	require.NoError(t, q.Close())
	s.stop()
	s.start()
	require.Eventually(t, s.conn.Connected, patience, roomEvery/10)
	q, got := s.Consumer(t), 0
	receive(t, q, func(bus.Message) bool { got++; return got == stored })
	require.ErrorIs(t, publish(p, []byte("refused")), bus.ErrFull)
	closed.Store(false)
	require.Eventually(t, func() bool { return publish(p, []byte("after")) == nil }, patience, roomEvery/10)
	receive(t, q, func(m bus.Message) bool { return string(m.Data) == "after" })
	require.NoError(t, p.Close())
	require.NoError(t, q.Close())
}
