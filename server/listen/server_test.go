package listen

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A connection that a client opened and never used does not hold up the drain, and a
// request under way is answered before the front end closes.
func TestServerDrains(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	f, err := Open([]Listener{{Addr: "127.0.0.1:0", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = w.Write([]byte("answered"))
	}), What: "test"}}, "nothing", slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	addr := f.Addrs()[0].String()

	reserve, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { require.NoError(t, reserve.Close()) }()
	answered := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + addr)
		if err != nil {
			answered <- err.Error()
			return
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		answered <- string(b)
	}()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- f.Close() }()
	// The reserve is closed while the request still runs: it is not what ends the drain.
	require.NoError(t, reserve.SetReadDeadline(time.Now().Add(4*time.Second)))
	_, err = reserve.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	close(leave)
	require.Equal(t, "answered", <-answered)
	require.NoError(t, <-closed)
}

// Drain takes no new connection, waits for the requests under way until its context ends, and reports those that are left,
// which Close then ends at once.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestDrainReportsWhatIsLeft(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	f, err := Open([]Listener{{Addr: "127.0.0.1:0", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(left)
		close(entered)
		<-r.Context().Done()
	}), What: "test"}}, "nothing", slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err)
	f.drain = time.Hour // It would be waited for without Drain.
	addr := f.Addrs()[0].String()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Equal(t, 1, f.Drain(ctx))
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	require.NoError(t, f.Close())
	<-left
}

// A request that runs beyond the drain is ended by its context. A handler that ignores its
// context is left behind, and Close returns errRunning.
func TestCloseEndsRequests(t *testing.T) {
	for _, looks := range []bool{true, false} {
		entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
		f, err := Open([]Listener{{Addr: "127.0.0.1:0", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			defer close(left)
			close(entered)
			if looks {
				<-r.Context().Done()
			} else {
				<-leave
			}
		}), What: "test"}}, "nothing", slog.New(slog.NewTextHandler(io.Discard, nil)))
		require.NoError(t, err)
		f.drain = 50 * time.Millisecond
		c, err := net.Dial("tcp", f.Addrs()[0].String())
		require.NoError(t, err)
		// The body that does not come keeps net/http from noticing that the connection ends.
		_, err = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
		require.NoError(t, err)
		<-entered
		err = f.Close()
		if looks {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, errRunning)
		}
		close(leave)
		<-left
		require.NoError(t, c.Close())
	}
}
