package outbound

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a network whose names lead to answers, in turn, and whose addresses all lead to one server.
type world struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	// asked are the names that were looked up, dialled the addresses that were connected to.
	asked, dialled []string
}

func (w *world) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	name = strings.ToLower(name)
	all := w.answers[name]
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(all) > 1 {
		w.answers[name] = all[1:]
	}
	return all[0], nil
}

// took returns what happened since the last call.
func (w *world) took() (asked, dialled []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, dialled = w.asked, w.dialled
	w.asked, w.dialled = nil, nil
	return asked, dialled
}

func addrs(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// newClient is a client of a network with a server, whose list has the entries.
func newClient(t *testing.T, o Options, h http.HandlerFunc, entries ...Entry) (*Client, *world) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	w := &world{answers: map[string][][]netip.Addr{}}
	l, err := NewList(entries...)
	require.NoError(t, err)
	o.List, o.Lookup = l, w.lookup
	c := NewClient(o)
	t.Cleanup(c.Close)
	c.connect = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, addr)
		w.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	return c, w
}

func (c *Client) get(t *testing.T, uri string) (*http.Response, error) {
	t.Helper()
	u, err := url.Parse(uri)
	require.NoError(t, err)
	return c.Do(t.Context(), http.MethodGet, u, nil)
}

// take reads an answer to its end.
func take(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(body)
}

// The address that is connected to is one that was looked at, with each connection: a DNS server that answers otherwise the
// second time gains nothing, nor one that hides an address among others.
func TestAddressesAreLookedAtWithEachConnection(t *testing.T) {
	t.Parallel()
	c, w := newClient(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, r.Host)
	}, Entry{Host: "storage.example"}, Entry{Host: "lab.example:9000", AllowPrivate: true}, Entry{Host: "127.0.0.1:9000"})
	w.answers["storage.example"] = [][]netip.Addr{addrs("8.8.8.8"), addrs("127.0.0.1"), addrs("169.254.169.254", "::1", "1.1.1.1"), addrs("10.0.0.1"), {}}
	require.Equal(t, "storage.example", fetch(t, c, "http://storage.example/x"))
	asked, dialled := w.took()
	require.Equal(t, []string{"storage.example"}, asked, "once")
	require.Equal(t, []string{"8.8.8.8:80"}, dialled)
	_, err := c.get(t, "http://storage.example/x")
	require.ErrorIs(t, err, ErrAddress)
	_, dialled = w.took()
	require.Empty(t, dialled)
	fetch(t, c, "http://storage.example/x")
	_, dialled = w.took()
	require.Equal(t, []string{"1.1.1.1:80"}, dialled)
	for range 2 {
		_, err = c.get(t, "http://storage.example/x")
		require.ErrorIs(t, err, ErrAddress)
	}
	w.answers["lab.example"] = [][]netip.Addr{addrs("10.0.0.1"), addrs("127.0.0.1"), addrs("fe80::1")}
	w.took()
	fetch(t, c, "http://LAB.example:9000/x")
	_, dialled = w.took()
	require.Equal(t, []string{"10.0.0.1:9000"}, dialled)
	for range 2 {
		_, err = c.get(t, "http://lab.example:9000/x")
		require.ErrorIs(t, err, ErrAddress)
	}
	w.took()
	fetch(t, c, "http://127.0.0.1:9000/x")
	asked, dialled = w.took()
	require.Empty(t, asked, "an address is none to look up")
	require.Equal(t, []string{"127.0.0.1:9000"}, dialled)
	_, err = c.get(t, "http://127.0.0.1:9001/x")
	require.ErrorIs(t, err, ErrNotListed)
	c.own = func() ([]netip.Addr, error) { return nil, errors.New("unknown") }
	w.answers["storage.example"] = [][]netip.Addr{addrs("8.8.8.8")}
	_, err = c.get(t, "http://storage.example/x")
	require.ErrorContains(t, err, "unknown", "who does not know itself connects to nobody")
	c.own = func() ([]netip.Addr, error) { return addrs("8.8.8.8"), nil }
	_, err = c.get(t, "http://storage.example/x")
	require.ErrorIs(t, err, ErrAddress)
	_, dialled = w.took()
	require.Empty(t, dialled)
}

func fetch(t *testing.T, c *Client, uri string) string {
	t.Helper()
	resp, err := c.get(t, uri)
	return take(t, resp, err)
}

// A redirect is not followed, wherever to; a proxy of the environment is not used; cookies are not kept; what is in the
// request goes out, and nothing else.
func TestOnlyTheRequestGoesOut(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://10.9.9.9:3128")
	t.Setenv("ALL_PROXY", "http://10.9.9.9:3128")
	t.Setenv("NETRC", "/dev/null")
	var requests atomic.Int32
	var last atomic.Pointer[http.Request]
	c, w := newClient(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		last.Store(r.Clone(context.Background()))
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Location", "http://storage.example/else")
		status := map[string]int{"/301": 301, "/302": 302, "/303": 303, "/307": 307, "/308": 308, "/300": 300, "/304": 304}[r.URL.Path]
		w.WriteHeader(max(200, status))
	}, Entry{Host: "storage.example"})
	w.answers["storage.example"] = [][]netip.Addr{addrs("8.8.8.8")}
	for _, path := range []string{"/301", "/302", "/303", "/307", "/308", "/300"} {
		_, err := c.get(t, "http://storage.example"+path)
		require.ErrorIs(t, err, ErrRedirect, path)
	}
	require.EqualValues(t, 6, requests.Load())
	resp, err := c.get(t, "http://storage.example/304")
	require.Equal(t, http.StatusNotModified, resp.StatusCode, "the answer to a condition")
	take(t, resp, err)
	u, err := url.Parse("http://storage.example/a%2Fb//c?X-Amz-Signature=%2B+x&sig=1")
	require.NoError(t, err)
	resp, err = c.Do(t.Context(), http.MethodHead, u, http.Header{"Range": {"bytes=0-1"}})
	take(t, resp, err)
	got := last.Load()
	require.Equal(t, http.Header{"Range": {"bytes=0-1"}, "User-Agent": {"Antipode"}}, got.Header)
	require.Equal(t, "/a%2Fb//c?X-Amz-Signature=%2B+x&sig=1", got.RequestURI)
	_, dialled := w.took()
	for _, addr := range dialled {
		require.Equal(t, "8.8.8.8:80", addr)
	}
	_, err = c.Do(t.Context(), http.MethodPut, u, nil)
	require.ErrorContains(t, err, "PUT")
}

// A server that does not answer, or has endless headers, holds a request for a bounded time; a client that leaves ends it, in
// the midst of the body, too; and there are so many at once at most. Each gives back what it counts for.
func TestSlowServers(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond // On a busy machine no pause of a few bytes is as long.
	c, w := newClient(t, Options{FirstByteMax: 2 * limit}, func(w http.ResponseWriter, r *http.Request) {
		flush := func() { _ = http.NewResponseController(w).Flush() }
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/stops":
			_, _ = io.WriteString(w, "some")
			flush()
			<-r.Context().Done()
		case "/header":
			for range 10 {
				w.Header().Add("X-Long", strings.Repeat("x", headerBytesMax/8))
			}
		case "/fast":
			_, _ = w.Write(make([]byte, 4<<20))
		case "/breaks":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "some")
			flush()
			panic(http.ErrAbortHandler)
		}
	}, Entry{Host: "storage.example"})
	w.answers["storage.example"] = [][]netip.Addr{addrs("8.8.8.8")}
	_, err := c.get(t, "http://storage.example/silent")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = c.get(t, "http://storage.example/header")
	require.Error(t, err)
	for path, want := range map[string]error{"/stops": context.Canceled, "/breaks": io.ErrUnexpectedEOF} {
		ctx, cancel := context.WithCancel(t.Context())
		u, err := url.Parse("http://storage.example" + path)
		require.NoError(t, err)
		resp, err := c.Do(ctx, http.MethodGet, u, nil)
		require.NoError(t, err, path)
		if path == "/stops" {
			time.AfterFunc(limit/5, cancel)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		require.ErrorIs(t, err, want, path)
		require.NoError(t, resp.Body.Close())
		cancel()
	}
	require.Len(t, fetch(t, c, "http://storage.example/fast"), 4<<20)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(limit/5, cancel)
	u, err := url.Parse("http://storage.example/silent")
	require.NoError(t, err)
	_, err = c.Do(ctx, http.MethodGet, u, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.get(t, "http://storage.example/silent")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Empty(t, c.underWay)
	for range requestsMax {
		c.underWay <- struct{}{}
	}
	_, err = c.get(t, "http://storage.example/fast")
	require.ErrorIs(t, err, ErrBusy)
	<-c.underWay
	require.Len(t, fetch(t, c, "http://storage.example/fast"), 4<<20)
}

// A name that is not found, and one that cannot be connected to, are errors of the way.
func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	c, w := newClient(t, Options{}, func(http.ResponseWriter, *http.Request) {}, Entry{Host: "*.example"})
	_, err := c.get(t, "http://none.example/")
	var missing *net.DNSError
	require.ErrorAs(t, err, &missing)
	w.answers["storage.example"] = [][]netip.Addr{addrs("8.8.8.8", "1.1.1.1")}
	c.connect = func(_ context.Context, _, addr string) (net.Conn, error) { return nil, errors.New("no way to " + addr) }
	_, err = c.get(t, "https://storage.example/")
	require.ErrorContains(t, err, "no way to 1.1.1.1:443", "all addresses are tried")
	require.Empty(t, c.underWay)
}
