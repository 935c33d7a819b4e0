package proxy

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The turns of a rate follow each other: two that come at once end after one another, one that comes
// late does not get what was not used before, and a rate of zero, or none, bounds nothing.
func TestRateTurns(t *testing.T) {
	var r Rate
	now := time.Unix(1000, 0)
	require.Zero(t, r.reserve(1000, now))
	r.Set(1000)
	require.Equal(t, time.Second, r.reserve(1000, now))
	require.Equal(t, 1500*time.Millisecond, r.reserve(500, now))
	now = now.Add(time.Hour)
	require.Equal(t, 100*time.Millisecond, r.reserve(100, now))
	r.Set(0)
	require.Zero(t, r.reserve(1000, now))
	require.EqualValues(t, 3600, r.Carried())
	require.Zero(t, (*Rate)(nil).reserve(1000, now))
}

// Two links that share a rate carry together no more than it allows, whole and in order, in the direction
// that has it. What waits for it waits at the sender, but for some hundred KiB.
func TestRateIsShared(t *testing.T) {
	forth, back := &Rate{}, &Rate{}
	target := echo(t)
	var conns []net.Conn
	for range 2 {
		l, err := Open(target, Rates{forth, back})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		c, err := net.Dial("tcp", l.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		conns = append(conns, c)
	}
	const each, perSecond = 50_000, 1_000_000
	forth.Set(perSecond)
	began := time.Now()
	for _, c := range conns {
		_, err := c.Write(make([]byte, each))
		require.NoError(t, err)
	}
	for _, c := range conns {
		_, err := io.ReadFull(c, make([]byte, each))
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, time.Since(began), 2*each*time.Second/perSecond)
	require.EqualValues(t, 2*each, forth.Carried())
	require.EqualValues(t, 2*each, back.Carried())

	forth.Set(1) // Nothing more, for this test.
	require.NoError(t, conns[0].SetWriteDeadline(time.Now().Add(time.Second)))
	n, err := conns[0].Write(make([]byte, 64<<20))
	require.Error(t, err)
	require.Less(t, n, 4<<20)
	t.Logf("%d bytes waited on the way", n)
}
