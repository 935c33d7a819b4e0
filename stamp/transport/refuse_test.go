package transport

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/stamp/node"
	"antipode/stamp/transport/transporttest"
)

// A stranger at the address of a node is refused when it is called and when it calls. Each refusal
// is one line with the reason, however often it is tried: another authority, another location,
// another node, a certificate that has ended (table). Where the stranger is the first to refuse,
// the log shows it. Nothing it sends is received.
//
// Capability: Build and run: Mutual TLS between processes; `antipode cert`, `antipode config check`.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	late := clock.NewManual(clock.System{}.Now())
	const ours, theirs = "connection refused: not a peer", "the other end refuses"
	for name, c := range map[string]struct {
		stranger func(n *loopback) *identity.Keyring
		clock    clock.Clock
		says     string
		called   string
	}{
		"authority": {func(n *loopback) *identity.Keyring {
			return identitytest.NewAuthority(n.t).Keyring(identity.Identity{Location: "north", Node: 2}, clock.System{})
		}, clock.System{}, "unknown authority", theirs},
		"location": {func(n *loopback) *identity.Keyring {
			return n.authority.Keyring(identity.Identity{Location: "south", Node: 2}, clock.System{})
		}, clock.System{}, "it is of location", theirs},
		"node": {func(n *loopback) *identity.Keyring {
			return n.authority.Keyring(identity.Identity{Location: "north", Node: 7}, clock.System{})
		}, clock.System{}, "node 7", ours},
		"expired": {func(n *loopback) *identity.Keyring {
			return n.authority.Keyring(identity.Identity{Location: "north", Node: 2}, clock.System{})
		}, late, "expired", ours},
	} {
		t.Run(name, func(t *testing.T) {
			n := newLoopback(t)
			log := &logBuffer{}
			n.keyrings[1] = n.authority.Keyring(identity.Identity{Location: "north", Node: 1}, c.clock)
			if c.clock == late {
				late.Advance(2 * time.Hour) // Node 1 lives later than node 2's certificate.
			}
			stranger := c.stranger(n)
			n.tune = func(id geo.NodeID, o *Options) {
				o.OpenTimeout = 300 * time.Millisecond
				if id == 1 {
					o.Logger = slog.New(slog.NewTextHandler(log, nil))
				} else {
					o.Keyring, o.Self = stranger, stranger.Self().Node
				}
			}
			m := transporttest.NewMember(t)
			n.Start(1, m)
			tr, err := Open(n.options(2))
			require.NoError(t, err)
			defer func() { require.NoError(t, tr.Close()) }()
			require.Eventually(t, func() bool {
				return strings.Contains(log.String(), c.called) && strings.Contains(log.String(), "peer refused")
			}, testWait, time.Millisecond)
			tr.Send(tr.o.Self, 1, []node.Envelope{transporttest.Message(2, 1, 1, nil)})
			require.Nil(t, tr.Peer(tr.o.Self, 1))
			require.Nil(t, n.At(1).Peer(1, 2))
			// Both ends try many times more. The last look may go on when the test has ended.
			one := n.get(1)
			require.Never(t, func() bool { return tr.Stats(1).Connected || one.Stats(2).Connected }, 300*time.Millisecond, 10*time.Millisecond)
			require.Empty(t, m.Received())
			text := log.String()
			require.Contains(t, text, c.says)
			require.Equal(t, 1, strings.Count(text, ours)+strings.Count(text, theirs), text)
			require.Equal(t, 1, strings.Count(text, "peer refused"), text)
		})
	}
}

// A caller without a certificate, or without TLS, is refused and named.
//
// Capability: Build and run: Mutual TLS between processes; `antipode cert`, `antipode config check`.
func TestNoCertificate(t *testing.T) {
	n := newLoopback(t)
	log := &logBuffer{}
	n.log = log
	n.Start(1, transporttest.NewMember(t))
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	conn, err := d.DialContext(context.Background(), "tcp", n.addresses[1])
	require.NoError(t, err, "in TLS 1.3 the client is done first")
	_, err = io.ReadAll(conn)
	require.Error(t, err)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "provide a certificate") }, testWait, time.Millisecond)

	plain, err := net.Dial("tcp", n.addresses[1])
	require.NoError(t, err)
	_, err = plain.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	_, _ = io.ReadAll(plain)
	require.NoError(t, plain.Close())
}

// The sender of what is received is the node that the certificate names, whatever the
// message and the envelope say: no node speaks for another. A message names replicas, whose
// numbers may be those of other nodes, and all of them pass.
//
// Capability: Build and run: Mutual TLS between processes; `antipode cert`, `antipode config check`.
func TestSenderIsWhoTheCertificateNames(t *testing.T) {
	n := newLoopback(t)
	m := transporttest.NewMember(t)
	n.Start(1, transporttest.NewMember(t))
	n.Start(2, m)
	n.waitConnected(1, 2)
	var batch []node.Envelope
	for i, replica := range []geo.NodeID{3, 1, 2, 900} {
		e := transporttest.Message(replica, 2, uint64(i), nil)
		e.From = 3
		batch = append(batch, e)
	}
	n.At(1).Send(1, 2, batch)
	require.Eventually(t, func() bool { return len(m.Received()) == len(batch) }, testWait, time.Millisecond)
	for i, e := range m.Received() {
		require.EqualValues(t, 1, e.From, "message %d", i)
		require.Equal(t, batch[i].Message.GetFrom(), e.Message.GetFrom())
	}
}

// Refusals of one host are logged once a minute, and many hosts cost a bounded memory.
func TestRefusalsAreRateLimited(t *testing.T) {
	log := &logBuffer{}
	manual := clock.NewManual(time.Unix(0, 0))
	r := newRefusals(manual, slog.New(slog.NewTextHandler(log, nil)))
	lines := func() int { return strings.Count(log.String(), "\n") }
	for range 10 {
		r.log("a", "refused")
	}
	require.Equal(t, 1, lines())
	manual.Advance(refusalEvery)
	r.log("a", "refused")
	require.Equal(t, 2, lines())
	for i := range 10_000 {
		r.log(strings.Repeat("x", i), "refused")
	}
	require.Equal(t, 1+refusalHosts, lines())
	require.Len(t, r.last, refusalHosts)
}

// Options that cannot be are all named at once.
func TestOptions(t *testing.T) {
	err := Options{Peers: map[geo.NodeID]string{0: "x"}, QueueBytesMax: -1}.Validate()
	for _, says := range []string{"Self is 0", "Keyring is missing", "Listener is missing", "Clock is missing", "names node 0", "address of node 0", "QueueBytesMax is -1"} {
		require.ErrorContains(t, err, says)
	}
	n := newLoopback(t)
	o := n.options(1)
	defer func() { require.NoError(t, o.Listener.Close()) }()
	require.NoError(t, o.Validate())
	o.Self = 2
	require.ErrorContains(t, o.Validate(), "not that of node 2")
}
