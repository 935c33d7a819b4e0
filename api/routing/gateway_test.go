package routing

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// reported is what a gateway knows of the epoch of every account.
type reported struct {
	mu        sync.Mutex
	epoch     geo.Epoch
	secondary geo.Location
}

func (k *reported) Newest(context.Context, geo.Account) (geo.Epoch, geo.Location) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.epoch, k.secondary
}

func (k *reported) is(n geo.EpochNumber, primary, secondary geo.Location) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.epoch, k.secondary = geo.Epoch{Number: n, Location: primary}, secondary
}

// place is a location that serves one account by what it believes of that, and cannot reach the other location.
type place struct {
	name  geo.Location
	other geo.Location
	// have is the account's epoch as it is known here.
	have geo.Epoch
	// arrived are the requests that came, during, if set, is called while one is served.
	arrived []string
	during  func()
	// deaf is set for a place that does not look at the epoch of a gateway: one of an older version.
	deaf bool
}

func (p *place) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := Request{W: w, R: r, Reads: r.Method == http.MethodGet}
		secondary := strings.Contains(r.URL.Path, "-secondary")
		p.arrived = append(p.arrived, r.Method+" "+r.Header.Get(epochHeader))
		here := (p.have.Location == p.name) != secondary
		switch {
		case !here:
			if !NotHere(q, p.name) {
				ServedBy(q, p.other)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case !secondary && !p.deaf:
			if Outrun(q, p.name, p.have) {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		}
		ServedBy(q, p.name)
		_, _ = io.Copy(io.Discard, r.Body)
		if p.during != nil {
			p.during()
		}
		_, _ = io.WriteString(w, string(p.name))
	})
}

// twoPlaces is a gateway before two locations that both are the primary's of epoch 1, which the north is.
type twoPlaces struct {
	known        reported
	north, south *place
	away         map[geo.Location]bool
	gateway      *Gateway
}

func newTwoPlaces(t *testing.T) *twoPlaces {
	first := geo.Epoch{Number: 1, Location: "north"}
	two := &twoPlaces{north: &place{name: "north", other: "south", have: first}, south: &place{name: "south", other: "north", have: first}, away: map[geo.Location]bool{}}
	at := map[geo.Location]string{}
	for _, p := range []*place{two.north, two.south} {
		s := httptest.NewServer(p.handler())
		t.Cleanup(s.Close)
		at[p.name] = s.Listener.Addr().String()
	}
	f := NewForwarder("gateway", func(l geo.Location, _ geo.Service) []string {
		if two.away[l] {
			return nil
		}
		return []string{at[l]}
	}, nil)
	t.Cleanup(f.Close)
	two.gateway = NewGateway([]geo.Location{"north", "south"}, &two.known, nil, f, unobserved{})
	return two
}

// send passes a request, and returns who served it, or the error.
func (two *twoPlaces) send(method string, secondary bool) string {
	path := "/acct/things"
	if secondary {
		path = "/acct-secondary/things"
	}
	r := httptest.NewRequest(method, path, nil)
	if method == http.MethodPut {
		r = httptest.NewRequest(method, path, strings.NewReader("the body"))
	}
	w := httptest.NewRecorder()
	err := two.gateway.Pass(Request{W: w, R: r, Reads: method == http.MethodGet}, "acct", secondary)
	switch {
	case err != nil:
		return err.Error()
	case w.Code != http.StatusOK:
		return http.StatusText(w.Code)
	}
	return w.Body.String()
}

func (two *twoPlaces) arrivals() (north, south []string) {
	north, south = two.north.arrived, two.south.arrived
	two.north.arrived, two.south.arrived = nil, nil
	return north, south
}

// R20: the south was promoted behind a cut link, and the north, which served the account until then, does not know it. From
// the moment the gateway knows the higher epoch, requests for the primary's name go to the south, and never back.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
func TestR20GatewayFollowsTheHigherEpoch(t *testing.T) {
	two := newTwoPlaces(t)
	require.Equal(t, "north", two.send(http.MethodPut, false), "nothing is known: the first location is asked")
	require.Equal(t, "south", two.send(http.MethodGet, true))
	two.known.is(1, "north", "south")
	require.Equal(t, "north", two.send(http.MethodPut, false))
	two.arrivals()

	two.south.have = geo.Epoch{Number: 2, Location: "south"}
	require.Equal(t, "north", two.send(http.MethodPut, false), "the gateway has not learned yet")
	two.arrivals()
	two.known.is(2, "south", "north")
	for range 2 {
		require.Equal(t, "south", two.send(http.MethodPut, false))
	}
	require.Equal(t, "south", two.send(http.MethodGet, false))
	north, south := two.arrivals()
	require.Empty(t, north)
	require.Equal(t, []string{"PUT 2@south", "PUT 2@south", "GET 2@south"}, south)

	// The north does not know that it is the secondary, and neither has the secondary's name.
	require.Equal(t, http.StatusText(http.StatusServiceUnavailable), two.send(http.MethodGet, true))
	two.north.have = two.south.have
	two.send(http.MethodGet, true) // The north had named the south, which corrects that.
	require.Equal(t, "north", two.send(http.MethodGet, true))

	// The way back.
	two.north.have = geo.Epoch{Number: 3, Location: "north"}
	two.south.have = two.north.have
	two.known.is(3, "north", "south")
	require.Equal(t, "north", two.send(http.MethodPut, false))
	require.Equal(t, "south", two.send(http.MethodGet, true))
}

// R20: while the new primary is away, a former one that does not know it serves neither a write nor a read.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
func TestR20GatewayDoesNotGoBack(t *testing.T) {
	two := newTwoPlaces(t)
	require.Equal(t, "north", two.send(http.MethodPut, false))
	two.known.is(2, "south", "north")
	two.away["south"] = true
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		for range 2 {
			require.NotEqual(t, "north", two.send(method, false))
		}
	}
	two.away["north"] = true
	require.Contains(t, two.send(http.MethodPut, false), "cannot be reached now")
	two.away["south"] = false
	two.south.have = geo.Epoch{Number: 2, Location: "south"}
	require.Equal(t, "south", two.send(http.MethodPut, false))
}

// R20: a request that the former primary answers after the gateway has learned of the promotion does not make the gateway
// go back.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
func TestR20GatewayForgetsALateAnswer(t *testing.T) {
	two := newTwoPlaces(t)
	two.north.deaf = true
	two.known.is(1, "north", "south")
	two.north.during = func() {
		two.north.during = nil
		two.south.have = geo.Epoch{Number: 2, Location: "south"}
		two.known.is(2, "south", "north")
		require.Equal(t, "south", two.send(http.MethodPut, false))
	}
	require.Equal(t, "north", two.send(http.MethodPut, false))
	two.arrivals()
	require.Equal(t, "south", two.send(http.MethodPut, false))
	north, _ := two.arrivals()
	require.Empty(t, north)
	role := role{account: "acct"}
	two.gateway.learn(role, geo.Epoch{Number: 1, Location: "north"}, http.Header{servedByHeader: {"north"}})
	l, known, _ := two.gateway.next(role, two.gateway.newest(t.Context(), role), nil)
	require.True(t, known, "what was learned in a higher epoch stays")
	require.EqualValues(t, "south", l)
}

// What a gateway knows of epochs may be old, if it does not reach the admin port of a location. Then who served the
// account is asked first, as without epochs.
func TestGatewayWithOldEpochs(t *testing.T) {
	two := newTwoPlaces(t)
	two.known.is(1, "north", "south")
	two.north.have, two.south.have = geo.Epoch{Number: 2, Location: "south"}, geo.Epoch{Number: 2, Location: "south"}
	require.Equal(t, "south", two.send(http.MethodPut, false))
	two.arrivals()
	require.Equal(t, "south", two.send(http.MethodPut, false))
	north, south := two.arrivals()
	require.Empty(t, north)
	require.Equal(t, []string{"PUT 1@north"}, south)
}

// A client's own epoch does not pass a gateway, and a malformed one is none.
func TestEpochOfAClient(t *testing.T) {
	two := newTwoPlaces(t)
	r := httptest.NewRequest(http.MethodGet, "/acct/things", nil)
	r.Header.Set(epochHeader, "9@south")
	require.NoError(t, two.gateway.Pass(Request{W: httptest.NewRecorder(), R: r, Reads: true}, "acct", false))
	north, _ := two.arrivals()
	require.Equal(t, []string{"GET "}, north)
	for text, want := range map[string]bool{"": false, "x": false, "9": false, "1@north": false, "1@a": false, "2@north": true} {
		r.Header.Set(epochHeader, text)
		outrun := Outrun(Request{W: httptest.NewRecorder(), R: r}, "north", geo.Epoch{Number: 1, Location: "north"})
		require.Equal(t, want, outrun, text)
	}
}

// What a gateway remembers of an account does not keep the target of the request that named it, which clients make as long
// as they like.
func TestGatewayKeepsNoTargets(t *testing.T) {
	const accounts, target = 256, 64 << 10
	g := NewGateway([]geo.Location{"north"}, nil, nil, nil, unobserved{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range accounts {
		long := fmt.Sprintf("%024d/", i) + strings.Repeat("x", target)
		g.learn(role{account: geo.Account(long[:24])}, geo.Epoch{}, http.Header{servedByHeader: {"north"}})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Len(t, g.served, accounts)
	require.Less(t, int(after.HeapAlloc)-int(before.HeapAlloc), accounts*target/4)
	runtime.KeepAlive(g)
}
