package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

const testRange = geo.RangeID(geo.Table)

// stamps is a location of some processes in one: each has a stamp.Stamp in which one node
// runs, over gRPC.
type stamps struct {
	*loopback
	disks map[geo.NodeID]vfs.FS
	by    map[geo.NodeID]*stamp.Stamp
	adapt func(*node.Options)
}

func newStamps(t *testing.T, adapt func(*node.Options)) *stamps { return newStampsOf(t, 3, adapt) }

func newStampsOf(t *testing.T, nodes geo.NodeID, adapt func(*node.Options)) *stamps {
	s := &stamps{loopback: newLoopbackOf(t, nodes), disks: map[geo.NodeID]vfs.FS{}, by: map[geo.NodeID]*stamp.Stamp{}, adapt: adapt}
	for id := geo.NodeID(1); id <= nodes; id++ {
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
		Location: "north", Peers: slices.Sorted(maps.Keys(s.addresses)), Dir: "data", State: state.Options{FS: s.disks[id]},
		Clock: clock.System{}, Transport: tr, Seed: uint64(id), Tick: 20 * time.Millisecond, InSyncTimeout: 200 * time.Millisecond,
		Commands: commands(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if s.adapt != nil {
		s.adapt(&o)
	}
	s.by[id] = stamp.New(o)
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
		for _, here := range s.by {
			_ = stamptest.CompareHere(s.t.Context(), here, testRange) // It is tried again with the command.
		}
		err = s.by[at].Submit(s.t.Context(), testRange, cmd)
		return err == nil
	}, testWait, time.Millisecond, "%v", err)
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

// holds requires that of the writes 0 to 109 those are there that want says.
func (s *stamps) holds(want func(i int) bool) {
	s.t.Helper()
	require.NoError(s.t, s.by[s.leader()].Read(s.t.Context(), testRange, func(st ranges.State) error {
		for i := range 110 {
			_, ok, err := st.Get(append(put{i}.partition().Append(nil), 'r'))
			if err != nil || ok != want(i) {
				return errors.Join(err, fmt.Errorf("write %d: there is %t", i, ok))
			}
		}
		return nil
	}))
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
		"test.naming": func(b []byte) (ranges.Portable, error) { return naming{put{int(b[0])}, parseChunk(b[1:])}, nil },
		"test.closed": func([]byte) (ranges.Portable, error) { return received{}, nil },
		"test.gate":   func([]byte) (ranges.Portable, error) { return portableGate{}, nil },
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

// Three nodes over gRPC and TLS elect leaders and commit on all three; they survive the
// stop of the leader, go on with two, and take it back, with every write (invariant 1).
func TestThreeProcesses(t *testing.T) {
	s := newStamps(t, nil)
	inSync := func(n int) func() bool {
		return func() bool {
			r := s.by[s.leader()].Leader(testRange)
			return r != nil && r.InSync() == n
		}
	}
	first := s.leader()
	s.submit(first, portableGate{})
	for i := range 50 {
		s.submit(first, &portable{put: put{i}})
	}
	require.Eventually(t, inSync(3), testWait, time.Millisecond)

	first = s.leader()
	s.end(first)
	other := first%3 + 1
	for i := 50; i < 100; i++ {
		s.submit(other, &portable{put: put{i}})
	}
	require.NotEqual(t, first, s.leader())
	require.Eventually(t, inSync(2), testWait, time.Millisecond)

	s.start(first)
	require.Eventually(t, inSync(3), testWait, time.Millisecond)
	s.submit(first, &portable{put: put{100}})
	s.holds(func(i int) bool { return i <= 100 })
}

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
	s.holds(func(i int) bool { return i < 12 || i >= 50 && i <= 52 })
}

// naming is a command that names a chunk in a row.
type naming struct {
	put
	ref extent.Ref
}

func appendChunk(dst []byte, ref extent.Ref) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, ref.ID[:]...), ref.Length)
	return binary.LittleEndian.AppendUint32(dst, ref.CRC)
}

func parseChunk(b []byte) extent.Ref {
	ref := extent.Ref{Length: binary.LittleEndian.Uint32(b[16:]), CRC: binary.LittleEndian.Uint32(b[20:])}
	copy(ref.ID[:], b)
	return ref
}

// chunkRow finds the chunks of rows of these tests.
func chunkRow(_, value []byte) ([]extent.Ref, error) {
	if len(value) != 25 || value[0] != 'C' {
		return nil, nil
	}
	return []extent.Ref{parseChunk(value[1:])}, nil
}

func (c naming) Evaluate(tx *ranges.Tx) error {
	return tx.Change(c.partition(), change.Record{
		CommitTime: tx.Timestamp(0), Partition: c.partition().Append(nil), Chunks: []extent.Ref{c.ref},
		Ops: []change.Op{{Row: []byte("r"), Value: appendChunk([]byte{'C'}, c.ref)}},
	})
}
func (c naming) Kind() string              { return "test.naming" }
func (c naming) Encode() []byte            { return appendChunk([]byte{byte(c.i)}, c.ref) }
func (c naming) EncodeResult() []byte      { return nil }
func (c naming) DecodeResult([]byte) error { return nil }

// Over the network as in one process (R3, R4): a node that was away takes an entry only
// with the payload that it fetches from a peer; one that was away for longer than the log
// reaches back is fed by a snapshot; one whose folder is gone is rebuilt under a new id. In
// the end all are in sync, each with every chunk, and each serves reads of every row.
//
// Capability: Storage on a node: A lost replica is rebuilt under a new id, without an operator.
func TestNodesComeBackOverTheNetwork(t *testing.T) {
	t.Parallel()
	var rebuilt atomic.Int64
	s := newStamps(t, func(o *node.Options) {
		o.RowChunks, o.LogBytesMax, o.FlushEntries, o.ElectionTicks = chunkRow, 16<<10, 50, 30
		o.State.LogSegmentBytes = 256 << 10
		o.OnEvent = func(e node.Event) {
			if e.Kind == node.ReplicaPromoted {
				rebuilt.Add(1)
			}
		}
	})
	s.submit(1, portableGate{})
	row := 0
	var refs []extent.Ref
	name := func(at geo.NodeID) {
		data := bytes.Repeat([]byte{byte(row + 1)}, 100_000)
		ref := extent.NewRef(extent.ChunkID{byte(row + 1)}, data)
		require.Eventually(t, func() bool { return s.by[at].PutChunk(t.Context(), ref, data) == nil }, testWait, time.Millisecond)
		s.submit(at, naming{put{row}, ref})
		refs = append(refs, ref)
		row++
	}
	whole := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			for _, stamp := range s.by {
				if r := stamp.Leader(testRange); r != nil {
					return r.InSync() == 3
				}
			}
			return false
		}, 2*testWait, time.Millisecond)
		for id, stamp := range s.by {
			for i, ref := range refs {
				require.Eventually(t, func() bool { return stamp.Node(id).Extents().Durable(ref.ID) }, testWait, time.Millisecond, "chunk %d at node %d", i, id)
			}
			require.Eventually(t, func() bool {
				return stamp.Read(t.Context(), testRange, func(st ranges.State) error {
					for i := range row {
						if _, ok, err := st.Get(append(put{i}.partition().Append(nil), 'r')); err != nil || !ok {
							return errors.Join(err, fmt.Errorf("row %d is there: %t", i, ok))
						}
					}
					return nil
				}) == nil
			}, testWait, time.Millisecond, "rows at node %d", id)
		}
	}
	away := s.leader()
	other := away%3 + 1

	s.end(away) // The leader, killed.
	name(other)
	s.start(away)
	whole()

	s.end(away)
	for range 3 {
		name(other)
	}
	r := s.by[s.leader()].Leader(testRange)
	at := r.Machine.AppliedState().Index
	for i := range 200 { // Beyond the budget of the log.
		s.submit(other, &portable{put: put{1000 + i}})
	}
	require.Greater(t, r.Machine.AppliedState().Index, at+190)
	s.start(away)
	whole()

	s.end(away)
	s.disks[away] = vfs.NewMem()
	s.start(away)
	name(other)
	require.Eventually(t, func() bool { return rebuilt.Load() > 0 }, 2*testWait, time.Millisecond, "no replica was promoted")
	whole()
}
