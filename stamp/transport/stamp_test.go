package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
	"antipode/stamp/engine"
	"antipode/stamp/keys"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

const testRange = geo.RangeID(geo.Table)

// process is a node as a process of its own runs it.
type process struct {
	n      *node.Node
	cancel context.CancelFunc
	done   chan error
}

// network is three processes in one, over gRPC.
type network struct {
	*loopback
	disks map[geo.NodeID]vfs.FS
	procs map[geo.NodeID]*process
}

func (s *network) run(id geo.NodeID) {
	s.t.Helper()
	tr, err := Open(s.options(id))
	require.NoError(s.t, err)
	s.mu.Lock()
	s.up[id] = tr
	s.mu.Unlock()
	n, err := node.Open(node.Options{
		Location: "north", ID: id, Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Engine: engine.Options{FS: s.disks[id]},
		Clock: clock.System{}, Transport: tr, Seed: uint64(id), Tick: 20 * time.Millisecond, InSyncTimeout: 200 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{n: n, cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- n.Run(ctx) }()
	s.procs[id] = p
}

func (s *network) kill(id geo.NodeID) {
	s.t.Helper()
	p := s.procs[id]
	delete(s.procs, id)
	p.cancel()
	require.NoError(s.t, <-p.done)
	require.NoError(s.t, p.n.Close(false))
	s.Stop(id)
}

// leader returns the leader of the test's range and its node, nil while there is none.
func (s *network) leader() (*ranges.Range, geo.NodeID) {
	for id, p := range s.procs {
		if r := p.n.Range(testRange); r.Leading() {
			return r, id
		}
	}
	return nil, 0
}

// submit tries until cmd was committed; only a command that found no leader or too few
// replicas did nothing for certain, and these commands may be doubled.
func (s *network) submit(cmd ranges.Command) {
	s.t.Helper()
	var err error
	require.Eventually(s.t, func() bool {
		r, _ := s.leader()
		if r == nil {
			err = errors.New("no leader")
			return false
		}
		done := make(chan error, 1)
		r.Submit(cmd, func(err error) { done <- err })
		select {
		case err = <-done:
		case <-time.After(5 * time.Second):
			err = errors.New("no answer")
		}
		return err == nil
	}, testWait, time.Millisecond)
	require.NoError(s.t, err)
}

type openGate struct{}

func (openGate) Evaluate(tx *ranges.Tx) error {
	tx.SetGate("acct", change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true})
	return nil
}

type put struct{ i int }

func (c put) partition() keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprintf("p%05d", c.i)}
}

func (c put) Evaluate(tx *ranges.Tx) error {
	return tx.Change(c.partition(), change.Record{
		CommitTime: tx.Timestamp(0), Partition: c.partition().Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
	})
}

// Three nodes over gRPC and TLS elect leaders and commit on all three; they survive the
// stop of the leader, go on with two, and take it back, with every write (invariant 1).
func TestThreeProcesses(t *testing.T) {
	s := &network{loopback: newLoopback(t), disks: map[geo.NodeID]vfs.FS{}, procs: map[geo.NodeID]*process{}}
	for id := geo.NodeID(1); id <= 3; id++ {
		s.disks[id] = vfs.NewMem()
		s.run(id)
	}
	defer func() {
		for id := range s.procs {
			s.kill(id)
		}
	}()
	inSync := func(n int) func() bool {
		return func() bool {
			r, _ := s.leader()
			return r != nil && r.InSync() == n
		}
	}
	s.submit(openGate{})
	for i := range 50 {
		s.submit(put{i})
	}
	require.Eventually(t, inSync(3), testWait, time.Millisecond)

	_, first := s.leader()
	s.kill(first)
	for i := 50; i < 100; i++ {
		s.submit(put{i})
	}
	_, second := s.leader()
	require.NotEqual(t, first, second)
	require.Eventually(t, inSync(2), testWait, time.Millisecond)

	s.run(first)
	require.Eventually(t, inSync(3), testWait, time.Millisecond)
	s.submit(put{100})
	r, _ := s.leader()
	for i := range 101 {
		require.NoError(t, r.Read(context.Background(), func(st ranges.State) error {
			_, ok, err := st.Get(append(put{i}.partition().Append(nil), 'r'))
			if !ok {
				err = errors.Join(err, fmt.Errorf("write %d is missing", i))
			}
			return err
		}))
	}
}
