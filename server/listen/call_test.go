package listen

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
)

const calledAt = "127.0.0.1:0"

// openCalled opens a listener whose handler is called, and a front end that calls it.
func openCalled(t *testing.T, h http.HandlerFunc) (called *Server, caller *httptest.Server) {
	t.Helper()
	called, err := Open([]Listener{{Addr: calledAt, Handler: h, What: "test"}}, "nothing", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	caller = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol.WatchSender(w, r)
		if !called.Call(calledAt, w, r) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(caller.Close)
	return called, caller
}

// Close waits for a call as for any request, and none begins from then on, nor at an address without a listener.
func TestCallIsDrained(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	called, caller := openCalled(t, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = io.WriteString(w, "answered")
	})
	require.False(t, called.Call("127.0.0.1:1", httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)))
	answered := make(chan string, 1)
	go func() { answered <- get(caller.URL) }()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- called.Close() }()
	require.Eventually(t, func() bool { return get(caller.URL) == "503 " }, time.Minute, time.Millisecond)
	select {
	case err := <-closed:
		t.Fatal("closed before the call has ended", err)
	default:
	}
	close(leave)
	require.Equal(t, "200 answered", <-answered)
	require.NoError(t, <-closed)
}

// get returns the status and the body of an answer, or the error.
func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return err.Error()
	}
	return resp.Status[:4] + string(b)
}

// A call that outlasts the drain is cut off: its context ends, its body brings nothing more, an answer that is being written
// breaks off, and one that the handler takes for whole does not look so.
func TestCloseCutsOffCalls(t *testing.T) {
	for name, h := range map[string]func(w http.ResponseWriter, r *http.Request){
		"waits for its context": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"waits for its body":    func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"writes": func(w http.ResponseWriter, r *http.Request) {
			for part := make([]byte, 1<<16); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		},
		"writes with new deadlines": func(w http.ResponseWriter, r *http.Request) {
			for out, part := (&protocol.PatientWriter{W: w}), make([]byte, 1<<16); ; {
				if _, err := out.Write(part); err != nil {
					return
				}
			}
		},
	} {
		entered := make(chan struct{})
		called, caller := openCalled(t, func(w http.ResponseWriter, r *http.Request) {
			protocol.BeforeAnswer(w, r)
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			close(entered)
			h(w, r)
		})
		called.drain = 20 * time.Millisecond
		c, err := net.Dial("tcp", caller.Listener.Addr().String())
		require.NoError(t, err)
		request := "GET / HTTP/1.1\r\nHost: x\r\n"
		if name == "waits for its body" {
			request += "Content-Length: 5\r\n"
		}
		_, err = io.WriteString(c, request+"\r\n")
		require.NoError(t, err)
		<-entered
		require.NoError(t, called.Close(), name)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err, name)
		_, err = io.Copy(io.Discard, resp.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, name)
		require.NoError(t, c.Close())
	}
}

// deadlines is a connection on which deadlines take their time to be set.
type deadlines struct {
	*httptest.ResponseRecorder
	begun, release chan struct{}
}

func (d deadlines) SetWriteDeadline(time.Time) error {
	close(d.begun)
	<-d.release
	return nil
}

// A call that was cut off ends once its connection is in use no more. It never ends as if its answer were whole,
// whatever its handler made of the end of its context.
func TestCallEndsBehindItsCutOff(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	called, _ := openCalled(t, func(_ http.ResponseWriter, r *http.Request) {
		defer close(left)
		close(entered)
		<-r.Context().Done()
	})
	called.drain = 20 * time.Millisecond
	w := deadlines{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended, closed := make(chan any, 1), make(chan error, 1)
	go func() {
		defer func() { ended <- recover() }()
		called.Call(calledAt, w, httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	<-entered
	go func() { closed <- called.Close() }()
	<-w.begun
	<-left
	for range 1000 {
		runtime.Gosched() // The call could end now.
		require.Empty(t, ended)
	}
	close(w.release)
	require.Equal(t, http.ErrAbortHandler, <-ended)
	require.NoError(t, <-closed)
}
