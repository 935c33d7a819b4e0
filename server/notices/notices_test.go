package notices

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	wire "antipode/client/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an HTTP server that keeps the notices it takes, in their order.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	got    []Notice
	// holds has each request wait until it is closed; nil for none.
	holds chan struct{}
	asked chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusNoContent, asked: make(chan struct{}, 10*waitingMax)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var n Notice
		if err != nil || json.Unmarshal(body, &n) != nil {
			t.Errorf("not a notice: %s", body)
		}
		r.mu.Lock()
		holds := r.holds
		r.mu.Unlock()
		r.asked <- struct{}{}
		if holds != nil {
			select {
			case <-holds:
			case <-q.Context().Done():
				return
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.status/100 == 2 {
			r.got = append(r.got, n)
			require.Equal(t, Signature([]byte("key"), body), q.Header.Get(SignatureHeader))
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// numbers are those of the notices that arrived.
func (r *receiver) numbers() (out []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.got {
		out = append(out, n.Event.Number)
	}
	return out
}

func open(t *testing.T, url string, o Options) *Notices {
	o.URL, o.Key, o.Logger = url, []byte("key"), slog.New(slog.DiscardHandler)
	n := Open(o)
	t.Cleanup(n.Close)
	return n
}

// upTo are the numbers from 1.
func upTo(n uint64) (out []uint64) {
	for i := uint64(1); i <= n; i++ {
		out = append(out, i)
	}
	return out
}

// Notices arrive in their order, signed; a receiver that answers with an error gets them again, after pauses that grow up to
// a minute, and none is lost. The one that comes again is the same.
func TestReceiverIsAwayAndBack(t *testing.T) {
	r := newReceiver(t)
	r.set(func() { r.status = http.StatusServiceUnavailable })
	pauses := make(chan time.Duration)
	n := open(t, r.URL, Options{Wait: func(ctx context.Context, d time.Duration) error {
		select {
		case pauses <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	for i := range uint64(5) {
		n.Send(wire.Event{Number: i + 1, Kind: "failover-begun", Account: "acct"})
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		require.Equal(t, want*time.Second, <-pauses)
	}
	require.Empty(t, r.numbers())
	r.set(func() { r.status = http.StatusOK })
	go func() {
		for range pauses { // Until the test ends.
		}
	}()
	require.Eventually(t, func() bool { return len(r.numbers()) == 5 }, 10*time.Second, time.Millisecond)
	require.Equal(t, upTo(5), r.numbers())
	n.Close()
	close(pauses)
}

// A receiver that is slow holds up nobody: Send returns at once. Notices that do not fit are counted, and the next
// notice that does has the number.
func TestSlowReceiverHoldsUpNobody(t *testing.T) {
	r := newReceiver(t)
	holds := make(chan struct{})
	r.set(func() { r.holds = holds })
	n := open(t, r.URL, Options{Timeout: time.Minute})
	n.Send(wire.Event{Number: 1})
	<-r.asked // It is under way, and still waits in memory.
	for i := range uint64(waitingMax + 9) {
		n.Send(wire.Event{Number: i + 2})
	}
	close(holds)
	require.Eventually(t, func() bool { return len(r.numbers()) == waitingMax }, 20*time.Second, time.Millisecond)
	require.Equal(t, upTo(waitingMax), r.numbers())
	n.Send(wire.Event{Number: 5000})
	require.Eventually(t, func() bool { return len(r.numbers()) == waitingMax+1 }, 20*time.Second, time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	require.EqualValues(t, 10, r.got[waitingMax].Missed)
}

// An attempt that takes too long ends, and is made again; Close does not wait for a receiver.
func TestAttemptsAreBounded(t *testing.T) {
	r := newReceiver(t)
	holds := make(chan struct{})
	defer close(holds)
	r.set(func() { r.holds = holds })
	n := open(t, r.URL, Options{Timeout: 20 * time.Millisecond, Wait: func(context.Context, time.Duration) error { return nil }})
	n.Send(wire.Event{Number: 1})
	for range 3 {
		<-r.asked
	}
	n.Close()
	require.Empty(t, r.numbers())
}

// A redirect takes no notice, wherever it leads: it would be followed by a request without the notice.
func TestRedirectIsNotFollowed(t *testing.T) {
	asked, elsewhere := make(chan struct{}), make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/elsewhere" {
			elsewhere <- struct{}{}
			return
		}
		_, _ = io.Copy(io.Discard, q.Body) // A server learns that a request has ended once its body was read.
		select {
		case asked <- struct{}{}:
		case <-q.Context().Done():
		}
		http.Redirect(w, q, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(s.Close)
	n := open(t, s.URL, Options{Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	n.Send(wire.Event{Number: 1})
	for range 3 { // It is sent again.
		select {
		case <-asked:
		case <-elsewhere:
			require.Fail(t, "the redirect was followed")
		}
	}
}

// Neither the path nor the query of the receiver's URL, nor a password in it, is logged: each may be a token.
func TestURLIsNotLogged(t *testing.T) {
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	for _, address := range []string{
		strings.Replace(away.URL, "http://", "http://user:secret@", 1) + "/secret?token=secret",
		"http://receiver.invalid:1/secret%zz",
	} {
		var log lockedBuilder
		tried := make(chan struct{}, 10)
		n := Open(Options{
			URL: address, Logger: slog.New(slog.NewTextHandler(&log, nil)), Wait: func(ctx context.Context, _ time.Duration) error {
				tried <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			},
		})
		n.Send(wire.Event{Number: 1})
		<-tried
		n.Close()
		require.Contains(t, log.String(), "a notice of a failover does not arrive")
		require.NotContains(t, log.String(), "secret")
	}
	require.Equal(t, "https://pager.example:8443", Receiver("https://user:secret@pager.example:8443/hook?token=secret"))
}

// lockedBuilder is a strings.Builder for a logger.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
