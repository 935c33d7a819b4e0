package identity

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
)

// stampOf is an authority and the folder its nodes' files are in.
type stampOf struct {
	t     *testing.T
	pair  Pair
	clock *clock.Manual
}

func newStamp(t *testing.T, name string) *stampOf {
	pair, err := NewAuthority(name, testNow, 1000*time.Hour)
	require.NoError(t, err)
	return &stampOf{t, pair, clock.NewManual(testNow)}
}

func (s *stampOf) write(files Files, id Identity, valid time.Duration) {
	s.t.Helper()
	a, err := OpenAuthority(s.pair)
	require.NoError(s.t, err)
	node, err := a.NewNode(NodeOptions{Identity: id, Valid: valid}, s.clock.Now())
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(files.CA, s.pair.Cert, 0o600))
	require.NoError(s.t, os.WriteFile(files.Cert, node.Cert, 0o600))
	require.NoError(s.t, os.WriteFile(files.Key, node.Key, 0o600))
}

func testFiles(t *testing.T) Files {
	dir := t.TempDir()
	return Files{filepath.Join(dir, "ca.crt"), filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")}
}

func (s *stampOf) open(id Identity) (*Keyring, Files) {
	s.t.Helper()
	files := testFiles(s.t)
	s.write(files, id, 100*time.Hour)
	k, err := OpenKeyring(Identity{Location: id.Location, Node: id.Node, Gateway: id.Gateway}, files, s.clock, slog.New(slog.DiscardHandler))
	require.NoError(s.t, err)
	return k, files
}

// shake connects client to server; both errors of the handshakes.
func shake(t *testing.T, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(b, server)
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		_ = b.Close()
		done <- err
	}()
	conn := tls.Client(a, client)
	if clientErr = conn.Handshake(); clientErr == nil {
		_, clientErr = io.ReadFull(conn, make([]byte, 1)) // In TLS 1.3 a refusal by the server shows here.
	}
	_ = a.Close()
	return clientErr, <-done
}

// Two nodes of one stamp and location meet; any other pair is refused by the end that
// can check it: another authority, stamp name, location or node, an expired certificate, a
// node that is no peer, no certificate, an older TLS (table).
//
// Capability: Build and run: Mutual TLS between processes; `antipode cert`, `antipode config check`.
func TestWhoIsLetIn(t *testing.T) {
	s, other := newStamp(t, "prod"), newStamp(t, "prod")
	n1, _ := s.open(Identity{Location: "north", Node: 1})
	n2, _ := s.open(Identity{Location: "north", Node: 2})
	south, _ := s.open(Identity{Location: "south", Node: 2})
	foreign, _ := other.open(Identity{Location: "north", Node: 2})
	peers := func(id geo.NodeID) bool { return id <= 2 }

	clientErr, serverErr := shake(t, n2.ClientConfig(1), n1.ServerConfig(peers, ""))
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)

	for name, c := range map[string]struct {
		client, server *tls.Config
		byClient       bool
		says           string
	}{
		"other authority at the server": {foreign.ClientConfig(1), n1.ServerConfig(peers, ""), true, "unknown authority"},
		"other authority at the client": {n1.ClientConfig(2), foreign.ServerConfig(peers, ""), true, "unknown authority"},
		"other location":                {n1.ClientConfig(2), south.ServerConfig(peers, ""), true, `location "south"`},
		"other node than configured":    {n1.ClientConfig(3), n2.ServerConfig(peers, ""), true, "it is node 2, and node 3 is configured"},
		"no peer":                       {n2.ClientConfig(1), n1.ServerConfig(func(geo.NodeID) bool { return false }, ""), false, "node 2 is no peer"},
		"not the paired location":       {n1.PairConfig("west"), south.ServerConfig(peers, "north"), true, `location "south"`},
		"paired with another":           {n1.PairConfig("south"), south.ServerConfig(peers, "west"), false, `location "north"`},
		"no certificate":                {&tls.Config{InsecureSkipVerify: true}, n1.ServerConfig(peers, ""), false, "didn't provide a certificate"},
		"TLS 1.2":                       {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, n1.ServerConfig(peers, ""), false, "unsupported versions"},
	} {
		clientErr, serverErr := shake(t, c.client, c.server)
		require.Error(t, clientErr, name)
		if c.byClient {
			require.ErrorContains(t, clientErr, c.says, name)
		} else {
			require.ErrorContains(t, serverErr, c.says, name)
		}
	}

	clientErr, serverErr = shake(t, n1.PairConfig("south"), south.ServerConfig(func(geo.NodeID) bool { return false }, "north"))
	require.NoError(t, errors.Join(clientErr, serverErr), "of the paired location")

	// Gateways forward requests to nodes, and are no peers of anything else.
	gateway, _ := s.open(Identity{Gateway: "east"})
	foreignGateway, _ := other.open(Identity{Gateway: "east"})
	none := func(geo.NodeID) bool { return false }
	for name, hop := range map[string][2]*tls.Config{
		"a gateway":          {gateway.HopClientConfig("west", "north"), n1.HopServerConfig(none, "")},
		"a peer":             {n2.HopClientConfig("north", "south"), n1.HopServerConfig(peers, "south")},
		"the other location": {south.HopClientConfig("south", "north"), n1.HopServerConfig(none, "south")},
	} {
		clientErr, serverErr = shake(t, hop[0], hop[1])
		require.NoError(t, errors.Join(clientErr, serverErr), name)
	}
	for name, c := range map[string]struct {
		client, server *tls.Config
		byClient       bool
		says           string
	}{
		"no peer":                      {n2.HopClientConfig("north"), n1.HopServerConfig(none, "south"), false, "node 2 is no peer"},
		"a location that is no pair":   {south.HopClientConfig("north"), n1.HopServerConfig(peers, "west"), false, `location "south"`},
		"no certificate":               {&tls.Config{InsecureSkipVerify: true}, n1.HopServerConfig(peers, "south"), false, "didn't provide a certificate"},
		"a gateway of another stamp":   {foreignGateway.HopClientConfig("north"), n1.HopServerConfig(peers, ""), true, "unknown authority"},
		"a node elsewhere":             {gateway.HopClientConfig("west"), n1.HopServerConfig(none, ""), true, "a node of [west] is expected"},
		"a gateway in place of a node": {n1.HopClientConfig("north", ""), gateway.HopServerConfig(peers, "north"), true, "a node of"},
		"a gateway among nodes":        {gateway.ClientConfig(1), n1.ServerConfig(func(geo.NodeID) bool { return true }, ""), true, `location "north"`},
		"a gateway that does not look": {func() *tls.Config {
			careless := gateway.ClientConfig(1)
			careless.VerifyConnection = nil
			return careless
		}(), n1.ServerConfig(func(geo.NodeID) bool { return true }, "south"), false, `location ""`},
	} {
		clientErr, serverErr := shake(t, c.client, c.server)
		require.Error(t, clientErr, name)
		if c.byClient {
			require.ErrorContains(t, clientErr, c.says, name)
		} else {
			require.ErrorContains(t, serverErr, c.says, name)
		}
	}

	// A client that does not look is still refused by the server.
	careless := foreign.ClientConfig(1)
	careless.VerifyConnection = nil
	_, serverErr = shake(t, careless, n1.ServerConfig(peers, ""))
	require.ErrorIs(t, serverErr, ErrRefused)

	s.clock.Advance(101 * time.Hour)
	clientErr, _ = shake(t, n2.ClientConfig(1), n1.ServerConfig(peers, ""))
	require.ErrorContains(t, clientErr, "expired")
}

// A node with the wrong, expired or missing files does not start (table).
func TestOpenKeyring(t *testing.T) {
	s := newStamp(t, "prod")
	files := testFiles(t)
	s.write(files, Identity{Location: "north", Node: 1}, time.Hour)
	open := func(id Identity) error {
		_, err := OpenKeyring(id, files, s.clock, slog.New(slog.DiscardHandler))
		return err
	}
	require.NoError(t, open(Identity{Location: "north", Node: 1}))
	require.NoError(t, open(Identity{Stamp: "prod", Location: "north", Node: 1}))
	require.ErrorContains(t, open(Identity{Location: "north", Node: 2}), "it is that of node 1")
	require.ErrorContains(t, open(Identity{Location: "south", Node: 1}), `location "north"`)
	require.ErrorContains(t, open(Identity{Stamp: "test", Location: "north", Node: 1}), `stamp "prod"`)
	s.clock.Advance(2 * time.Hour)
	require.ErrorContains(t, open(Identity{Location: "north", Node: 1}), "expired")
	require.NoError(t, os.Remove(files.Key))
	require.ErrorIs(t, open(Identity{Location: "north", Node: 1}), os.ErrNotExist)
}

// Files that change are used from the next handshake on, the authority included; a
// half-written or foreign one is not, until it is whole.
func TestFilesFollowed(t *testing.T) {
	s := newStamp(t, "prod")
	n1, files := s.open(Identity{Location: "north", Node: 1})
	n2, _ := s.open(Identity{Location: "north", Node: 2})
	all := func(geo.NodeID) bool { return true }
	meets := func() bool {
		clientErr, serverErr := shake(t, n2.ClientConfig(1), n1.ServerConfig(all, ""))
		return clientErr == nil && serverErr == nil
	}
	require.True(t, meets())
	first, _ := n1.current()

	require.NoError(t, os.WriteFile(files.Cert, []byte("half"), 0o600))
	require.True(t, meets(), "the last good one")
	s.write(files, Identity{Location: "north", Node: 7}, time.Hour)
	touch(t, files, 1)
	require.True(t, meets(), "one of another node is not used")
	s.write(files, Identity{Location: "north", Node: 1}, 200*time.Hour)
	touch(t, files, 2)
	require.True(t, meets())
	second, _ := n1.current()
	require.NotEqual(t, first.Leaf.SerialNumber, second.Leaf.SerialNumber)
	require.Equal(t, second.Leaf.NotAfter, n1.NotAfter())
	require.True(t, n1.NotAfter().After(first.Leaf.NotAfter))

	s.clock.Advance(150 * time.Hour) // n2's has ended, n1's has not.
	require.False(t, meets())
	old := s.pair
	renewed := newStamp(t, "prod")
	renewed.clock = s.clock
	renewed.write(files, Identity{Location: "north", Node: 1}, time.Hour)
	require.NoError(t, os.WriteFile(files.CA, append(old.Cert, renewed.pair.Cert...), 0o600))
	touch(t, files, 3)
	third, _ := n1.current()
	require.NotEqual(t, second.Leaf.SerialNumber, third.Leaf.SerialNumber, "signed by the new authority")
}

// touch gives the files another time: their contents may be as long as before, within
// the resolution of the file system's clock.
func touch(t *testing.T, files Files, step int) {
	at := testNow.Add(time.Duration(step) * time.Second)
	for _, name := range []string{files.CA, files.Cert, files.Key} {
		require.NoError(t, os.Chtimes(name, at, at))
	}
}
