package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/server/config"
	"antipode/test/devproc"
)

// node is a node of a location, with its front end, its hop listener and its admin port on one
// address of loopback.
type node struct {
	t        *testing.T
	location geo.Location
	address  string
	token    apiadmin.TokenFile

	mu sync.Mutex
	// requests are the paths of clients' requests, tokens the admin tokens that were presented.
	requests, tokens []string
	epoch            wire.Epoch // see Names
	server           *httptest.Server
}

// freeAddress is an address of loopback that is the test's own.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := devproc.FreePorts(t, 1)
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0]))
}

// newNode returns a node that is away.
func newNode(t *testing.T, l geo.Location) *node {
	t.Helper()
	n := &node{t: t, location: l, address: freeAddress(t), token: newToken(t)}
	t.Cleanup(n.away)
	return n
}

func newToken(t *testing.T) apiadmin.TokenFile {
	t.Helper()
	token, err := apiadmin.OpenTokenFile(filepath.Join(t.TempDir(), "token"))
	require.NoError(t, err)
	return token
}

// serve makes the node take connections, over TLS if k is not nil.
func (n *node) serve(k *identity.Keyring) {
	n.t.Helper()
	listener, err := net.Listen("tcp", n.address)
	require.NoError(n.t, err)
	n.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: n.handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}}
	if k == nil {
		n.server.Start()
		return
	}
	n.server.TLS = k.HopServerConfig(func(geo.NodeID) bool { return false }, "")
	n.server.StartTLS()
}

// away makes the node refuse connections.
func (n *node) away() {
	if n.server != nil {
		n.server.Close()
		n.server = nil
	}
}

func (n *node) handler() http.Handler {
	admin := apiadmin.Handler(n, prometheus.NewRegistry(), apiadmin.Options{TokenFile: n.token})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if r.URL.Path == "/readyz" || len(r.URL.Path) > 3 && r.URL.Path[:4] == "/v1/" {
			if token := r.Header.Get("Authorization"); token != "" {
				n.tokens = append(n.tokens, token)
			}
			admin.ServeHTTP(w, r)
			return
		}
		n.requests = append(n.requests, r.URL.Path)
		_, _ = io.WriteString(w, string(n.location))
	})
}

func (n *node) Ready(context.Context) []wire.LocationReadiness {
	return []wire.LocationReadiness{{Name: n.location, State: wire.Running, Reason: "the blob range has no leader yet"}}
}

// Operations implements apiadmin.Process: the calls that a gateway makes.
func (n *node) Operations() []apiadmin.Operation {
	serves := func(r wire.Route, f func(at wire.At) any) apiadmin.Operation {
		return apiadmin.Operation{Route: r, Serve: func(_ context.Context, q *apiadmin.Question) (any, error) { return f(q.At), nil }}
	}
	return []apiadmin.Operation{
		serves(wire.CallKeys.Route, func(at wire.At) any { return wire.Keys{Name: at.Account, Key1: "a2V5MQ=="} }),
		serves(wire.CallNames.Route, func(at wire.At) any { return n.names(at.Location) }),
		serves(wire.CallAccount.Route, func(at wire.At) any {
			return wire.AccountInfo{Account: wire.Account{Name: at.Account, Primary: n.location}}
		}),
	}
}

// names is what the node knows of the account photos; nothing if it has no epoch.
func (n *node) names(l geo.Location) wire.Names {
	out := wire.Names{Location: l, Version: "v"}
	if n.epoch.Number != 0 {
		secondary := geo.Location("south")
		if n.epoch.Location == secondary {
			secondary = "north"
		}
		out.Names = []wire.Name{{Account: "photos", Epoch: n.epoch, Primary: n.epoch.Location, Secondary: secondary, Redundancy: "RA-GRS"}}
	}
	return out
}

// configured is the configuration of a gateway to the nodes, each in its location.
func configured(nodes ...*node) config.Gateway {
	c := config.Gateway{Listen: config.GatewayListen{Blob: "127.0.0.1:0", Queue: "127.0.0.1:0", Table: "127.0.0.1:0", Admin: "127.0.0.1:0"}, Zones: []geo.Zone{geo.LocalZone}}
	for _, n := range nodes {
		c.Locations = append(c.Locations, config.GatewayLocation{Name: n.location, Nodes: []config.GatewayNode{
			{ID: 1, Hop: n.address, Blob: n.address, Queue: n.address, Table: n.address, Admin: n.address},
		}})
	}
	return c
}

// running is a gateway that listens.
type running struct {
	t *testing.T
	*Gateway
	client *http.Client
}

func start(t *testing.T, c config.Gateway) running {
	t.Helper()
	g, err := Open(Options{Config: c, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, g.Close())
	})
	return running{t, g, client}
}

// get sends a request to a listener of the gateway: its services in the order of geo.Services, then
// the admin port.
func (r running) get(listener int, path string) (status int, body string) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.server.Addrs()[listener].String()+path, nil)
	require.NoError(r.t, err)
	a, err := r.client.Do(q)
	require.NoError(r.t, err)
	text, err := io.ReadAll(a.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, a.Body.Close())
	return a.StatusCode, string(text)
}

// admin is a client of the gateway's admin port that has a token.
func (r running) admin(token apiadmin.TokenFile) *wire.Client {
	r.t.Helper()
	c, err := wire.New("http://"+r.server.Addrs()[len(geo.Services)].String(), r.client)
	require.NoError(r.t, err)
	c.UseToken(func() (wire.Token, error) { return token.Token(), nil })
	return c
}

// While all locations are away, clients are asked to try again and the readiness names each location.
// A location that comes back serves at once, at every port, and the readiness has its reason.
func TestLocationsAway(t *testing.T) {
	north, south := newNode(t, "north"), newNode(t, "south")
	g := start(t, configured(north, south))
	away := wire.LocationReadiness{Name: "north", State: wire.Unreachable, Reason: "no node of the location answers on its admin port"}
	for range 2 {
		for i := range geo.Services {
			status, body := g.get(i, "/photos/x")
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, body, "No location can be reached now. Please retry your request.")
		}
		ready, err := g.admin(newToken(t)).Readiness(t.Context())
		require.NoError(t, err)
		require.False(t, ready.Ready)
		require.Equal(t, away, ready.Locations[0])
		require.EqualValues(t, "south", ready.Locations[1].Name)

		south.serve(nil)
		for i := range geo.Services {
			status, body := g.get(i, "/photos/x")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "south", body)
		}
		ready, err = g.admin(newToken(t)).Readiness(t.Context())
		require.NoError(t, err)
		require.Equal(t, away, ready.Locations[0])
		require.Equal(t, wire.LocationReadiness{Name: "south", State: wire.Running, Reason: "the blob range has no leader yet"}, ready.Locations[1])
		south.away()
	}
	require.Empty(t, north.requests)
}

// A service of a location is reached at the nodes of that location alone.
func TestEndpoints(t *testing.T) {
	c := config.Gateway{Locations: []config.GatewayLocation{
		{Name: "north", Nodes: []config.GatewayNode{{ID: 1, Blob: "a:1", Queue: "a:2", Table: "a:3"}, {ID: 2, Blob: "b:1", Queue: "b:2", Table: "b:3"}}},
		{Name: "south", Nodes: []config.GatewayNode{{ID: 1, Blob: "c:1"}}},
	}}
	g := &Gateway{o: Options{Config: c}}
	require.Equal(t, []geo.Location{"north", "south"}, g.locations())
	require.Equal(t, []string{"a:2", "b:2"}, g.endpoints("north", geo.Queue))
	require.Equal(t, []string{"c:1"}, g.endpoints("south", geo.Blob))
	require.Empty(t, g.endpoints("east", geo.Blob))
}

// A gateway with a token asks for it and presents it to the nodes that prove to have it; no other
// process sees it. One without a token shows no keys.
func TestTokens(t *testing.T) {
	north := newNode(t, "north")
	north.serve(nil)
	c := configured(north)
	_, err := start(t, c).admin(north.token).Keys(t.Context(), "photos")
	require.ErrorContains(t, err, "this port has no token")
	require.Empty(t, north.tokens)

	token := newToken(t)
	c.Admin.TokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(c.Admin.TokenFile, []byte(token.Token()), 0o600))
	g := start(t, c)
	_, err = g.admin(north.token).Keys(t.Context(), "photos")
	require.ErrorContains(t, err, "another one than this server's")
	_, err = g.admin(token).Keys(t.Context(), "photos")
	require.ErrorContains(t, err, "does not have the same token")
	require.Empty(t, north.tokens, "it is shown to nobody else")

	north.away()
	north.token = token
	north.serve(nil)
	k, err := g.admin(token).Keys(t.Context(), "photos")
	require.NoError(t, err)
	require.Equal(t, "a2V5MQ==", k.Key1)
	require.Equal(t, "Bearer "+string(token.Token()), north.tokens[0])
}

// A gateway with a certificate forwards to the hop listeners of nodes with a certificate of their
// location, and sends nothing to others.
func TestHops(t *testing.T) {
	ca := identitytest.NewAuthority(t)
	north := newNode(t, "north")
	c := configured(north)
	files := ca.Files(identity.Identity{Gateway: "east-1"})
	c.TLS = config.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key}
	g := start(t, c)

	for _, other := range []*identity.Keyring{ca.Keyring(identity.Identity{Location: "east", Node: 1}, clock.System{}), identitytest.NewAuthority(t).Keyring(identity.Identity{Location: "north", Node: 1}, clock.System{})} {
		north.serve(other)
		status, _ := g.get(0, "/photos/x")
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Empty(t, north.requests)
		north.away()
	}
	north.serve(ca.Keyring(identity.Identity{Location: "north", Node: 1}, clock.System{}))
	status, body := g.get(0, "/photos/x")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "north", body)
}

// A gateway that cannot start names what is wrong, and leaves nothing open.
func TestOpenFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	node := identitytest.NewAuthority(t).Files(identity.Identity{Location: "north", Node: 1})
	for want, change := range map[string]func(*config.Gateway){
		fmt.Sprintf("cannot listen on %s (admin)", taken.Addr()): func(c *config.Gateway) { c.Listen.Admin = taken.Addr().String() },
		"or choose others with the section listen":               func(c *config.Gateway) { c.Listen.Table = taken.Addr().String() },
		"certificates of the section tls: ":                      func(c *config.Gateway) { c.TLS = config.TLS{CA: node.CA, Cert: node.Cert, Key: node.Key} },
		"admin port of north-1: ":                                func(c *config.Gateway) { c.Locations[0].Nodes[0].Admin = "%" },
		"token":                                                  func(c *config.Gateway) { c.Admin.TokenFile = t.TempDir() },
	} {
		c := configured(newNode(t, "north"))
		c.Listen.Blob = freeAddress(t)
		change(&c)
		_, err := Open(Options{Config: c, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
		require.ErrorContains(t, err, want)
		again, err := net.Listen("tcp", c.Listen.Blob)
		require.NoError(t, err, "the port is free")
		require.NoError(t, again.Close())
	}
}

// The calls to the nodes' admin ports carry the token, and go through no proxy. The environment
// is not set here: net/http reads it once in a process.
func TestAdminTokenGoesThroughNoProxy(t *testing.T) {
	transport, ok := newAdminClient().Transport.(*http.Transport)
	require.True(t, ok)
	require.Nil(t, transport.Proxy)
}

// R20: a gateway asks the admin ports of both locations for epochs: the first request goes to the location of the higher one,
// though the other comes first and would serve it. Of nodes without an admin port it knows nothing.
func TestR20GatewayAsksForEpochs(t *testing.T) {
	north, south := newNode(t, "north"), newNode(t, "south")
	north.epoch, south.epoch = wire.Epoch{Number: 1, Location: "north"}, wire.Epoch{Number: 2, Location: "south"}
	north.serve(nil)
	south.serve(nil)
	c := configured(north, south)
	g := start(t, c)
	eventually := func() bool { _, body := g.get(0, "/photos/x"); return body == "south" }
	require.Eventually(t, eventually, time.Minute, time.Millisecond)
	for range 3 {
		require.True(t, eventually())
	}
	require.True(t, func() bool { _, body := g.get(0, "/other/x"); return body == "north" }(), "an account without an epoch")

	for i := range c.Locations {
		c.Locations[i].Nodes[0].Admin = ""
	}
	_, body := start(t, c).get(0, "/photos/x")
	require.Equal(t, "north", body)
}

// A gateway that is going to stop is not ready and ends the connection of each client with its answer; then it takes no new
// connection.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestLeavingGatewayDrains(t *testing.T) {
	north := newNode(t, "north")
	north.serve(nil)
	c := configured(north)
	c.Drain = config.Drain{Timeout: "1m", Notice: "0s"}
	g := start(t, c)
	ask := func(listener int, path string) (closes bool, body string) {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.server.Addrs()[listener].String()+path, nil)
		require.NoError(t, err)
		a, err := g.client.Do(q)
		require.NoError(t, err)
		text, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		return a.Close, string(text)
	}
	closes, _ := ask(0, "/photos/x")
	require.False(t, closes)
	_, ready := ask(len(geo.Services), "/readyz")
	require.NotContains(t, ready, "drains")
	g.draining.Store(true)
	closes, _ = ask(0, "/photos/x")
	require.True(t, closes)
	_, ready = ask(len(geo.Services), "/readyz")
	require.Contains(t, ready, "drains")
	require.Empty(t, g.Drain())
	_, err := net.Dial("tcp", g.server.Addrs()[0].String())
	require.Error(t, err)
}
