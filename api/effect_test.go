package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/auth"
	"antipode/api/queues"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/clock"
)

// forgetful is a front end that answers the first request of each connection, reads the
// second and closes the connection without an answer: what net/http takes for a kept
// connection that broke.
type forgetful struct {
	addr string
	// asked counts requests whose path holds "messages" or "things".
	asked atomic.Int32
}

func newForgetful(t *testing.T) *forgetful {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &forgetful{addr: l.Addr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return f
}

func (f *forgetful) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if !strings.Contains(r.URL.Path, "warm") {
			f.asked.Add(1)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

// ask sends a signed request for a service through h.
func ask(t *testing.T, h http.Handler, s geo.Service, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1"+target, nil)
	r.RequestURI = target
	r.Header.Set("x-ms-version", "2021-12-02")
	require.NoError(t, auth.Sign(r, s, "acct", key, clock.System{}.Now()))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A GET that writes is sent once: when its answer is lost, neither the hop, nor the next
// front end of the location, nor net/http on a kept connection sends it again (R1). A read
// is asked again. Both hold in front of a location, and at the gateway.
//
// Capability: Queues: The protocol of queues.
func TestGetThatWritesIsSentOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		service geo.Service
		target  string
		again   bool
	}{
		{geo.Queue, "/acct/q/messages", false},
		{geo.Queue, "/acct/q/messages?numofmessages=2", false},
		{geo.Queue, "/acct/unknown", false},
		{geo.Queue, "/acct/q/messages?peekonly=true", true},
		{geo.Table, "/acct/things()", true},
		{geo.Blob, "/acct/c/b", true},
	} {
		for _, gateway := range []bool{false, true} {
			first, second := newForgetful(t), newForgetful(t)
			o := api.Options{
				Location: "south",
				Forward:  routing.NewForwarder("test", func(geo.Location, geo.Service) []string { return []string{first.addr, second.addr} }, nil),
			}
			if gateway {
				o.Location, o.Locations = "", []geo.Location{"north"}
			}
			h := newFrontEnd(t, o).Handler(c.service)
			require.Equal(t, http.StatusNoContent, ask(t, h, c.service, http.MethodGet, "/acct/warm").Code, "a connection is kept")
			w := ask(t, h, c.service, http.MethodGet, c.target)
			require.Equal(t, http.StatusInternalServerError, w.Code, c.target)
			require.Equal(t, "OperationTimedOut", w.Header().Get("x-ms-error-code"))
			asked := first.asked.Load() + second.asked.Load()
			if c.again {
				require.Greater(t, asked, int32(1), c.target)
			} else {
				require.Equal(t, int32(1), asked, c.target)
			}
		}
	}
}

// A read that a front end did not answer in time is not asked of the next one, which would
// do the same work for nobody.
func TestTimedOutReadIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, gateway := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int32
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				asked.Add(1)
				return pipeTo("")(ctx, network, addr)
			}
			o := api.Options{
				Location: "south",
				Forward:  routing.NewForwarder("test", func(geo.Location, geo.Service) []string { return []string{"a:1", "b:1"} }, dial),
			}
			if gateway {
				o.Location, o.Locations = "", []geo.Location{"north", "west"}
			}
			start := time.Now()
			w := ask(t, newFrontEnd(t, o).Handler(geo.Table), geo.Table, http.MethodGet, "/acct/things()")
			require.Equal(t, "OperationTimedOut", w.Header().Get("x-ms-error-code"))
			require.Equal(t, 35*time.Second, time.Since(start))
			require.EqualValues(t, 1, asked.Load())
		})
	}
}

// What `-secondary` refuses follows from the operation: a GET that writes is refused, a
// POST that reads is not.
func TestSecondaryRefusesByOperation(t *testing.T) {
	t.Parallel()
	f := newFrontEnd(t, api.Options{Location: "south", Leader: ledHere, Queues: queues.NewHandler(queues.Options{})})
	for request, want := range map[string]string{
		"GET /acct-secondary/q/messages":                                 "InsufficientAccountPermissions",
		"PUT /acct-secondary/q":                                          "InsufficientAccountPermissions",
		"PATCH /acct-secondary/q":                                        "InsufficientAccountPermissions",
		"GET /acct-secondary/que/messages?peekonly=true&numofmessages=0": "OutOfRangeQueryParameterValue", // It gets that far.
	} {
		method, target, _ := strings.Cut(request, " ")
		w := ask(t, f.Handler(geo.Queue), geo.Queue, method, target)
		require.Equal(t, want, w.Header().Get("x-ms-error-code"), request)
	}
}
