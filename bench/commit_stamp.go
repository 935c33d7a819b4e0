package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	blobrows "antipode/services/blobs"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// replicas is how many copies each commit makes.
const replicas = 3

// nodes are the nodes of a stamp, whose stamps say on which of them a range is led.
type nodes struct{ stamps []*stamp.Stamp }

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
	n, err := startStamp(nodeOptions(dir, memtransport.New()))
	if err != nil {
		return nil, err
	}
	return n, n.begin(ctx)
}

// startStamp starts all nodes in this process.
func startStamp(o node.Options) (*nodes, error) {
	s := stamp.New(o)
	n := &nodes{[]*stamp.Stamp{s}}
	for _, id := range s.Nodes() {
		if err := s.Start(id); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// begin lets the account be written in a range of each service. Its changes are not for another location, so
// that nothing but the commit is measured.
func (n *nodes) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, service := range geo.Services {
		for {
			err := n.Submit(ctx, geo.FirstRange(service), openGate{})
			if err == nil {
				break
			}
			if !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrBusy) || ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}

// Route implements primary.Stamp.
func (n *nodes) Route() *route.Table { return n.stamps[0].Route() }

// SubmitAll implements primary.Stamp, one by one.
func (n *nodes) SubmitAll(ctx context.Context, id geo.RangeID, cmds []ranges.Command) []error {
	errs := make([]error, len(cmds))
	for i, cmd := range cmds {
		errs[i] = n.Submit(ctx, id, cmd)
	}
	return errs
}

// Submit runs a command on the leader of a range, wherever that is.
func (n *nodes) Submit(ctx context.Context, id geo.RangeID, cmd ranges.Command) error {
	for {
		for _, s := range n.stamps {
			if s.Leader(id) != nil {
				return s.Submit(ctx, id, cmd)
			}
		}
		if pause(ctx, 10*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (n *nodes) commit(ctx context.Context, key, value []byte) error {
	return n.Submit(ctx, geo.FirstRange(geo.Table), &commitPut{string(key), value})
}

// Close implements io.Closer.
func (n *nodes) Close() error {
	var errs []error
	for _, s := range n.stamps {
		errs = append(errs, s.Close())
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
