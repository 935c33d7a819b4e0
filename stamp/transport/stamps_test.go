package transport

import (
	"context"
	"encoding/binary"
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
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// stamps is a location of three processes in one: each has a node.Stamp in which one node
// runs, over gRPC.
type stamps struct {
	*loopback
	disks map[geo.NodeID]vfs.FS
	by    map[geo.NodeID]*node.Stamp
	adapt func(*node.Options)
}

func newStamps(t *testing.T, adapt func(*node.Options)) *stamps {
	s := &stamps{loopback: newLoopback(t), disks: map[geo.NodeID]vfs.FS{}, by: map[geo.NodeID]*node.Stamp{}, adapt: adapt}
	for id := geo.NodeID(1); id <= 3; id++ {
		s.disks[id] = vfs.NewMem()
		s.start(id)
	}
	t.Cleanup(func() {
		for id := range s.by {
			s.end(id)
		}
	})
	return s
}

// start begins the process of a node.
func (s *stamps) start(id geo.NodeID) {
	s.t.Helper()
	tr, err := Open(s.options(id))
	require.NoError(s.t, err)
	s.mu.Lock()
	s.up[id] = tr
	s.mu.Unlock()
	o := node.Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Engine: engine.Options{FS: s.disks[id]},
		Clock: clock.System{}, Transport: tr, Seed: uint64(id), Tick: 20 * time.Millisecond, InSyncTimeout: 200 * time.Millisecond,
		Commands: commands(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if s.adapt != nil {
		s.adapt(&o)
	}
	s.by[id] = node.NewStamp(o)
	require.NoError(s.t, s.by[id].Start(id))
}

// end stops the process of a node as kill -9 would: nothing is flushed.
func (s *stamps) end(id geo.NodeID) {
	s.t.Helper()
	stamp := s.by[id]
	delete(s.by, id)
	require.NoError(s.t, stamp.Stop(id, false))
	require.NoError(s.t, stamp.Close())
	s.Stop(id)
}

// leader waits until all processes agree on who leads the test's range.
func (s *stamps) leader() (lead geo.NodeID) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		lead = 0
		for _, stamp := range s.by {
			id, ok := stamp.LeaderNode(testRange)
			if !ok || s.by[id] == nil || lead != 0 && id != lead {
				return false
			}
			lead = id
		}
		return s.by[lead].Leader(testRange) != nil
	}, testWait, time.Millisecond)
	return lead
}

// submit tries until cmd took effect.
func (s *stamps) submit(at geo.NodeID, cmd ranges.Command) {
	s.t.Helper()
	var err error
	require.Eventually(s.t, func() bool {
		err = s.by[at].Submit(s.t.Context(), testRange, cmd)
		return err == nil
	}, testWait, time.Millisecond, "%v", err)
}

// portable is put as a command that travels; at is the number of its evaluation.
type portable struct {
	put
	at   geo.Timestamp
	fail bool
}

func commands() ranges.Commands {
	return ranges.Commands{
		"test.put": func(b []byte) (ranges.Portable, error) {
			return &portable{put: put{int(binary.LittleEndian.Uint32(b))}, fail: b[4] == 1}, nil
		},
		"test.gate": func([]byte) (ranges.Portable, error) { return portableGate{}, nil },
	}
}

var errPlanned = errors.New("planned")

func (c *portable) Evaluate(tx *ranges.Tx) error {
	if c.fail {
		return errPlanned
	}
	c.at = tx.Timestamp(0)
	return tx.Change(c.partition(), change.Record{
		CommitTime: c.at, Partition: c.partition().Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
	})
}
func (c *portable) Kind() string { return "test.put" }
func (c *portable) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(c.i))
	if c.fail {
		return append(b, 1)
	}
	return append(b, 0)
}

func (c *portable) EncodeResult() []byte { return binary.LittleEndian.AppendUint64(nil, uint64(c.at)) }

func (c *portable) DecodeResult(b []byte) error {
	if len(b) != 8 {
		return fmt.Errorf("result of %d bytes", len(b))
	}
	c.at = geo.Timestamp(binary.LittleEndian.Uint64(b))
	return nil
}

type portableGate struct{ openGate }

func (portableGate) Kind() string              { return "test.gate" }
func (portableGate) Encode() []byte            { return nil }
func (portableGate) EncodeResult() []byte      { return nil }
func (portableGate) DecodeResult([]byte) error { return nil }

// A command that is submitted where its range is not led takes effect at the leader's node
// once, and its result or its error comes back; one that cannot travel does nothing (R2).
// After the leader's process ended commands reach the next one.
func TestCommandsReachTheLeader(t *testing.T) {
	s := newStamps(t, nil)
	s.submit(1, portableGate{})
	lead := s.leader()
	last := geo.Timestamp(0)
	for i := range 12 {
		cmd := &portable{put: put{i}}
		require.NoError(t, s.by[geo.NodeID(i%3+1)].Submit(t.Context(), testRange, cmd))
		require.Greater(t, cmd.at, last, "the evaluation's time")
		last = cmd.at
	}
	other, third := lead%3+1, (lead+1)%3+1
	err := s.by[other].Submit(t.Context(), testRange, &portable{fail: true})
	require.ErrorContains(t, err, "planned")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, s.by[other].Submit(ctx, testRange, put{99}), "it is no Portable")

	s.end(lead)
	s.submit(other, &portable{put: put{50}})
	s.submit(third, &portable{put: put{51}})
	s.start(lead)
	s.submit(lead, &portable{put: put{52}})
	r := s.by[s.leader()].Leader(testRange)
	require.NoError(t, r.Read(t.Context(), func(st ranges.State) error {
		for i := range 100 {
			_, ok, err := st.Get(append(put{i}.partition().Append(nil), 'r'))
			if want := i < 12 || i >= 50 && i <= 52; err != nil || ok != want {
				return errors.Join(err, fmt.Errorf("write %d: there is %t", i, ok))
			}
		}
		return nil
	}))
}
