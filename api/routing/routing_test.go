package routing

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A gateway remembers who served an account, up to servedMax accounts, and never a location
// that it does not know.
func TestGatewayMemoryIsBounded(t *testing.T) {
	g := NewGateway([]geo.Location{"north", "south"}, nil, nil, nil)
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
	require.Equal(t, addrs, f.order(addrs))
	f.remember("a:1", false)
	require.Equal(t, []string{"b:1", "c:1", "a:1"}, f.order(addrs))
	f.remember("a:1", true)
	require.Equal(t, addrs, f.order(addrs))
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
		addr, scheme := Client(r, false, "right")
		require.Equal(t, believed, addr.String() == "198.51.100.7:9" && scheme == "https", secret)
		require.Empty(t, r.Header.Get(secretHeader))
		require.Equal(t, addr.String(), r.Header.Get(clientAddrHeader))
	}
}
