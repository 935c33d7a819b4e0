package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/server/config"
	"antipode/server/listen"
	"antipode/server/location"
	"antipode/stamp/membership"
	"antipode/test/devproc"
)

// nobody is an address that nothing listens on.
const nobody = "127.0.0.1:1"

// alone is the configuration of the only node of north, whose pair south is away.
func alone(t *testing.T, ca identitytest.Authority) config.Node {
	t.Helper()
	data := t.TempDir()
	free, err := devproc.FreePorts(t, 7)
	require.NoError(t, err)
	at := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(free[i])) }
	away := []string{nobody}
	return config.Node{
		Stamp: "prod", ID: 1, Name: "north-1", Location: "north", Data: data, CacheBytes: 96 << 20, NameRest: "0s", Zones: []geo.Zone{geo.LocalZone},
		Listen: config.Listen{Node: at(0), Blob: at(1), Queue: at(2), Table: at(3), Hop: at(4), Admin: at(5)},
		Admin:  config.Admin{TokenFile: filepath.Join(data, "admin-token")},
		Pair:   config.Pair{Location: "south", Hops: away, Nodes: away, NATS: away},
		TLS:    config.TLS(ca.Files(identity.Identity{Location: "north", Node: 1})),
		NATS:   config.NATS{Mode: config.Embedded, Client: at(6)},
	}
}

func open(c config.Node) (*Node, error) {
	return Open(Options{Config: c, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Tick: time.Millisecond})
}

// ports are the ports that a node listens on: those of the process, and those that open and close
// with its front end.
func ports(c config.Node) (process, frontEnd []string) {
	return []string{c.Listen.Node, c.Listen.Admin}, []string{c.Listen.Blob, c.Listen.Queue, c.Listen.Table, c.Listen.Hop, c.NATS.Client}
}

// requireFree fails unless nothing listens on the ports.
func requireFree(t *testing.T, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

// requireTaken fails unless something listens on each port.
func requireTaken(t *testing.T, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err, address)
		require.NoError(t, c.Close())
	}
}

// take listens on an address; free ends that.
func take(t *testing.T, address string) (free func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	return func() { require.NoError(t, l.Close()) }
}

// A node that cannot be opened names the field that is wrong, and leaves no port open (table).
func TestOpenFails(t *testing.T) {
	ca := identitytest.NewAuthority(t)
	for _, c := range []struct {
		change func(c *config.Node) (undo func())
		want   string
	}{
		{func(c *config.Node) func() { return take(t, c.Listen.Node) }, "(listen.node): listen tcp"},
		{func(c *config.Node) func() { return take(t, c.Listen.Admin) }, "(admin): listen tcp"},
		{func(c *config.Node) func() {
			c.TLS = config.TLS(ca.Files(identity.Identity{Location: "north", Node: 2}))
			return func() {}
		}, "certificates of the section tls: own certificate "},
		{func(c *config.Node) func() {
			c.TLS.CA = identitytest.NewAuthority(t).Files(identity.Identity{Location: "north", Node: 1}).CA
			return func() {}
		}, "certificates of the section tls: own certificate "},
		{func(c *config.Node) func() {
			c.Admin.TokenFile = t.TempDir()
			return func() {}
		}, "token"},
	} {
		node := alone(t, ca)
		undo := c.change(&node)
		_, err := open(node)
		require.ErrorContains(t, err, c.want)
		undo()
		process, frontEnd := ports(node)
		requireFree(t, append(process, frontEnd...)...)
	}
}

// A front end that finds a port taken stops the node again: Start names the port, the readiness how
// to start the node again, and the other ports stay free. When the port is free, Start starts it.
// Close closes every port.
func TestStartFindsAPortTaken(t *testing.T) {
	c := alone(t, identitytest.NewAuthority(t))
	process, frontEnd := ports(c)
	free := take(t, c.Listen.Hop)
	n, err := open(c)
	require.NoError(t, err)
	require.ErrorContains(t, n.Start(t.Context()), fmt.Sprintf("cannot listen on %s (north-1 hops)", c.Listen.Hop))
	free()
	requireFree(t, frontEnd...)
	require.Equal(t, "the location is stopped; start it with: antipodectl location start north", n.Waiting(t.Context()))

	require.NoError(t, n.Start(t.Context()))
	requireTaken(t, append(process, frontEnd...)...)
	require.ErrorIs(t, n.Start(t.Context()), location.ErrRuns)
	require.NoError(t, n.Close())
	requireFree(t, append(process, frontEnd...)...)
}

// A start that fails before the front end, here at the stores, leaves its ports free, and the readiness has the cause.
func TestStartFailsAtTheStores(t *testing.T) {
	c := alone(t, identitytest.NewAuthority(t))
	_, frontEnd := ports(c)
	require.NoError(t, os.MkdirAll(filepath.Join(c.Data, "north"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(c.Data, "north", "north-1"), nil, 0o600))
	n, err := open(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	require.Error(t, n.Start(t.Context()))
	requireFree(t, frontEnd...)
	require.Contains(t, n.Waiting(t.Context()), "the location failed to start (")
}

// An operator stops and starts a node through its admin port, which answers all the while and shows
// why the node does not serve. After Close nothing starts it again.
func TestOperatorStopsAndStarts(t *testing.T) {
	c := alone(t, identitytest.NewAuthority(t))
	process, frontEnd := ports(c)
	n, err := open(c)
	require.NoError(t, err)
	calls := &http.Client{Transport: &http.Transport{}}
	admin, err := wire.New("http://"+c.Listen.Admin, calls)
	require.NoError(t, err)
	reason := func() string {
		t.Helper()
		r, err := admin.Readiness(t.Context())
		require.NoError(t, err)
		require.False(t, r.Ready)
		require.Len(t, r.Locations, 1)
		return r.Locations[0].Reason
	}
	require.Contains(t, reason(), "is stopped; start it with: ")
	require.NoError(t, n.Start(t.Context()))
	require.NotContains(t, reason(), "is stopped")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, n.AwaitServing(ctx), context.Canceled, "a node alone takes no writes")

	_, err = admin.StopLocation(t.Context(), "north")
	require.NoError(t, err)
	requireFree(t, frontEnd...)
	requireTaken(t, process...)
	require.Contains(t, reason(), "is stopped; start it with: ")
	require.NoError(t, n.server.Begin(t.Context()))
	requireTaken(t, frontEnd...)

	calls.CloseIdleConnections()
	require.NoError(t, n.Close())
	requireFree(t, append(process, frontEnd...)...)
	require.ErrorIs(t, n.server.Begin(t.Context()), location.ErrStopped)
}

// The ports for nodes and for hops take connections of the deployment alone: not of another stamp's
// authority, another location, or a node that is no peer. Gateways may come to the hops only (table).
func TestCertificatesOfCallers(t *testing.T) {
	ca := identitytest.NewAuthority(t)
	c := alone(t, ca)
	c.Peers = []config.Peer{{ID: 2, Address: nobody, Hop: nobody}}
	n, err := open(c)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	hops, err := listen.Open([]listen.Listener{n.hopListener()}, portsOf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, hops.Close()) }()
	for _, k := range []struct {
		ca         identitytest.Authority
		id         identity.Identity
		node, hops bool
	}{
		{ca, identity.Identity{Location: "north", Node: 2}, true, true},
		{ca, identity.Identity{Location: "south", Node: 7}, true, true},
		{ca, identity.Identity{Gateway: "east-1"}, false, true},
		{ca, identity.Identity{Location: "north", Node: 3}, false, false},
		{ca, identity.Identity{Location: "east", Node: 2}, false, false},
		{identitytest.NewAuthority(t), identity.Identity{Location: "north", Node: 2}, false, false},
	} {
		files := k.ca.Files(k.id)
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		require.NoError(t, err)
		for address, want := range map[string]bool{c.Listen.Node: k.node, c.Listen.Hop: k.hops} {
			require.Equal(t, want, admits(t, address, pair), "%s at %s", k.id, address)
		}
	}
}

// admits reports whether a listener takes a connection with a certificate. A server that does not
// sends an alert after the handshake.
func admits(t *testing.T, address string, pair tls.Certificate) bool {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}}
	conn, err := d.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }() // It fails if the server closed the connection.
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, err = conn.Read(make([]byte, 1))
	var alert *net.OpError
	return !errors.As(err, &alert) || alert.Op != "remote error"
}

// R4: a process in the folder of another node's process is refused, before it makes an empty data folder there.
func TestR4OpenInTheFolderOfAnotherNode(t *testing.T) {
	c := alone(t, identitytest.NewAuthority(t))
	require.NoError(t, membership.Claim(vfs.Default, c.Data, membership.Owner{Kind: membership.Process, Location: "south", Node: 1}))
	_, err := open(c)
	require.ErrorIs(t, err, membership.ErrOwner)
	require.NoDirExists(t, filepath.Join(c.Data, "north"))
}
