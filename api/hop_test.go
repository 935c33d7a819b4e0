package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/apitest"
	"antipode/api/routing"
	"antipode/geo"
)

// breakOff ends a request without an answer.
func breakOff() { panic(http.ErrAbortHandler) }

// A write whose answer is lost is not sent again (R1): it may have had an effect, and its
// answer says so. That holds on a connection that was used before and for a client that
// sends an Idempotency-Key, on which net/http would send it again by itself.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	leader := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusOK)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		arrived.Add(1)
		breakOff()
	})
	f := startFrontEnd(t, api.Options{Location: "north", Leader: ledBy(leader)})
	for _, body := range []string{"", "{}"} {
		for _, header := range []string{"X-Nothing", "Idempotency-Key", "X-Idempotency-Key"} {
			require.Equal(t, http.StatusOK, send(t, signed(t, http.MethodGet, f.url+insert, nil)).status, "a connection is kept")
			arrived.Store(0)
			a := send(t, signed(t, http.MethodDelete, f.url+insert, strings.NewReader(body), header, "1"))
			require.Equal(t, "OperationTimedOut", a.code, a.body)
			require.Equal(t, http.StatusInternalServerError, a.status)
			require.EqualValues(t, 1, arrived.Load(), "%s %q", header, body)
		}
	}
}

// A read whose answer is lost is asked again, at the leader of then.
func TestLostRead(t *testing.T) {
	t.Parallel()
	first := stub(t, func(http.ResponseWriter, *http.Request) { breakOff() })
	second := stub(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "read") })
	var asked atomic.Int32
	f := startFrontEnd(t, api.Options{Location: "north", Leader: func(geo.RangeID, geo.Service) (string, bool) {
		if asked.Add(1) == 1 {
			return host(first), false
		}
		return host(second), false
	}})
	a := send(t, signed(t, http.MethodGet, f.url+insert, nil))
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, "read", a.body)
}

// An answer without a content type has none after a hop either: net/http would guess one
// from the bytes.
func TestHopAddsNoContentType(t *testing.T) {
	t.Parallel()
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	})
	f := startFrontEnd(t, api.Options{Location: "north", Leader: ledBy(leader)})
	r := signed(t, http.MethodGet, f.url+insert, nil)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Empty(t, resp.Header.Values("Content-Type"))
}

// 64 MiB go through a hop as they come, in both directions: each part arrives before the
// next is sent.
func TestHopStreams(t *testing.T) {
	t.Parallel()
	const part, parts = 1 << 20, 64
	passed := make(chan struct{})
	leader := stub(t, func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, part)
		for range parts {
			if _, err := io.ReadFull(r.Body, buf); err != nil {
				breakOff()
			}
			passed <- struct{}{}
		}
		for range parts {
			_, _ = w.Write(buf)
			_ = http.NewResponseController(w).Flush()
			<-passed
		}
	})
	f := startFrontEnd(t, api.Options{Location: "north", Leader: ledBy(leader)})
	out, in := io.Pipe()
	go func() {
		buf := make([]byte, part)
		for range parts {
			_, _ = in.Write(buf)
			<-passed
		}
		_ = in.Close()
	}()
	r := signed(t, http.MethodPut, f.url+insert, out)
	r.ContentLength = part * parts
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	buf := make([]byte, part)
	// What net/http keeps in its buffer (4 KiB) goes out with the next part.
	const buffered = 4 << 10
	_, err = io.ReadFull(resp.Body, buf[buffered:])
	require.NoError(t, err)
	for range parts - 1 {
		passed <- struct{}{}
		_, err = io.ReadFull(resp.Body, buf)
		require.NoError(t, err)
	}
	passed <- struct{}{}
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Len(t, rest, buffered)
	require.NoError(t, resp.Body.Close())
}

// pipeTo is a dial to a server that reads all that comes, and answers answer and no more.
func pipeTo(answer string) routing.Dial {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			in := bufio.NewReader(far)
			_, _ = in.Peek(1)
			_, _ = io.WriteString(far, answer)
			_, _ = io.Copy(io.Discard, in)
			_ = far.Close()
		}()
		return near, nil
	}
}

// A front end that was reached and then does nothing, as a paused one, is given up when
// the request's time is over, or after 35 s: a write may have had an effect.
func TestPausedLeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target, answer string
		within         time.Duration
	}{
		"no answer":           {insert, "", 30 * time.Second}, // The time of a table request.
		"no answer, timeout":  {insert + "?timeout=3", "", 3 * time.Second},
		"stops in its answer": {"/acct-secondary/things", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 35 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFrontEnd(t, api.Options{
				Location: "north", Leader: ledBy("http://paused:1"),
				Forward: routing.NewForwarder("test", func(geo.Location, geo.Service) []string { return []string{"paused:1"} }, pipeTo(c.answer)),
			})
			start := time.Now()
			if c.answer == "" {
				w := f.record(t, http.MethodDelete, c.target, nil)
				require.Equal(t, "OperationTimedOut", w.Header().Get("x-ms-error-code"), name)
			} else {
				require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { f.record(t, http.MethodGet, c.target, nil) }, name)
			}
			require.Equal(t, c.within, time.Since(start), name)
		})
	}
}

// A location's front ends are tried in their order, one that was not reached is passed
// over for a while, and all are tried where none was reached.
func TestSeveralEndpoints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dialled []string
		up := map[string]bool{"b:1": true}
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled = append(dialled, addr)
			if up[addr] {
				return pipeTo("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")(ctx, network, addr)
			}
			<-ctx.Done() // A machine that is gone does not even refuse.
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
		f := newFrontEnd(t, api.Options{
			Location: "south",
			Forward:  routing.NewForwarder("test", func(geo.Location, geo.Service) []string { return []string{"a:1", "b:1", "c:1"} }, dial),
		})
		get := func() (int, []string) {
			dialled = nil
			start := time.Now()
			w := f.record(t, http.MethodPost, insert, strings.NewReader("{}"))
			require.LessOrEqual(t, time.Since(start), 2*time.Second)
			return w.Code, dialled
		}
		for _, step := range []struct {
			wait    time.Duration
			status  int
			dialled []string
		}{
			{0, 204, []string{"a:1", "b:1"}},
			{0, 204, []string{"b:1"}},
			{5 * time.Second, 204, []string{"a:1", "b:1"}},
		} {
			time.Sleep(step.wait)
			status, dialled := get()
			require.Equal(t, step.status, status)
			require.Equal(t, step.dialled, dialled)
		}
		up = nil
		status, dialled := get()
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, []string{"b:1", "c:1"}, dialled, "a:1 was missed a moment ago, and 2 s are over")
		up = map[string]bool{"a:1": true}
		status, _ = get()
		require.Equal(t, http.StatusNoContent, status)
	})
}

// A second hop to another location is not made.
func TestHopToLocationOnce(t *testing.T) {
	t.Parallel()
	var f *frontEnd
	f = startFrontEnd(t, api.Options{
		Location: "south",
		Forward:  routing.NewForwarder("test", func(geo.Location, geo.Service) []string { return []string{host(f.url)} }, nil),
	})
	a := send(t, signed(t, http.MethodGet, f.url+insert, nil))
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "Each location takes another one")
}

// An answer that comes before the request is read arrives whole, also where stopping the
// sender cancels the request: net/http watches the connection from the end of the body on.
func TestEarlyAnswerArrivesWhole(t *testing.T) {
	t.Parallel()
	end := &apitest.HeldEnd{Reached: make(chan struct{})}
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
		<-end.Reached
		_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 10\r\n\r\nfirst")
		<-end.Cancelled
		_, _ = io.WriteString(conn, " half")
		_ = conn.Close()
	})
	f := newFrontEnd(t, api.Options{Location: "north", Leader: ledBy(leader)})
	served := stub(t, func(w http.ResponseWriter, r *http.Request) {
		end.ReadCloser, end.Cancelled = r.Body, r.Context().Done()
		r.Body = end
		f.Handler(geo.Table).ServeHTTP(w, r)
	})
	a := send(t, signed(t, http.MethodPost, served+insert, strings.NewReader("{}")))
	require.Equal(t, http.StatusForbidden, a.status)
	require.Equal(t, "first half", a.body)
}

// A hop is not given up before the operation could be over, which copies and batches carry out without a word meanwhile.
func TestHopWaitsForCopies(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]time.Duration{
		"CopyBlob": 10 * time.Minute, "PutBlockFromURL": 10 * time.Minute, "BlobBatch": 2 * time.Minute, "PutBlob": 0, "GetBlob": 0, "AbortCopyBlob": 0,
	} {
		require.Equal(t, want, api.LongOf(name), name)
	}
}
