package transport

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
)

// Options configures a Transport.
type Options struct {
	// Self is the node this process runs.
	Self geo.NodeID
	// Keyring proves who Self is and knows its peers.
	Keyring *identity.Keyring
	// Listener takes the connections of peers. Close closes it.
	Listener net.Listener
	// Peers are the addresses, host:port, of the other nodes of the stamp.
	Peers map[geo.NodeID]string
	// Pair is the paired location; without one there are no calls to it, nor from it.
	Pair Pair
	// Clock counts how long a log line is not repeated.
	Clock clock.Clock
	// Seed feeds the jitter: nodes that lost one peer must not come back to it in step.
	Seed uint64
	// QueueBytesMax and QueueMessagesMax bound what waits for one peer. Zero means
	// 64 MiB, the most that Raft keeps in flight for four ranges, and 8192. Smaller
	// drops more while a peer is slow, and each drop costs Raft a round trip.
	QueueBytesMax    int64
	QueueMessagesMax int
	// RetryMin and RetryMax bound the pause before a broken stream or connection is tried
	// again: it doubles from one to the other, with jitter. Zero means 50 ms and 2 s. A
	// range waits for a returning node that much longer.
	RetryMin, RetryMax time.Duration
	// OpenTimeout bounds connecting and the answer to a new stream. Zero means 5 s.
	OpenTimeout time.Duration
	// KeepaliveTime is after how long without a sign of life a peer is asked for one,
	// and KeepaliveTimeout how long it has to answer before the connection is given up.
	// Zero means 10 s, the least that gRPC takes, and 5 s.
	KeepaliveTime, KeepaliveTimeout time.Duration
	// ChunkTimeout bounds each call that moves or syncs chunks. Zero means 10 s.
	ChunkTimeout time.Duration
	// ChunksInMax is how many chunks of the greatest size may be coming in at once;
	// the rest waits. Zero means 16.
	ChunksInMax int
	// CallBytesInMax bounds the requests of calls that are here at once, in bytes; the rest
	// waits. Zero means 64 MiB. Less than node.CallBytesMax refuses the greatest.
	CallBytesInMax int64
	// Registerer receives the series antipode_peer_*, of each peer; Close takes them back.
	// Nil registers nothing.
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Pair is the paired location as a transport knows it.
type Pair struct {
	Location geo.Location
	// Addresses, host:port, are of its nodes, in any order.
	Addresses []string
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (o Options) withDefaults() Options {
	orDefault(&o.QueueBytesMax, 64<<20)
	orDefault(&o.QueueMessagesMax, 8192)
	orDefault(&o.RetryMin, 50*time.Millisecond)
	orDefault(&o.RetryMax, 2*time.Second)
	orDefault(&o.OpenTimeout, 5*time.Second)
	orDefault(&o.KeepaliveTime, 10*time.Second)
	orDefault(&o.KeepaliveTimeout, 5*time.Second)
	orDefault(&o.ChunkTimeout, 10*time.Second)
	orDefault(&o.ChunksInMax, 16)
	orDefault(&o.CallBytesInMax, 64<<20)
	orDefault(&o.Logger, slog.Default())
	o.Logger = o.Logger.With("node", o.Self)
	return o
}

// Validate reports every field that cannot be.
func (o Options) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(o.Self == 0, "Self is 0: nodes are numbered from 1")
	bad(o.Keyring == nil, "Keyring is missing")
	bad(o.Keyring != nil && o.Keyring.Self().Node != o.Self, "Keyring is not that of node %d", o.Self)
	bad(o.Listener == nil, "Listener is missing")
	bad(o.Clock == nil, "Clock is missing")
	for id, address := range o.Peers {
		bad(id == o.Self || id == 0, "Peers names node %d", id)
		_, _, err := net.SplitHostPort(address)
		bad(err != nil, "address of node %d: %v", id, err)
	}
	bad(len(o.Pair.Addresses) > 0 && o.Pair.Location == "", "Pair has addresses and no location")
	bad(o.Keyring != nil && o.Pair.Location == o.Keyring.Self().Location, "Pair is this node's own location, %q", o.Pair.Location)
	for _, address := range o.Pair.Addresses {
		_, _, err := net.SplitHostPort(address)
		bad(err != nil, "address of the pair: %v", err)
	}
	for name, v := range map[string]int64{
		"QueueBytesMax": o.QueueBytesMax, "QueueMessagesMax": int64(o.QueueMessagesMax), "RetryMin": int64(o.RetryMin),
		"RetryMax": int64(o.RetryMax), "OpenTimeout": int64(o.OpenTimeout), "KeepaliveTime": int64(o.KeepaliveTime),
		"KeepaliveTimeout": int64(o.KeepaliveTimeout), "ChunkTimeout": int64(o.ChunkTimeout), "ChunksInMax": int64(o.ChunksInMax),
		"CallBytesInMax": o.CallBytesInMax,
	} {
		bad(v < 0, "%s is %d: want a number above zero, or zero for the default", name, v)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("transport options: %w", errors.Join(errs...))
}
