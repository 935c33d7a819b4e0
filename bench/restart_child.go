package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/stamp/memtransport"
	"antipode/stamp/ranges"
)

// childArgument is the first argument of a process that is a child of workloadRestart. Then
// follow a mode, the folder, --bytes and --concurrency.
const childArgument = "restart-child"

// The modes: write until killed, and print the length of the log; start again, and print the
// progress.
const (
	childLoad  = "load"
	childServe = "serve"
)

// The lines that a child prints.
const (
	childTail   = "tail"
	childOpen   = "open"
	childServes = "serves"
	childWhole  = "whole"
)

// childPoll is the time between two looks.
const childPoll = 10 * time.Millisecond

// memTableBytesMax is the most that a memtable may take.
const memTableBytesMax = 3 << 30

// childLine is one line of a child's output.
type childLine struct {
	Event string `json:"event"`
	// TailBytes of the log of the node with the most.
	TailBytes     int64  `json:"tail_bytes,omitempty"`
	Replayed      uint64 `json:"replayed,omitempty"`
	Logged        uint64 `json:"logged,omitempty"`
	ReplayedBytes int64  `json:"replayed_bytes,omitempty"`
}

// runChild is the child: args are those behind childArgument.
func runChild(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("%s: want 4 arguments, got %q", childArgument, args)
	}
	bytes, err1 := strconv.ParseInt(args[2], 10, 64)
	callers, err2 := strconv.Atoi(args[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	c := &restartChild{out: json.NewEncoder(out)}
	o := nodeOptions(filepath.Join(args[1], "stamp"), memtransport.New())
	o.OnApplied = func(_ geo.RangeID, a ranges.Applied) { c.applied.Add(int64(len(a.Entry))) }
	if bytes > 0 {
		o.FlushEntries, o.LogBytesMax = math.MaxUint64, uint64(8*bytes)
		o.State.StateMemTableBytes = uint64(min(2*bytes, memTableBytesMax))
	}
	n, err := startStamp(o)
	if err != nil {
		return err
	}
	c.nodes = n
	if args[0] == childLoad {
		return errors.Join(c.load(ctx, callers), n.Close())
	}
	return errors.Join(c.serve(ctx), n.Close())
}

type restartChild struct {
	*nodes
	out     *json.Encoder
	applied atomic.Int64 // bytes of entries, of all nodes
}

// load writes until the process is killed.
func (c *restartChild) load(ctx context.Context, callers int) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	l := &loader{nodes: c.nodes, o: Options{Partitions: 1000}}
	for i := range callers {
		g.Go(func() error {
			source := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)})
			for number := i; ctx.Err() == nil; number += callers {
				if err := l.putRows(ctx, number, source); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	g.Go(func() error {
		for ctx.Err() == nil {
			if err := c.out.Encode(childLine{Event: childTail, TailBytes: c.tail()}); err != nil {
				return err
			}
			pause(ctx, childPoll)
		}
		return ctx.Err()
	})
	return g.Wait()
}

// tail is what the log of the node with the longest takes.
func (c *restartChild) tail() int64 {
	var most int64
	s := c.stamps[0]
	for _, id := range s.Nodes() {
		if n := s.Node(id); n != nil {
			most = max(most, int64(n.LogBytes(geo.FirstRange(geo.Table))))
		}
	}
	return most
}

// serve says when the nodes serve, and when they are whole.
func (c *restartChild) serve(ctx context.Context) error {
	if err := c.out.Encode(childLine{Event: childOpen}); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	if err := c.out.Encode(childLine{Event: childServes}); err != nil {
		return err
	}
	for !c.whole() {
		if pause(ctx, childPoll); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	line := childLine{Event: childWhole, ReplayedBytes: c.applied.Load()}
	s := c.stamps[0]
	for _, id := range s.Nodes() {
		v := s.Node(id).Range(geo.FirstRange(geo.Table)).View()
		line.Replayed, line.Logged = max(line.Replayed, v.Replayed), max(line.Logged, v.Logged)
	}
	if err := c.out.Encode(line); err != nil {
		return err
	}
	<-ctx.Done() // Until it is killed.
	return nil
}

// whole reports whether every replica of every range is in sync and has applied what the
// leader has.
func (c *restartChild) whole() bool {
	s := c.stamps[0]
	for _, service := range append([]geo.Service{geo.Catalog}, geo.Services[:]...) {
		id := geo.FirstRange(service)
		leader := s.Leader(id)
		if leader == nil || leader.InSync() < replicas {
			return false
		}
		for _, peer := range s.Nodes() {
			n := s.Node(peer)
			if n == nil || n.Range(id).Machine.AppliedState().Index < leader.Machine.AppliedState().Index {
				return false
			}
		}
	}
	return true
}
