package location

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/replication/bus/natsbus"
	"antipode/stamp"
	"antipode/stamp/membership"
)

// Bus is where the stream into a location is stored.
type Bus struct {
	// Server is run with the location. Nil means that the bus runs elsewhere.
	Server *natsbus.ServerOptions
	// Near is how the bus is reached. It is ignored with a Server, which is reached within
	// the process.
	Near natsbus.ConnOptions
}

// openBus is the server of an open Bus and the connections of the location.
type openBus struct {
	server   *natsbus.Server
	near     natsbus.ConnOptions
	conn     *natsbus.Conn // to the bus here
	peerConn *natsbus.Conn // to the bus of the other location
	// conns are the two for readers that do not hold Location.mu; nil while there are none.
	conns atomic.Pointer[conns]
}

// conns are the connections to the buses of both locations.
type conns struct{ here, far *natsbus.Conn }

// busClosed reports whether the stream into the location is to take no more messages, for want of room on the disks of
// its nodes. Those of other processes count from when they are full.
func busClosed(s *stamp.Stamp, local []geo.NodeID) bool {
	return slices.ContainsFunc(local, func(id geo.NodeID) bool {
		n := s.Node(id)
		return n != nil && n.Room().Tight()
	})
}

// connected reports for both buses whether this process is connected to them; nil while the location is stopped.
func (l *Location) connected() map[geo.Location]bool {
	b := l.bus.Load()
	if b == nil {
		return nil
	}
	c := b.conns.Load()
	if c == nil {
		return nil
	}
	return map[geo.Location]bool{l.o.Name: c.here.Connected(), l.o.Other: c.far.Connected()}
}

func (l *Location) startBus(ctx context.Context) (*openBus, error) {
	b := &openBus{near: l.o.Bus.Near}
	if o := l.o.Bus.Server; o != nil {
		if err := l.claimBus(o.Dir); err != nil {
			return nil, err
		}
		var err error
		if b.server, err = natsbus.OpenServer(ctx, *o); err != nil {
			return nil, err
		}
		b.near.Server = b.server
	}
	return b, nil
}

// claimBus makes a folder that of the bus of this process, or returns membership.ErrOwner. A process that runs the whole
// location has one bus for all of its nodes.
func (l *Location) claimBus(dir string) error {
	fs, first := l.o.State.FS, l.o.Local[0]
	if fs == nil {
		fs = vfs.Default
	}
	o := membership.Owner{Kind: membership.Bus, Location: l.o.Name, Stamp: membership.StampIn(fs, l.nodeDir(first), first)}
	if !l.Whole() {
		o.Node = first
	}
	return membership.Claim(vfs.Default, dir, o) // The server's files are never elsewhere.
}

func (b *openBus) close() error {
	if b.server == nil {
		return nil
	}
	return b.server.Close()
}

// InProcessConn implements natsbus.Dialer for a bus that runs in this process.
func (l *Location) InProcessConn() (net.Conn, error) {
	b := l.bus.Load()
	if b == nil || b.near.Server == nil {
		return nil, ErrStopped
	}
	return b.near.Server.InProcessConn()
}

// connect connects to both buses and opens the publisher into the other location.
func (l *Location) connect(b *openBus) (err error) {
	named := func(o natsbus.ConnOptions) natsbus.ConnOptions {
		o.Name, o.Log = string(l.o.Name), l.o.Logger
		return o
	}
	if b.conn, err = natsbus.Connect(named(b.near)); err != nil {
		return err
	}
	if b.peerConn, err = natsbus.Connect(named(l.far.Bus)); err != nil {
		return err
	}
	b.conns.Store(&conns{b.conn, b.peerConn})
	l.pub, err = natsbus.OpenPublisher(b.peerConn, natsbus.Options{Source: l.o.Name, Bounds: l.o.Bounds, Alarm: l.o.OnAlarm, Log: l.o.Logger})
	return err
}

// Disconnect ends the location's part in both streams: it receives and ships no more records
// until the next Start. A process that ends disconnects both locations before it stops either,
// or each would raise alarms about the other's bus.
func (l *Location) Disconnect() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receiving.stop()
	return l.disconnect()
}

func (l *Location) disconnect() error {
	var errs []error
	if l.pub != nil {
		errs = append(errs, l.pub.Close())
		l.pub = nil
	}
	if open := l.bus.Load(); open != nil {
		open.conns.Store(nil)
		for _, c := range []**natsbus.Conn{&open.peerConn, &open.conn} {
			if *c != nil {
				errs = append(errs, (*c).Close())
				*c = nil
			}
		}
	}
	return errors.Join(errs...)
}
