package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortly is how long a test waits for what must not come.
const shortly = 50 * time.Millisecond

// echo answers every connection with what it sends.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // Ends with the connection.
				_ = c.Close()
			}()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return l.Addr().String()
}

func open(t *testing.T) (*Link, net.Conn) {
	t.Helper()
	l, err := Open(echo(t), Rates{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return l, c
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func expectNothing(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(shortly)))
	n, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%d bytes", n)
	require.NoError(t, c.SetReadDeadline(time.Time{}))
}

// ends requires that the connection is ended by the other side, by a reset or not, with
// nothing more to read.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	got, err := io.ReadAll(c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Empty(t, got)
}

// refused requires that a new connection is refused.
func refused(t *testing.T, l *Link) {
	t.Helper()
	_, err := net.Dial("tcp", l.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// What is held back in either direction arrives, whole and in order, when the link is whole
// again; a refusing link, and one whose target is absent, ends what stands and refuses what
// is new; a whole one takes new ones.
func TestFaults(t *testing.T) {
	l, c := open(t)
	say(t, c, "one")
	expect(t, c, "one")
	for _, f := range []Fault{{HoldForth: true}, {HoldBack: true}} {
		require.NoError(t, l.Set(f))
		say(t, c, "two")
		expectNothing(t, c)
		say(t, c, "three")
		require.NoError(t, l.Set(Fault{}))
		expect(t, c, "twothree")
	}
	require.NoError(t, l.Set(Fault{Refuse: true}))
	ends(t, c)
	refused(t, l)
	require.NoError(t, l.SetAbsent(true))
	require.NoError(t, l.Set(Fault{}))
	refused(t, l)
	require.NoError(t, l.SetAbsent(false))
	again, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	say(t, again, "four")
	expect(t, again, "four")
	require.NoError(t, again.Close())
}

// A delayed link carries every byte no earlier than the delay, in each direction.
func TestDelay(t *testing.T) {
	l, c := open(t)
	const delay = 30 * time.Millisecond
	require.NoError(t, l.Set(Fault{Delay: delay}))
	began := time.Now()
	say(t, c, "slow")
	expect(t, c, "slow")
	require.GreaterOrEqual(t, time.Since(began), 2*delay)
}

// The end of what one side sends reaches the other, whose answer still arrives.
func TestHalfClose(t *testing.T) {
	_, c := open(t)
	say(t, c, "last words")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "last words", string(got))
}

// A target that is not there ends the connection.
func TestNoTarget(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())
	l, err := Open(nobody.Addr().String(), Rates{})
	require.NoError(t, err)
	c, err := net.Dial("tcp", l.Addr())
	if err == nil { // Or it is ended before it stands.
		ends(t, c)
		require.NoError(t, c.Close())
	}
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "once more does nothing")
}

// Bytes that are held back end with their connection: where the target has ended, they do not arrive when it is there
// again; and a link that holds bytes can be closed.
func TestHeldBytesEndWithTheConnection(t *testing.T) {
	l, c := open(t)
	say(t, c, "a")
	expect(t, c, "a")
	require.NoError(t, l.Set(Fault{HoldForth: true}))
	say(t, c, "b")
	expectNothing(t, c)
	require.NoError(t, l.SetAbsent(true))
	ends(t, c)
	require.NoError(t, l.SetAbsent(false))

	again, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	defer func() { _ = again.Close() }()
	say(t, again, "c")
	expectNothing(t, again)
	require.NoError(t, l.Close())
	ends(t, again)
}
