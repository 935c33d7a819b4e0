package dev

import (
	"context"
	"net"
	"path/filepath"

	"antipode/failover/confirm"
	"antipode/failover/planned"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/replication/bus"
	"antipode/replication/bus/natsbus"
	"antipode/replication/link"
	"antipode/replication/pair"
	"antipode/replication/payload"
	"antipode/server/location"
	"antipode/services/catalog"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
)

// nodesPerLocation is how many nodes a stamp has. Each holds a replica of every range.
const nodesPerLocation = 3

// streamBytes bounds the stream into a location.
const streamBytes = 1 << 30

// locationOptions configures a location whose nodes all run in this process.
func locationOptions(dir string, name, other geo.Location, parity geo.Timestamp) location.Options {
	nodes := make([]geo.NodeID, nodesPerLocation)
	for i := range nodes {
		nodes[i] = geo.NodeID(i + 1)
	}
	bounds := bus.Bounds{BytesMax: streamBytes}
	return location.Options{
		Name: name, Other: other, Parity: parity, Nodes: nodes, Local: nodes, Dir: dir,
		Transport: func() node.Transport { return memtransport.New() },
		Bus: location.Bus{Server: &natsbus.ServerOptions{
			Dir: filepath.Join(dir, string(name), "nats"), Name: string(name), Bounds: bounds,
		}},
		Bounds: bounds,
	}
}

// direct is how a location is called by the other one in the same process, without encoding.
func direct(l *location.Location) pair.End { return pair.NewEnd(l, l.Shipper, nil) }

// join connects two locations before they start. end is how each is called.
func join(c clock.Clock, l *link.Link, a, b *location.Location, end func(*location.Location) pair.End) {
	far := func(near, far *location.Location) location.Far {
		e := end(far)
		return location.Far{
			Directory: linkedDirectory{l, far}, Source: pair.NewSource(l, e, c), Pusher: payload.NewPusher(l, near, e, c),
			Epochs: func(ctx context.Context, of confirm.Epochs) (confirm.Epochs, error) {
				return link.Ask(ctx, l, func(ctx context.Context) (confirm.Epochs, error) { return far.HigherEpochs(ctx, of) })
			},
			Received: pair.Through(l, e).Received, Rest: pair.Through(l, e).Rest, Verify: pair.Through(l, e).Verify, Clock: pair.Through(l, e).Clock,
			Bus: natsbus.ConnOptions{Server: linkedBus{l, far}},
		}
	}
	a.SetFar(far(a, b))
	b.SetFar(far(b, a))
}

// linkedDirectory is the directory of the other location, over the link.
type linkedDirectory struct {
	l   *link.Link
	far *location.Location
}

// Reserve implements directory.Peer.
func (d linkedDirectory) Reserve(ctx context.Context, a catalog.Account) error {
	return d.l.Do(ctx, func(ctx context.Context) error { return d.far.Directory.Reserve(ctx, a) })
}

// Announce implements directory.Peer.
func (d linkedDirectory) Announce(ctx context.Context, a catalog.Account) error {
	return d.l.Do(ctx, func(ctx context.Context) error { return d.far.Directory.Announce(ctx, a) })
}

// Prepare implements directory.Peer.
func (d linkedDirectory) Prepare(ctx context.Context, a catalog.Account) error {
	return d.l.Do(ctx, func(ctx context.Context) error { return d.far.Directory.Prepare(ctx, a) })
}

// Offer implements directory.Peer.
func (d linkedDirectory) Offer(ctx context.Context, o planned.Offer) (a *catalog.Account, err error) {
	err = d.l.Do(ctx, func(ctx context.Context) (err error) {
		a, err = d.far.Directory.Offer(ctx, o)
		return err
	})
	return a, err
}

// Refuse implements directory.Peer.
func (d linkedDirectory) Refuse(ctx context.Context, of catalog.Account) (a *catalog.Account, err error) {
	err = d.l.Do(ctx, func(ctx context.Context) (err error) {
		a, err = d.far.Directory.Refuse(ctx, of)
		return err
	})
	return a, err
}

// Adopt implements directory.Peer.
func (d linkedDirectory) Adopt(ctx context.Context, t rejoin.Taken) error {
	return d.l.Do(ctx, func(ctx context.Context) error { return d.far.Directory.Adopt(ctx, t) })
}

// Rejoin implements directory.Peer.
func (d linkedDirectory) Rejoin(ctx context.Context, a catalog.Account) error {
	return d.l.Do(ctx, func(ctx context.Context) error { return d.far.Directory.Rejoin(ctx, a) })
}

// LostRows implements directory.Peer.
func (d linkedDirectory) LostRows(ctx context.Context, a catalog.Account, r geo.RangeID, from rejoin.LostRow) (out rejoin.LostRows, err error) {
	err = d.l.Do(ctx, func(ctx context.Context) (err error) {
		out, err = d.far.Directory.LostRows(ctx, a, r, from)
		return err
	})
	return out, err
}

// linkedBus reaches the bus of the other location over the link.
type linkedBus struct {
	l   *link.Link
	far *location.Location
}

// InProcessConn implements natsbus.Dialer.
func (b linkedBus) InProcessConn() (net.Conn, error) {
	conn, err := b.far.InProcessConn()
	if err != nil {
		return nil, err
	}
	return b.l.Over(conn)
}
