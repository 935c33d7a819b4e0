package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/stamp"
	"antipode/stamp/node"
	"antipode/stamp/transport"
)

// network are three nodes that know each other by gRPC and TLS on loopback alone, as if
// each were a process.
type network struct {
	nodes
	transports []*transport.Transport
	dir        string
	ca         identity.Pair
	addresses  map[geo.NodeID]string
	// moved counts the bytes that passed the connections between the nodes, TLS and all.
	moved atomic.Int64
}

func openNetwork(ctx context.Context, _ Options, dir string) (committer, error) {
	return startNetwork(ctx, dir)
}

func startNetwork(ctx context.Context, dir string) (_ *network, err error) {
	n := &network{
		nodes: nodes{make([]*stamp.Stamp, replicas)}, transports: make([]*transport.Transport, replicas),
		dir: dir, addresses: map[geo.NodeID]string{},
	}
	if n.ca, err = identity.NewAuthority("bench", clock.System{}.Now(), time.Hour); err != nil {
		return nil, err
	}
	listeners := make([]net.Listener, replicas)
	for i := range listeners {
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		n.addresses[geo.NodeID(i+1)] = listeners[i].Addr().String()
	}
	for i, l := range listeners {
		id := geo.NodeID(i + 1)
		if err := n.certify(id); err != nil {
			return nil, err
		}
		if err := n.open(id, l); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, n.begin(ctx)
}

// open starts a node over what its folder holds.
func (n *network) open(id geo.NodeID, l net.Listener) error {
	peers := map[geo.NodeID]string{}
	for other, address := range n.addresses {
		if other != id {
			peers[other] = address
		}
	}
	ring, err := identity.OpenKeyring(identity.Identity{Location: "north", Node: id}, n.files(id), clock.System{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	t, err := transport.Open(transport.Options{
		Self: id, Keyring: ring, Listener: countingListener{l, &n.moved}, Peers: peers, Clock: clock.System{},
		Seed: uint64(id), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	n.transports[id-1] = t
	n.stamps[id-1] = stamp.New(nodeOptions(n.dir, t))
	return n.stamps[id-1].Start(id)
}

// lose ends a node, whose next start finds nothing.
func (n *network) lose(id geo.NodeID) error {
	if err := errors.Join(n.stamps[id-1].Stop(id, false), n.stamps[id-1].Close(), n.transports[id-1].Close()); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(n.dir, node.Name("north", id)))
}

// reopen starts a node again where it was.
func (n *network) reopen(id geo.NodeID) error {
	l, err := net.Listen("tcp", n.addresses[id])
	if err != nil {
		return err
	}
	return n.open(id, l)
}

// Close implements io.Closer.
func (n *network) Close() error {
	var errs []error
	for i, s := range n.stamps {
		if s != nil {
			errs = append(errs, s.Close())
		}
		if t := n.transports[i]; t != nil {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(errs...)
}

func (n *network) files(id geo.NodeID) identity.Files {
	dir := filepath.Join(n.dir, fmt.Sprintf("tls-%d", id))
	return identity.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key")}
}

// certify makes a certificate for a node.
func (n *network) certify(id geo.NodeID) error {
	signer, err := identity.OpenAuthority(n.ca)
	if err != nil {
		return err
	}
	self := identity.Identity{Location: "north", Node: id}
	pair, err := signer.NewNode(identity.NodeOptions{Identity: self, Hosts: []string{"127.0.0.1"}, Valid: 30 * time.Minute}, clock.System{}.Now())
	if err != nil {
		return err
	}
	files := n.files(id)
	if err := os.Mkdir(filepath.Dir(files.CA), 0o700); err != nil {
		return err
	}
	for name, data := range map[string][]byte{files.CA: n.ca.Cert, files.Cert: pair.Cert, files.Key: pair.Key} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// countingListener counts what passes the connections that it accepts, both ways.
type countingListener struct {
	net.Listener
	moved *atomic.Int64
}

// Accept implements net.Listener.
func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{c, l.moved}, nil
}

type countingConn struct {
	net.Conn
	moved *atomic.Int64
}

// Read implements net.Conn.
func (c countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.moved.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c countingConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.moved.Add(int64(n))
	return n, err
}
