package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/transport/wire"
)

// location is three transports of one location, each with the nodes of another for a pair.
type location struct {
	name      geo.Location
	listeners []net.Listener
	addresses []string
	nodes     []*Transport
}

// openLocations opens two locations that are each other's pair.
func openLocations(t *testing.T) (north, south *location) {
	ca := identitytest.NewAuthority(t)
	both := []*location{{name: "north"}, {name: "south"}}
	for _, l := range both {
		for range 3 {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			l.listeners, l.addresses = append(l.listeners, listener), append(l.addresses, listener.Addr().String())
		}
	}
	for i, l := range both {
		far := both[1-i]
		for k, listener := range l.listeners {
			id := geo.NodeID(k + 1)
			peers := map[geo.NodeID]string{}
			for other, address := range l.addresses {
				if other != k {
					peers[geo.NodeID(other+1)] = address
				}
			}
			tr, err := Open(Options{
				Self: id, Keyring: ca.Keyring(identity.Identity{Location: l.name, Node: id}, clock.System{}), Listener: listener, Peers: peers, Clock: clock.System{},
				Pair:     Pair{Location: far.name, Addresses: far.addresses},
				RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, tr.Close()) })
			l.nodes = append(l.nodes, tr)
		}
	}
	return both[0], both[1]
}

// A call reaches the node of the paired location that leads, wherever it begins, also when
// others are away; it is made at one node only once, and never again where it may have
// arrived (R2). Nothing but these calls is open to the pair, nor these to the own stamp.
func TestCallPair(t *testing.T) {
	north, south := openLocations(t)
	var lead atomic.Int64
	var asked [3]atomic.Int64
	gaveUp := make(chan struct{}) // The deadline may end at the callee first: its answer must not come before the caller's does.
	lead.Store(3)
	for i, tr := range south.nodes {
		tr.HandlePair("who", func(_ context.Context, body []byte) ([]byte, error) {
			asked[i].Add(1)
			if to := lead.Load(); to != int64(i+1) {
				return nil, Elsewhere(geo.NodeID(max(to, 0)))
			}
			return fmt.Appendf(nil, "%d %s", i+1, body), nil
		})
		tr.HandlePair("busy", func(context.Context, []byte) ([]byte, error) { return nil, kv.ErrBusy })
		tr.HandlePair("hang", func(context.Context, []byte) ([]byte, error) {
			asked[i].Add(1)
			<-gaveUp
			return nil, errors.New("too late")
		})
	}
	counts := func() (sum int64) {
		for i := range asked {
			sum += asked[i].Swap(0)
		}
		return sum
	}
	ctx, from := t.Context(), north.nodes[0]
	call := func(want string) {
		t.Helper()
		got, err := from.CallPair(ctx, "who", []byte("x"))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	call("3 x")
	require.LessOrEqual(t, counts(), int64(3))
	call("3 x")
	require.EqualValues(t, 1, counts(), "it remembers who answered")
	lead.Store(1)
	call("1 x")
	require.EqualValues(t, 2, counts(), "it gets the leader hint")
	lead.Store(0)
	_, err := from.CallPair(ctx, "who", nil)
	require.ErrorIs(t, err, node.ErrUnreachable, "nobody leads")
	require.EqualValues(t, 3, counts())
	_, err = from.CallPair(ctx, "busy", nil)
	require.ErrorIs(t, err, kv.ErrBusy)
	_, err = from.CallPair(ctx, "nobody", nil)
	require.ErrorIs(t, err, node.ErrUnreachable)
	require.NotContains(t, err.Error(), "\n", "operators read it as a part of a line")
	require.Equal(t, 3, strings.Count(err.Error(), "nobody answers such calls here"))

	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = from.CallPair(short, "hang", nil)
	close(gaveUp)
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.NotErrorIs(t, err, node.ErrUnreachable)
	require.NotContains(t, err.Error(), "rpc error", "operators read it")
	require.EqualValues(t, 1, counts(), "a call that may have arrived is made once")

	// A node of the pair may make these calls and no others.
	link := from.pair.links[0]
	_, err = wire.NewStampClient(link.conn).SyncChunks(ctx, &wire.Empty{})
	require.ErrorContains(t, err, "may not call")
	_, err = from.ask(ctx, wire.NewStampClient(link.conn).Call, "who", nil)
	require.ErrorContains(t, err, "may not call")
	_, err = from.ask(ctx, wire.NewStampClient(from.peers[2].calls).CallPair, "who", nil)
	require.ErrorContains(t, err, "may not call", "a node of the own stamp")
	require.Zero(t, counts())

	lead.Store(2)
	require.NoError(t, south.nodes[0].Close())
	require.NoError(t, south.nodes[2].Close())
	call("2 x")
	require.NoError(t, south.nodes[1].Close())
	require.Eventually(t, func() bool {
		_, err = from.CallPair(ctx, "who", nil)
		return errors.Is(err, node.ErrUnreachable) && !errors.Is(err, kv.ErrUnknown)
	}, testWait, time.Millisecond)
}
