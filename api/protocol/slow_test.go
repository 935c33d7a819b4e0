package protocol

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/apitest"
)

// deadlines is a connection that remembers its deadlines.
type deadlines struct {
	http.ResponseWriter
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = append(d.read, t); return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = append(d.write, t); return nil }

// Each read of a body has SenderStallMax, never past the request's end, and what
// net/http reads after the body has no deadline.
// It holds invariant 8.
func TestWatchSender(t *testing.T) {
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPut, "/x", strings.NewReader("body"))
	WatchSender(d, r)
	start := time.Now()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, "body", string(b))
	require.GreaterOrEqual(t, len(d.read), 2)
	require.WithinRange(t, d.read[0], start.Add(SenderStallMax), time.Now().Add(SenderStallMax))
	require.True(t, d.read[len(d.read)-1].IsZero())

	empty := httptest.NewRequest(http.MethodGet, "/x", nil)
	WatchSender(d, empty)
	require.Equal(t, http.NoBody, empty.Body, "nothing to watch")
}

// A sender that is too slow is distinguished from one that broke off.
func TestSlowSender(t *testing.T) {
	var got error
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := &pressing{w}
		WatchSender(d, r)
		_, got = io.ReadAll(r.Body)
	}))
	defer s.Close()
	pr, pw := io.Pipe()
	defer pw.Close() //nolint:errcheck // A pipe's never fails.
	resp, err := http.Post(s.URL, "text/plain", io.MultiReader(strings.NewReader("some"), pr))
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
	s.CloseClientConnections()
	s.Close()
	require.ErrorIs(t, got, os.ErrDeadlineExceeded)
}

// pressing lets every read end at once.
type pressing struct{ http.ResponseWriter }

func (p *pressing) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		t = time.Now().Add(10 * time.Millisecond)
	}
	return http.NewResponseController(p.ResponseWriter).SetReadDeadline(t)
}

// Each part of a long answer has ReceiverStallMax from when it is written.
// It holds invariant 8.
func TestPatientWriter(t *testing.T) {
	rec := httptest.NewRecorder()
	d := &deadlines{ResponseWriter: rec}
	start := time.Now()
	out := &PatientWriter{W: d}
	for range 3 {
		_, err := out.Write([]byte("part"))
		require.NoError(t, err)
	}
	require.Len(t, d.write, 3)
	require.WithinRange(t, d.write[2], start.Add(ReceiverStallMax), time.Now().Add(ReceiverStallMax))
	require.Equal(t, "partpartpart", rec.Body.String())
}

// What is larger than the bound is alone; what waits when its time ends was not
// admitted.
func TestInFlightAdmits(t *testing.T) {
	f := NewInFlight(10)
	held, err := f.Admit(t.Context(), 25)
	require.NoError(t, err)
	require.Equal(t, int64(10), held)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err := f.Admit(t.Context(), 4)
		if err == nil {
			f.Release(n)
		}
	}()
	select {
	case <-done:
		t.Error("admitted beside what takes all")
	case <-time.After(20 * time.Millisecond):
	}
	f.Release(held)
	<-done
}

// A client that sends all of a refused body before it reads sees the answer, and no
// reset.
func TestLinger(t *testing.T) {
	const length = 8 << 20
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		WatchSender(w, r)
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		Linger(w, r)
	}))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length)
	require.NoError(t, err)
	_, err = conn.Write(make([]byte, length))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
	require.NoError(t, conn.Close())
}

// A read that is interrupted as it reaches the end of the body makes net/http cancel the
// connection's context: such a connection takes no other request, which would fail.
func TestInterruptedReadEndsTheConnection(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		end := &apitest.HeldEnd{ReadCloser: r.Body, Reached: make(chan struct{}), Cancelled: r.Context().Done()}
		r.Body = end
		WatchSender(w, r)
		go func() { _, _ = io.ReadAll(r.Body) }()
		<-end.Reached
		StopSender(r)
		BeforeAnswer(w, r)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("body"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.True(t, resp.Close)
}
