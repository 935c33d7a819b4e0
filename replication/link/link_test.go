package link

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A cut closes what is open over the link and lets nothing new through; healed, it
// does again.
func TestCutClosesConnections(t *testing.T) {
	l := New()
	defer l.Close()
	near, far := net.Pipe()
	c, err := l.Over(near)
	require.NoError(t, err)

	l.Cut()
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = c.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.ErrorIs(t, l.Pass(t.Context()), ErrCut)
	near, far = net.Pipe()
	_, err = l.Over(near)
	require.ErrorIs(t, err, ErrCut)
	_, err = far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "what came too late is closed")

	l.Heal()
	near, _ = net.Pipe()
	c, err = l.Over(near)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, l.conns)
}
