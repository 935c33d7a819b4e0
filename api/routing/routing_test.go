package routing

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A gateway remembers who served an account, up to servedMax accounts, and never a location
// that it does not know.
func TestGatewayMemoryIsBounded(t *testing.T) {
	g := NewGateway([]geo.Location{"north", "south"}, nil, nil, nil, nil)
	south := http.Header{servedByHeader: {"south"}}
	for i := range servedMax {
		g.learn(role{account: geo.Account(fmt.Sprint("acct", i))}, geo.Epoch{}, south)
	}
	last := role{account: "acct0"}
	l, known, _ := g.next(last, served{}, nil)
	require.True(t, known)
	require.EqualValues(t, "south", l)
	g.learn(role{account: "one", secondary: true}, geo.Epoch{}, south)
	require.Len(t, g.served, 1, "all are forgotten at the limit")
	l, known, _ = g.next(last, served{}, nil)
	require.False(t, known)
	require.EqualValues(t, "north", l)
	g.learn(last, geo.Epoch{}, http.Header{servedByHeader: {"west"}})
	_, known, _ = g.next(last, served{}, nil)
	require.False(t, known)
	_, _, any := g.next(last, served{}, []geo.Location{"north", "south"})
	require.False(t, any)
}

// Front ends that were not reached lately are tried last, and all are tried.
func TestForwarderAvoids(t *testing.T) {
	f := NewForwarder("test", nil, nil)
	defer f.Close()
	addrs := []string{"a:1", "b:1", "c:1"}
	require.Equal(t, addrs, f.order(entrance{}, addrs))
	f.remember("a:1", false)
	require.Equal(t, []string{"b:1", "c:1", "a:1"}, f.order(entrance{}, addrs))
	f.remember("a:1", true)
	require.Equal(t, addrs, f.order(entrance{}, addrs))
}

// An address names its scheme and, at a hop listener, its service.
func TestParseAddress(t *testing.T) {
	for addr, want := range map[string]destination{
		"h:1":                           {scheme: "http", host: "h:1"},
		"https://h:1":                   {scheme: "https", host: "h:1"},
		HopAddress("h:1", geo.Queue):    {scheme: "https", host: "h:1", service: "queue"},
		HopAddress("[::1]:2", geo.Blob): {scheme: "https", host: "[::1]:2", service: "blob"},
	} {
		require.Equal(t, want, parseAddress(addr), addr)
	}
}

// A client that names itself a peer is not believed: without the secret, or with a wrong
// one, the connection decides.
func TestClientIsNotBelieved(t *testing.T) {
	for secret, believed := range map[string]bool{"": false, "wrong": false, "right": true} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = "192.0.2.1:1000"
		r.Header.Set(secretHeader, secret)
		r.Header.Set(clientAddrHeader, "198.51.100.7:9")
		r.Header.Set(clientProtoHeader, "https")
		addr, scheme, proven := Client(r, false, "right")
		require.Equal(t, believed, proven, secret)
		require.Equal(t, believed, addr.String() == "198.51.100.7:9" && scheme == "https", secret)
		require.Empty(t, r.Header.Get(secretHeader))
		require.Equal(t, addr.String(), r.Header.Get(clientAddrHeader))
	}
}

// A front end that says with an answer that it is going to stop gets the next request only where there is no other one; the
// answer ends its connection, and the word goes no further. Once it answers without that, it is asked first again.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestLeavingFrontEndIsAskedLast(t *testing.T) {
	var leaving atomic.Bool
	var asked []string
	served := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name)
			if name == "first" && leaving.Load() {
				Leave(r, w.Header())
			}
			_, _ = io.WriteString(w, name)
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	addrs := []string{served("first"), served("second")}
	f := NewForwarder("gateway", func(geo.Location, geo.Service) []string { return addrs }, nil)
	t.Cleanup(f.Close)
	send := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/a", http.NoBody)
		require.NoError(t, f.toLocation(Request{W: w, R: r, Reads: true}, "north", hop{mark: gatewayHeader, edge: true, lost: new(int)}))
		return w
	}
	require.Equal(t, "first", send().Body.String())
	leaving.Store(true)
	last := send()
	require.Equal(t, "first", last.Body.String(), "it is served")
	require.Empty(t, last.Header().Get(leavingHeader))
	require.Empty(t, last.Header().Get("Connection"))
	require.Equal(t, "second", send().Body.String())
	addrs = addrs[:1]
	require.Equal(t, "first", send().Body.String(), "there is no other one")
	leaving.Store(false)
	send()
	addrs = append(addrs, "127.0.0.1:1")
	require.Equal(t, "first", send().Body.String())
	require.Equal(t, []string{"first", "first", "second", "first", "first", "first"}, asked)
}

// Requests go to the front end that answers by itself after as many as there are front ends, and stay with it.
func TestForwarderTriesWhoAnswersItself(t *testing.T) {
	f := NewForwarder("test", nil, nil)
	defer f.Close()
	at, addrs := entrance{"north", geo.Table}, []string{"a:1", "b:1", "c:1"}
	f.tryAfter(at, "a:1", addrs)
	require.Equal(t, []string{"b:1", "c:1", "a:1"}, f.order(at, addrs))
	f.tryAfter(at, "a:1", addrs) // An answer that was on its way.
	require.Equal(t, []string{"b:1", "c:1", "a:1"}, f.order(at, addrs))
	require.Equal(t, addrs, f.order(entrance{"north", geo.Blob}, addrs))
	require.Equal(t, addrs, f.order(entrance{"south", geo.Table}, addrs))
	f.remember("b:1", false)
	require.Equal(t, []string{"c:1", "a:1", "b:1"}, f.order(at, addrs))
	f.tryAfter(at, "b:1", addrs)
	f.tryAfter(at, "c:1", addrs)
	require.Equal(t, []string{"a:1", "c:1", "b:1"}, f.order(at, addrs))
	require.Equal(t, []string{"d:1"}, f.order(at, []string{"d:1"}), "other front ends since")
}
