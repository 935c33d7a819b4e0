package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/protocol"
	"antipode/api/routing"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/services/catalog"
	"antipode/stats"
)

// witness is a front end of south whose every statistics request fails and is logged, and so
// shows who it takes for the client.
type witness struct {
	*api.Server
	logged lockedBuffer
}

func newWitness(t *testing.T, o api.Options) *witness {
	t.Helper()
	w := &witness{}
	o.Location, o.Clock, o.Directory, o.IDs = "south", clock.System{}, directory{"acct": "north"}, protocol.NewRequestIDs([32]byte{})
	o.Logger = slog.New(slog.NewTextHandler(&w.logged, nil))
	o.Accounts = &accounts.Handler{Stats: func(context.Context, *catalog.Account, geo.Service) (stats.Replication, error) {
		return stats.Replication{}, errors.New("a bug")
	}}
	w.Server = api.NewServer(o)
	return w
}

var clientLogged = regexp.MustCompile(`client=(\S+) scheme=(\S+)`)

// saw is the client that the one request since the last call was taken to be of.
func (w *witness) saw(t *testing.T) (client, scheme string) {
	t.Helper()
	w.logged.mu.Lock()
	defer w.logged.mu.Unlock()
	found := clientLogged.FindAllStringSubmatch(w.logged.b.String(), -1)
	w.logged.b.Reset()
	require.Len(t, found, 1)
	return found[0][1], found[0][2]
}

// keyrings of the nodes 1 and 2 of south, node 1 of north, and a gateway.
func keyrings(t *testing.T) map[string]*identity.Keyring {
	t.Helper()
	authority, out := identitytest.NewAuthority(t), map[string]*identity.Keyring{}
	for name, id := range map[string]identity.Identity{
		"south-1": {Location: "south", Node: 1}, "south-2": {Location: "south", Node: 2}, "north-1": {Location: "north", Node: 1}, "gateway": {Gateway: "east"},
	} {
		id.Stamp = "prod"
		out[name] = authority.Keyring(id, clock.System{})
	}
	return out
}

// listenTLS serves on a port of loopback with a TLS configuration.
func listenTLS(t *testing.T, h http.Handler, config *tls.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Listener = tls.NewListener(s.Listener, config)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// lies are what a client may send to be taken for another.
var lies = []string{
	"X-Antipode-Client-Addr", "192.0.2.66:6", "X-Antipode-Client-Proto", "https", "X-Antipode-Hop-Secret", "guess", "X-Antipode-Service", "blob",
	"X-Forwarded-For", "192.0.2.67", "X-Forwarded-Proto", "https",
}

// ask sends a request for statistics, with lies, and requires that the witness took it for
// one of this client over the scheme of url.
func (w *witness) ask(t *testing.T, url string) {
	t.Helper()
	local := ""
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	r := signed(t, http.MethodGet, url+statsTarget, nil, lies...)
	r = r.WithContext(gotConn(r.Context(), &local))
	resp, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusInternalServerError, resp.StatusCode)
	client, scheme := w.saw(t)
	require.Equal(t, local, client)
	wantScheme, _, _ := strings.Cut(url, "://")
	require.Equal(t, wantScheme, scheme)
}

// Whatever way a request goes, the front end that serves it knows the client's own address
// and scheme, and nothing that the client says of itself: directly; by a leader hop; from the
// other location; through a gateway; and through all three, over TLS with certificates of
// the deployment.
func TestClientIsKnownOverHops(t *testing.T) {
	t.Parallel()
	keys := keyrings(t)
	anyNode := func(geo.NodeID) bool { return true }
	leader := newWitness(t, api.Options{Leader: ledHere})
	leaderHop := listenTLS(t, leader.HopHandler(), keys["south-1"].HopServerConfig(anyNode, "north"))

	south := func(geo.RangeID, geo.Service) (string, bool) {
		return routing.HopAddress(host(leaderHop.URL), geo.Table), false
	}
	follower := newFrontEnd(t, api.Options{
		Location: "south", Leader: south, Forward: forwarder("south-2").WithTLS(keys["south-2"].HopClientConfig("south")),
	})
	followerHop := listenTLS(t, follower.HopHandler(), keys["south-2"].HopServerConfig(anyNode, "north"))
	north := newFrontEnd(t, api.Options{
		Location: "north", Forward: forwarder("north-1", followerHop.URL).WithTLS(keys["north-1"].HopClientConfig("south")),
	})
	northHop := listenTLS(t, north.HopHandler(), keys["north-1"].HopServerConfig(anyNode, "south"))
	gateway := newFrontEnd(t, api.Options{
		Locations: []geo.Location{"north"}, Forward: forwarder("gateway", northHop.URL).WithTLS(keys["gateway"].HopClientConfig("north", "south")),
	})
	for _, s := range []*api.Server{leader.Server, follower.Server, north.Server, gateway.Server} {
		plain := httptest.NewServer(s.Handler(geo.Table))
		t.Cleanup(plain.Close)
		secure := httptest.NewTLSServer(s.Handler(geo.Table))
		t.Cleanup(secure.Close)
		leader.ask(t, plain.URL)
		leader.ask(t, secure.URL)
	}

	// Without a certificate of the deployment the listener of hops lets nobody in, and its
	// handler takes nothing from a listener that does not ask for one.
	stranger := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	_, err := stranger.RoundTrip(signed(t, http.MethodGet, strings.Replace(leaderHop.URL, "http://", "https://", 1)+statsTarget, nil, lies...))
	require.Error(t, err)
	open := httptest.NewServer(leader.HopHandler())
	t.Cleanup(open.Close)
	refused := send(t, signed(t, http.MethodGet, open.URL+statsTarget, nil, lies...))
	require.Equal(t, http.StatusForbidden, refused.status)
	require.Contains(t, refused.body, "this listener is for front ends")
}

// Front ends of one process prove themselves by its secret, which no client sees or guesses.
func TestClientIsKnownInOneProcess(t *testing.T) {
	t.Parallel()
	const secret = "a secret of this process"
	south := newWitness(t, api.Options{HopSecret: secret})
	southURL := httptest.NewServer(south.Handler(geo.Table))
	t.Cleanup(southURL.Close)
	north := startFrontEnd(t, api.Options{
		Location: "north", HopSecret: secret,
		Forward: routing.NewForwarder("north", at(southURL.URL), nil).WithSecret(secret),
	})
	gateway := startFrontEnd(t, api.Options{
		Locations: []geo.Location{"north"}, HopSecret: secret,
		Forward: routing.NewForwarder("gateway", at(north.url), nil).WithSecret(secret),
	})
	for _, url := range []string{southURL.URL, north.url, gateway.url} {
		south.ask(t, url)
	}
}

// Where a hop proves nothing, as over plain HTTP to another process, the front end sees the
// one that sent it, whatever that says; and that says nothing of its client.
func TestPlainHopIsNotBelieved(t *testing.T) {
	t.Parallel()
	south := newWitness(t, api.Options{})
	var sent http.Header
	h := south.Handler(geo.Table)
	southURL := stub(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Clone()
		h.ServeHTTP(w, r)
	})
	north := startFrontEnd(t, api.Options{Location: "north", Forward: routing.NewForwarder("north", at(southURL), nil)})
	local := ""
	r := signed(t, http.MethodGet, north.url+statsTarget, nil, lies...)
	send(t, r.WithContext(gotConn(r.Context(), &local)))
	client, scheme := south.saw(t)
	require.NotEqual(t, local, client)
	require.True(t, strings.HasPrefix(client, "127.0.0.1:"), client)
	require.Equal(t, "http", scheme)
	for name := range sent {
		require.NotContains(t, name, "X-Antipode-Client")
		require.NotEqual(t, "X-Antipode-Hop-Secret", name)
		require.NotEqual(t, "X-Antipode-Service", name)
	}
}

// A node whose certificate is refused was not reached: no byte of the request was sent, and
// another node is tried.
func TestHopToStrangerIsNotSent(t *testing.T) {
	t.Parallel()
	keys, others := keyrings(t), keyrings(t)
	anyNode := func(geo.NodeID) bool { return true }
	var came bytes.Buffer
	impostor := listenTLS(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Fprint(&came, r.Method) }),
		others["south-1"].HopServerConfig(anyNode, "north"))
	south := newWitness(t, api.Options{})
	real := listenTLS(t, south.HopHandler(), keys["south-2"].HopServerConfig(anyNode, "north"))
	north := newFrontEnd(t, api.Options{
		Location: "north", Forward: forwarder("north-1", impostor.URL, real.URL).WithTLS(keys["north-1"].HopClientConfig("south")),
	}).listen(t)
	// A write, which is not sent again where it may have arrived.
	a := send(t, signed(t, http.MethodPost, north.url+"/acct-secondary/things", strings.NewReader("{}")))
	require.Equal(t, http.StatusForbidden, a.status, "the other node's answer: %s", a.body)
	require.Empty(t, came.String())
}
