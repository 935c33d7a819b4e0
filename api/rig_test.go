package api_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

// directory knows accounts by their primary, north or south.
type directory map[geo.Account]geo.Location

// Resolve implements api.Directory. It leaves containers to the handlers.
func (d directory) Resolve(_ context.Context, name geo.Account, _ geo.Service, _ func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a := &catalog.Account{Name: name, Key1: key, Key2: key, Epoch: 1, Primary: d[name], Redundancy: catalog.RAGRS}
	switch a.Primary {
	case "north":
		a.Secondary = "south"
	case "south":
		a.Secondary = "north"
	case "alone": // LRS
		a.Primary, a.Redundancy = "north", catalog.LRS
	case "copying": // RA-GRS, and its secondary is here, with a part of the data.
		a.Primary, a.Secondary = "south", "north"
		a.Operation = &catalog.Operation{Kind: catalog.OperationBootstrap, Copying: true}
	case "hidden": // GRS, and its secondary is here.
		a.Primary, a.Secondary, a.Redundancy = "south", "north", catalog.GRS
	default:
		return nil, nil, nil, storageerr.AccountNotFound
	}
	return a, nil, nil, nil
}

// frontEnd is a front end under test and what it counted.
type frontEnd struct {
	*api.Server
	url     string
	forward *routing.Forwarder

	mu     sync.Mutex
	counts map[string]int // by operation and status
}

func (f *frontEnd) observe(_ geo.Service, op string, status int, code string, _ time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if what := fmt.Sprint(op, " ", status); (status >= http.StatusMultipleChoices) == (code != "") {
		f.counts[what]++
	} else { // Never what a test wants: an error is counted with its code, and nothing else has one.
		f.counts[what+" "+code]++
	}
}

// requireCounted waits until what was counted since the last call is one request of an
// operation and a status, or nothing: a request is counted when its answer is out.
func (f *frontEnd) requireCounted(t *testing.T, want ...string) {
	t.Helper()
	counted := map[string]int{}
	for _, w := range want {
		counted[w]++
	}
	take := func() map[string]int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return maps.Clone(f.counts)
	}
	if len(want) > 0 {
		require.Eventually(t, func() bool { return len(take()) > 0 }, time.Minute, time.Millisecond)
	}
	require.Equal(t, counted, take())
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.counts)
}

// host is the address of a server.
func host(url string) string { return strings.TrimPrefix(url, "http://") }

// newFrontEnd makes a front end with options where o has none, which is not listening.
func newFrontEnd(t *testing.T, o api.Options) *frontEnd {
	t.Helper()
	f := &frontEnd{counts: map[string]int{}}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Directory == nil {
		o.Directory = directory{"acct": "north"}
	}
	if o.Forward == nil {
		o.Forward = routing.NewForwarder("test", func(geo.Location, geo.Service) []string { return nil }, nil)
	}
	o.IDs, o.Logger, o.Observe = protocol.NewRequestIDs([32]byte{}), apitest.Quiet(), f.observe
	if o.Accounts == nil {
		o.Accounts = &accounts.Handler{Stats: func(context.Context, *catalog.Account, geo.Service) (stats.Replication, error) {
			return stats.Replication{Status: stats.Unavailable}, nil
		}}
	}
	o.Hosts = append(slices.Clone(o.Hosts), "example.com") // That of httptest.NewRequest.
	f.Server, f.forward = api.NewServer(o), o.Forward
	t.Cleanup(f.forward.Close)
	return f
}

// listen serves the table service on a port.
func (f *frontEnd) listen(t *testing.T) *frontEnd {
	t.Helper()
	s := httptest.NewServer(f.Handler(geo.Table))
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

// startFrontEnd is newFrontEnd, listening.
func startFrontEnd(t *testing.T, o api.Options) *frontEnd {
	t.Helper()
	return newFrontEnd(t, o).listen(t)
}

// stub is a server of any behaviour.
func stub(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// ledBy sets that all ranges are led at one address.
func ledBy(url string) routing.Leader {
	return func(geo.RangeID, geo.Service) (string, bool) { return host(url), false }
}

func ledHere(geo.RangeID, geo.Service) (string, bool) { return "", true }

func ledNowhere(geo.RangeID, geo.Service) (string, bool) { return "", false }

// insert is where an entity is inserted; statsTarget what any front end of south answers
// without a stamp.
const (
	insert      = "/acct/things"
	statsTarget = "/acct-secondary/?restype=service&comp=stats"
)

// signed is a signed request, for the account in its path.
func signed(t *testing.T, method, url string, body io.Reader, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	require.NoError(t, err)
	r.Header.Set("x-ms-version", "2021-12-02")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	account, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name, _ := geo.SplitSecondary(account)
	require.NoError(t, auth.SignSharedKeyLite(r, geo.Table, name, key, clock.System{}.Now()))
	return r
}

// answer is what a request got.
type answer struct {
	status int
	code   string
	header http.Header
	body   string
}

// send sends a request on a new connection.
func send(t *testing.T, r *http.Request) answer {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return answer{resp.StatusCode, resp.Header.Get("x-ms-error-code"), resp.Header, string(body)}
}

// record lets a front end answer a request without a socket.
func (f *frontEnd) record(t *testing.T, method, target string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := signed(t, method, "http://127.0.0.1"+target, body)
	r.RequestURI = target
	return record(f.Handler(geo.Table), r)
}

func record(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// at sets that every location is served at one address.
func at(url string) func(geo.Location, geo.Service) []string {
	return func(geo.Location, geo.Service) []string { return []string{host(url)} }
}

// forwarder reaches every location at hop listeners.
func forwarder(from string, urls ...string) *routing.Forwarder {
	return routing.NewForwarder(from, func(_ geo.Location, s geo.Service) []string {
		var out []string
		for _, u := range urls {
			out = append(out, routing.HopAddress(host(u), s))
		}
		return out
	}, nil)
}

// gotConn records the local address of the connection that a request is sent on.
func gotConn(ctx context.Context, local *string) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { *local = i.Conn.LocalAddr().String() }})
}
