package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	blobrows "antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/transport"
)

// replicas is how many copies each commit makes.
const replicas = 3

// nodes are the nodes of a stamp. In one process they share a node.Stamp; else each
// has its own.
type nodes struct {
	stamps     []*node.Stamp
	transports []*transport.Transport
}

const commitAccount geo.Account = "bench"

func nodeOptions(dir string, t node.Transport) node.Options {
	var ids []geo.NodeID
	for i := range replicas {
		ids = append(ids, geo.NodeID(i+1))
	}
	return node.Options{
		Location: "north", Peers: ids, Dir: dir, Clock: clock.System{}, Transport: t, Seed: 1,
		RowChunks: blobrows.RowChunks, Logger: slog.New(slog.DiscardHandler),
	}
}

func openStamp(ctx context.Context, _ Options, dir string) (committer, error) {
	s := node.NewStamp(nodeOptions(dir, node.NewMemory()))
	n := &nodes{stamps: []*node.Stamp{s}}
	for _, id := range s.Nodes() {
		if err := s.Start(id); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, n.begin(ctx)
}

// openNetwork opens three nodes that know each other by gRPC alone.
func openNetwork(ctx context.Context, _ Options, dir string) (_ committer, err error) {
	n := &nodes{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	ca, err := identity.NewAuthority("bench", clock.System{}.Now(), time.Hour)
	if err != nil {
		return nil, err
	}
	listeners, addresses := map[geo.NodeID]net.Listener{}, map[geo.NodeID]string{}
	for i := range replicas {
		id := geo.NodeID(i + 1)
		if listeners[id], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		addresses[id] = listeners[id].Addr().String()
	}
	for id, l := range listeners {
		peers := map[geo.NodeID]string{}
		for other, address := range addresses {
			if other != id {
				peers[other] = address
			}
		}
		ring, err := newKeyring(ca, id, filepath.Join(dir, fmt.Sprintf("tls-%d", id)))
		if err != nil {
			return nil, err
		}
		t, err := transport.Open(transport.Options{
			Self: id, Keyring: ring, Listener: l, Peers: peers, Clock: clock.System{}, Seed: uint64(id), Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return nil, err
		}
		n.transports = append(n.transports, t)
		s := node.NewStamp(nodeOptions(dir, t))
		n.stamps = append(n.stamps, s)
		if err := s.Start(id); err != nil {
			return nil, err
		}
	}
	return n, n.begin(ctx)
}

// newKeyring makes a certificate for a node, in dir.
func newKeyring(ca identity.Pair, id geo.NodeID, dir string) (*identity.Keyring, error) {
	signer, err := identity.OpenAuthority(ca)
	if err != nil {
		return nil, err
	}
	self := identity.Identity{Location: "north", Node: id}
	pair, err := signer.NewNode(identity.NodeOptions{Identity: self, Hosts: []string{"127.0.0.1"}, Valid: 30 * time.Minute}, clock.System{}.Now())
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	files := identity.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "node.crt"), Key: filepath.Join(dir, "node.key")}
	for name, data := range map[string][]byte{files.CA: ca.Cert, files.Cert: pair.Cert, files.Key: pair.Key} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, err
		}
	}
	return identity.OpenKeyring(self, files, clock.System{}, slog.New(slog.DiscardHandler))
}

// begin lets the account be written. Its changes are not for another location, so
// that nothing but the commit is measured.
func (n *nodes) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := n.submit(ctx, openGate{})
		if err == nil || !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
}

// submit runs a command on the leader, which is in the process of one of the stamps.
func (n *nodes) submit(ctx context.Context, cmd ranges.Command) error {
	for {
		for _, s := range n.stamps {
			if s.Leader(geo.FirstRange(geo.Table)) != nil {
				return s.Submit(ctx, geo.FirstRange(geo.Table), cmd)
			}
		}
		if pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (n *nodes) commit(ctx context.Context, key, value []byte) error {
	return n.submit(ctx, &commitPut{string(key), value})
}

// Close implements io.Closer.
func (n *nodes) Close() error {
	var errs []error
	for _, s := range n.stamps {
		errs = append(errs, s.Close())
	}
	for _, t := range n.transports {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

type openGate struct{}

// Evaluate implements ranges.Command.
func (openGate) Evaluate(tx *ranges.Tx) error {
	tx.SetGate(commitAccount, change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true})
	return nil
}

type commitPut struct {
	object string
	value  []byte
}

// Evaluate implements ranges.Command.
func (c *commitPut) Evaluate(tx *ranges.Tx) error {
	p := keys.Partition{Service: geo.Table, Account: commitAccount, Container: "t", Object: c.object}
	return tx.Change(p, change.Record{
		CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: append([]byte(nil), c.value...)}},
	})
}
