package transport

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testWait bounds how long a test waits for what must come.
const testWait = 20 * time.Second

// loopback is a stamp of some transports on loopback. It is for one goroutine, but
// for At.
type loopback struct {
	t         testing.TB
	authority identitytest.Authority
	addresses map[geo.NodeID]string
	// listeners of nodes that were not started yet: they keep the ports.
	listeners map[geo.NodeID]net.Listener
	keyrings  map[geo.NodeID]*identity.Keyring
	log       io.Writer
	tune      func(geo.NodeID, *Options)

	mu sync.Mutex
	up map[geo.NodeID]*Transport
}

func newLoopback(t testing.TB) *loopback { return newLoopbackOf(t, 3) }

func newLoopbackOf(t testing.TB, nodes geo.NodeID) *loopback {
	n := &loopback{
		t: t, authority: identitytest.NewAuthority(t), addresses: map[geo.NodeID]string{}, keyrings: map[geo.NodeID]*identity.Keyring{},
		listeners: map[geo.NodeID]net.Listener{}, log: io.Discard, up: map[geo.NodeID]*Transport{},
	}
	for id := geo.NodeID(1); id <= nodes; id++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		n.listeners[id], n.addresses[id] = l, l.Addr().String()
		n.keyrings[id] = n.authority.Keyring(identity.Identity{Location: "north", Node: id}, clock.System{})
	}
	t.Cleanup(func() {
		for id := range n.addresses {
			n.Stop(id)
		}
		for _, l := range n.listeners {
			_ = l.Close()
		}
	})
	return n
}

// options are those of a node, which listens where it did before.
func (n *loopback) options(id geo.NodeID) Options {
	n.t.Helper()
	listener := n.listeners[id]
	delete(n.listeners, id)
	if listener == nil {
		// Until the old socket is gone, or another that took the port for a moment.
		require.Eventually(n.t, func() bool {
			var err error
			listener, err = net.Listen("tcp", n.addresses[id])
			return err == nil
		}, testWait, 10*time.Millisecond)
	}
	peers := map[geo.NodeID]string{}
	for other, address := range n.addresses {
		if other != id {
			peers[other] = address
		}
	}
	o := Options{
		Self: id, Keyring: n.keyrings[id], Listener: listener, Peers: peers, Clock: clock.System{}, Seed: 1,
		RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(n.log, nil)),
	}
	if n.tune != nil {
		n.tune(id, &o)
	}
	return o
}

// Start implements transporttest.Network.
func (n *loopback) Start(id geo.NodeID, m node.Member) {
	n.t.Helper()
	tr, err := Open(n.options(id))
	require.NoError(n.t, err)
	n.mu.Lock()
	n.up[id] = tr
	n.mu.Unlock()
	tr.Attach(id, m)
}

// Stop implements transporttest.Network.
func (n *loopback) Stop(id geo.NodeID) {
	n.mu.Lock()
	tr := n.up[id]
	delete(n.up, id)
	n.mu.Unlock()
	if tr != nil {
		require.NoError(n.t, tr.Close())
	}
}

// At implements transporttest.Network.
func (n *loopback) At(id geo.NodeID) transporttest.Transport { return n.get(id) }

func (n *loopback) get(id geo.NodeID) *Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up[id]
}

func (n *loopback) waitConnected(from, to geo.NodeID) {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return n.get(from).Stats(to).Connected }, testWait, time.Millisecond,
		"node %d never reached node %d", from, to)
}

// logBuffer is a log that tests read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// The transport over gRPC and TLS passes the suite of all transports.
func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Network { return newLoopback(t) })
}
