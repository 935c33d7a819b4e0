package location

import (
	"context"
	"errors"
	"net"

	"antipode/replication/bus/natsbus"
)

// Carrier says where the stream lives that comes into a location.
type Carrier struct {
	// Server runs with the location; nil where the carrier is run elsewhere.
	Server *natsbus.ServerOptions
	// Near is how the carrier is reached. Not needed with a Server, which is reached within
	// the process.
	Near natsbus.ConnOptions
}

// carrier is one that is open: the server, and the connections to this and the other
// location's.
type carrier struct {
	server   *natsbus.Server
	near     natsbus.ConnOptions
	conn     *natsbus.Conn // to the carrier here
	peerConn *natsbus.Conn // to the carrier of the other location
}

func (l *Location) openCarrier(ctx context.Context) (*carrier, error) {
	c := &carrier{near: l.o.Carrier.Near}
	if o := l.o.Carrier.Server; o != nil {
		var err error
		if c.server, err = natsbus.OpenServer(ctx, *o); err != nil {
			return nil, err
		}
		c.near.Server = c.server
	}
	return c, nil
}

func (c *carrier) close() error {
	if c.server == nil {
		return nil
	}
	return c.server.Close()
}

// InProcessConn implements natsbus.Dialer: the carrier of this location, where it is
// within the process.
func (l *Location) InProcessConn() (net.Conn, error) {
	c := l.carrier.Load()
	if c == nil || c.near.Server == nil {
		return nil, ErrStopped
	}
	return c.near.Server.InProcessConn()
}

// connect opens the publisher into the other location, and what the consumer here needs.
func (l *Location) connect(c *carrier) (err error) {
	named := func(o natsbus.ConnOptions) natsbus.ConnOptions {
		o.Name, o.Log = string(l.o.Name), l.o.Logger
		return o
	}
	if c.conn, err = natsbus.Connect(named(c.near)); err != nil {
		return err
	}
	if c.peerConn, err = natsbus.Connect(named(l.far.Carrier)); err != nil {
		return err
	}
	l.pub, err = natsbus.OpenPublisher(c.peerConn, natsbus.Options{Source: l.o.Name, Bounds: l.o.Bounds, Alarm: l.o.OnAlarm, Log: l.o.Logger})
	return err
}

// Disconnect ends the location's part in both streams: it takes and sends no more
// records until its next Start. A process that ends disconnects both locations before
// it stops either, or each would miss the other's carrier and say so.
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
	if open := l.carrier.Load(); open != nil {
		for _, c := range []**natsbus.Conn{&open.peerConn, &open.conn} {
			if *c != nil {
				errs = append(errs, (*c).Close())
				*c = nil
			}
		}
	}
	return errors.Join(errs...)
}
