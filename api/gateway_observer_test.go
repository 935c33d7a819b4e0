package api_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
)

// gatewayCounts is a routing.GatewayObserver that counts.
type gatewayCounts struct {
	mu     sync.Mutex
	counts map[string]int64 // guarded by mu
}

func (d *gatewayCounts) add(n int64, what ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n != 0 {
		d.counts[strings.TrimSpace(fmt.Sprintln(what...))] += n
	}
}

// Answered implements routing.GatewayObserver.
func (d *gatewayCounts) Answered(s geo.Service, status int, _ time.Duration, in, out int64) {
	d.add(in, "in")
	d.add(out, "out")
	d.add(1, s, status)
}

// Failed implements routing.GatewayObserver.
func (d *gatewayCounts) Failed(_ geo.Service, code string) { d.add(1, code) }

// Forwarded implements routing.GatewayObserver.
func (d *gatewayCounts) Forwarded(to geo.Location, outcome string) { d.add(1, to, outcome) }

// requireBecame waits until what was counted since the last call is this, the status of one
// request among it: that is counted last, when its answer is out.
func (d *gatewayCounts) requireBecame(t *testing.T, want map[string]int64) {
	t.Helper()
	var got map[string]int64
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		got = maps.Clone(d.counts)
		return slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(k string) bool { return strings.HasPrefix(k, "table ") })
	}, time.Minute, time.Millisecond, "%v, want %v", got, want)
	require.Equal(t, want, got)
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.counts)
}

// What a gateway counts is what happened: each attempt by its outcome, each answer by its
// status, the bytes of both bodies, and the errors that no location made.
func TestGatewayObserved(t *testing.T) { eachWay(t, testGatewayObserved) }

func testGatewayObserved(t *testing.T, rig *gatewayRig) {
	t.Helper()
	require.Equal(t, http.StatusOK, rig.post(t, "acct").status)
	rig.seen.requireBecame(t, map[string]int64{"north answered": 1, "table 200": 1, "in": 8, "out": 8})
	require.Equal(t, http.StatusOK, rig.post(t, "mirror").status)
	rig.seen.requireBecame(t, map[string]int64{"north refused": 1, "south answered": 1, "table 200": 1, "in": 8, "out": 8})
	a := rig.post(t, "nobody") // Both are asked in vain; the first then says what is wrong.
	require.Equal(t, http.StatusForbidden, a.status)
	rig.seen.requireBecame(t, map[string]int64{
		"north refused": 1, "south refused": 1, "north answered": 1, "table 403": 1, "in": 8, "out": int64(len(a.body)),
	})
	rig.deaf["north"], rig.deaf["south"] = true, true
	a = rig.post(t, "acct")
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	rig.seen.requireBecame(t, map[string]int64{
		"north unreachable": 1, "south unreachable": 1, "ServerBusy": 1, "table 503": 1, "in": 8, "out": int64(len(a.body)),
	})
	r := signed(t, http.MethodGet, rig.gateway.url+"/acct/things", nil)
	r.Header.Set("x-ms-version", "of old")
	a = send(t, r)
	require.Equal(t, http.StatusBadRequest, a.status)
	rig.seen.requireBecame(t, map[string]int64{"InvalidHeaderValue": 1, "table 400": 1, "out": int64(len(a.body))})
}

// An answer that breaks off on its way, and one that never comes, are counted as such.
func TestGatewayObservesBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} {
		testBrokenAnswers(t, local)
	}
}

func testBrokenAnswers(t *testing.T, local bool) {
	t.Helper()
	const half = 64 << 10 // More than a buffer holds back.
	seen := &gatewayCounts{counts: map[string]int64{}}
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.RequestURI, "?timeout=1") {
			breakOff()
		}
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			breakOff()
		}
		w.Header().Set("Content-Length", strconv.Itoa(2*half))
		_, _ = w.Write(make([]byte, half))
		_ = http.NewResponseController(w).Flush()
		breakOff()
	})
	breaking := stub(t, broken)
	gateway := startFrontEnd(t, api.Options{
		Gateway: seen, Locations: []geo.Location{"north"},
		Local: func(_ geo.Location, _ geo.Service, w http.ResponseWriter, r *http.Request) bool {
			if local {
				broken.ServeHTTP(w, r)
			}
			return local
		},
		Forward: routing.NewForwarder("gateway", func(geo.Location, geo.Service) []string { return []string{host(breaking)} }, nil),
	})
	conn, err := net.Dial("tcp", host(gateway.url))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	require.NoError(t, signed(t, http.MethodGet, gateway.url+"/acct/things", nil).Write(conn))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err, "the client sees it, too")
	require.NoError(t, resp.Body.Close())
	seen.requireBecame(t, map[string]int64{"north broken": 1, "table 200": 1, "out": half})

	a := send(t, signed(t, http.MethodPost, gateway.url+"/acct/things", strings.NewReader("the body")))
	require.Equal(t, "OperationTimedOut", a.code)
	seen.requireBecame(t, map[string]int64{"north unknown": 1, "OperationTimedOut": 1, "table 500": 1, "in": 8, "out": int64(len(a.body))})

	a = send(t, signed(t, http.MethodGet, gateway.url+"/acct/things?timeout=1", nil))
	require.Equal(t, "ServerBusy", a.code, "a read has no effect")
	seen.requireBecame(t, map[string]int64{"north unreachable": 1, "ServerBusy": 1, "table 503": 1, "out": int64(len(a.body))})
}
