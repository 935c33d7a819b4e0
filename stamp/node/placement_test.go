package node_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
	"antipode/stamp/state"
)

// wide is a stamp of more than three nodes, each in a separate process.
type wide struct {
	t     *testing.T
	net   *memtransport.Transport
	disks map[geo.NodeID]vfs.FS
	by    map[geo.NodeID]*stamp.Stamp
	// sites of all nodes, but where a node's own configuration has others.
	sites []ranges.Site
	own   map[geo.NodeID][]ranges.Site
	tune  func(*Options)
}

// fiveSites are five nodes in three fault and three upgrade domains.
func fiveSites() []ranges.Site {
	return sitesOf("f1", "u1", "f1", "u2", "f2", "u3", "f2", "u1", "f3", "u2")
}

// sitesOf are nodes from 1 on, by their fault and upgrade domains.
func sitesOf(domains ...string) (list []ranges.Site) {
	for i := 0; i < len(domains); i += 2 {
		list = append(list, ranges.Site{Node: geo.NodeID(i/2 + 1), Fault: domains[i], Upgrade: domains[i+1]})
	}
	return list
}

func newWide(t *testing.T) *wide {
	s := &wide{t: t, net: memtransport.New(), disks: map[geo.NodeID]vfs.FS{}, by: map[geo.NodeID]*stamp.Stamp{}, sites: fiveSites(), own: map[geo.NodeID][]ranges.Site{}}
	t.Cleanup(func() {
		for id := range s.by {
			s.end(id)
		}
	})
	return s
}

func (s *wide) nodes() (list []geo.NodeID) {
	for _, site := range s.sites {
		list = append(list, site.Node)
	}
	return list
}

func (s *wide) startAll() {
	for _, id := range s.nodes() {
		require.NoError(s.t, s.start(id))
	}
}

func (s *wide) start(id geo.NodeID) error {
	if s.disks[id] == nil {
		s.disks[id] = vfs.NewMem()
	}
	sites := s.sites
	if own := s.own[id]; own != nil {
		sites = own
	}
	var peers []geo.NodeID
	for _, site := range sites {
		peers = append(peers, site.Node)
	}
	o := Options{
		Location: "north", Peers: peers, Sites: sites, Dir: "data", Clock: new(clock.Runtime), Transport: s.net,
		State: state.Options{FS: s.disks[id]}, Tick: 10 * time.Millisecond, InSyncTimeout: 100 * time.Millisecond, Seed: uint64(id),
		RowChunks: chunkRow, Logger: slog.New(slog.DiscardHandler),
		Commands: ranges.Commands{
			"row":  func(b []byte) (ranges.Portable, error) { return row(binary.LittleEndian.Uint32(b)), nil },
			"gate": func([]byte) (ranges.Portable, error) { return wideGate{}, nil },
		},
	}
	if s.tune != nil {
		s.tune(&o)
	}
	stamp := stamp.New(o)
	if err := stamp.Start(id); err != nil {
		return err
	}
	s.by[id] = stamp
	return nil
}

// end stops the process of a node as kill -9 would: nothing is flushed.
func (s *wide) end(id geo.NodeID) {
	stamp := s.by[id]
	delete(s.by, id)
	require.NoError(s.t, stamp.Stop(id, false))
	require.NoError(s.t, stamp.Close())
}

// submit tries until cmd took effect.
func (s *wide) submit(at geo.NodeID, id geo.RangeID, cmd ranges.Command) {
	s.t.Helper()
	var err error
	require.Eventually(s.t, func() bool {
		for _, here := range s.by {
			_ = stamptest.CompareHere(s.t.Context(), here, id) // It is tried again with the command.
		}
		err = s.by[at].Submit(s.t.Context(), id, cmd)
		return err == nil
	}, 2*electionWait, time.Millisecond, "node %d, range %d: %v", at, id, err)
}

// wideGate opens the account of these tests in any range.
type wideGate struct{}

func (wideGate) Evaluate(tx *ranges.Tx) error {
	tx.SetGate("acct", openGate)
	return nil
}
func (wideGate) Kind() string              { return "gate" }
func (wideGate) Encode() []byte            { return nil }
func (wideGate) EncodeResult() []byte      { return nil }
func (wideGate) DecodeResult([]byte) error { return nil }

// row is a command that writes one row, which its number names, into any range.
type row uint32

func (r row) partition(id geo.RangeID) keys.Partition {
	return keys.Partition{Service: geo.Service(id), Account: "acct", Container: "t", Object: fmt.Sprintf("p%05d", r)}
}

func (r row) key(id geo.RangeID) []byte { return append(r.partition(id).Append(nil), 'r') }

func (r row) Evaluate(tx *ranges.Tx) error {
	return tx.Change(r.partition(tx.Range()), change.Record{
		CommitTime: tx.Timestamp(0), Partition: r.partition(tx.Range()).Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}},
	})
}
func (r row) Kind() string              { return "row" }
func (r row) Encode() []byte            { return binary.LittleEndian.AppendUint32(nil, uint32(r)) }
func (r row) EncodeResult() []byte      { return nil }
func (r row) DecodeResult([]byte) error { return nil }

// read reads a row at the node that another node takes for the leader of the range.
func (s *wide) read(at geo.NodeID, id geo.RangeID, r row) {
	s.t.Helper()
	var err error
	require.Eventually(s.t, func() bool {
		lead, known := s.by[at].LeaderNode(id)
		if !known || s.by[lead] == nil || s.by[lead].Leader(id) == nil {
			return false
		}
		err = s.by[lead].Read(s.t.Context(), id, func(st ranges.State) error {
			_, ok, err := st.Get(r.key(id))
			if !ok {
				err = fmt.Errorf("row %d is missing", r)
			}
			return err
		})
		return err == nil
	}, electionWait, time.Millisecond, "node %d, range %d: %v", at, id, err)
}

// leader waits until a range has a leader.
func (s *wide) leader(id geo.RangeID) (lead *ranges.Range) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for _, stamp := range s.by {
			if lead = stamp.Leader(id); lead != nil {
				return true
			}
		}
		return false
	}, electionWait, time.Millisecond)
	return lead
}

// inSync waits until each range has all its replicas in sync.
func (s *wide) inSync(total int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for _, id := range StampRanges() {
			if !slices.ContainsFunc(s.nodes(), func(n geo.NodeID) bool {
				if s.by[n] == nil || s.by[n].Leader(id) == nil {
					return false
				}
				return s.by[n].Leader(id).InSync() == min(total, len(s.by[n].Placed(id)))
			}) {
				return false
			}
		}
		return true
	}, 2*electionWait, time.Millisecond)
}

// rows returns the rows and the applied state of a range at a node; nothing if it has no replica.
func (s *wide) rows(n geo.NodeID, id geo.RangeID) ([]string, change.AppliedState) {
	node := s.by[n].Node(n)
	snap := node.State().NewSnapshot()
	defer func() { require.NoError(s.t, snap.Close()) }()
	at, err := ranges.AppliedIn(snap, id)
	require.NoError(s.t, err)
	return rowsOf(s.t, snap, id), at
}

// A stamp of five nodes: each range is on exactly three of them, in three fault and three
// upgrade domains, as their stores show, and the catalog on all. Every node takes writes
// for every range, and finds who serves reads. Whichever node is killed, every range goes
// on at every other one, and nothing is lost.
//
// Capability: Storage on a node: Fault and upgrade domains.
func TestFiveNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWide(t)
		s.startAll()
		for _, id := range StampRanges() {
			s.submit(1, id, wideGate{})
		}
		next := row(0)
		writeAll := func() {
			for at := range s.by {
				for _, id := range StampRanges() {
					s.submit(at, id, next)
					s.read(at, id, next)
				}
				next++
			}
		}
		writeAll()
		s.inSync(5)

		data := bytes.Repeat([]byte{7}, 1000)
		var refs []extent.Ref
		for at := range s.by {
			ref := extent.NewRef(extent.ChunkID{byte(at)}, data)
			require.NoError(t, s.by[at].PutChunk(t.Context(), ref, data))
			refs = append(refs, ref)
		}
		load := map[geo.NodeID]int{}
		for _, id := range StampRanges() {
			on := s.by[1].Placed(id)
			if id == geo.FirstRange(geo.Catalog) {
				require.Equal(t, s.nodes(), on)
			} else {
				require.Len(t, on, 3)
			}
			for _, m := range s.leader(id).Machine.Members().List {
				require.Contains(t, on, m.Node, "range %d", id)
			}
			var at []ranges.Site
			for _, n := range s.nodes() {
				require.Equal(t, on, s.by[n].Placed(id), "node %d", n)
				has := slices.Contains(on, n)
				rows, _ := s.rows(n, id)
				require.Equal(t, has, len(rows) > 0, "node %d, range %d", n, id)
				require.Equal(t, has, s.by[n].Node(n).Range(id) != nil)
				d, err := membership.Load(s.disks[n], "data/"+Name("north", n), id)
				require.NoError(t, err)
				require.Equal(t, has, d != nil)
				if has {
					at, load[n] = append(at, s.sites[n-1]), load[n]+1
				}
				for _, ref := range refs {
					if id == geo.FirstRange(geo.Blob) {
						require.Equal(t, has, s.by[n].Node(n).Extents().Durable(ref.ID), "node %d", n)
						_, err := s.by[n].ReadChunk(ref, 0, make([]byte, len(data)))
						require.NoError(t, err)
					}
				}
			}
			fault, upgrade := ranges.Domains(at...)
			require.Equal(t, []int{3, 3}, []int{fault, upgrade}, "range %d on %v", id, on)
		}

		for _, victim := range s.nodes() {
			s.end(victim)
			writeAll()
			require.NoError(t, s.start(victim))
			s.inSync(5)
		}
		for _, id := range StampRanges() {
			on := s.by[1].Placed(id)
			require.Eventually(t, func() bool {
				want, at := s.rows(on[0], id)
				for _, n := range on[1:] {
					rows, there := s.rows(n, id)
					if there != at {
						return false // On its way.
					}
					require.Equal(t, want, rows)
				}
				return true
			}, electionWait, time.Millisecond)
			for i := range next {
				s.read(1, id, i)
			}
		}
	})
}

// The placement is decided once: what the configuration lists later changes nothing, a
// node that it does not list any more stops the start, and one that the stamp was not made
// of takes no part.
//
// Capability: Storage on a node: Fault and upgrade domains.
func TestPlacementIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWide(t)
		s.startAll()
		s.submit(1, testRange, wideGate{})
		want := s.by[1].Node(1).Placement()
		s.end(1)
		renamed := sitesOf("x", "x", "y", "y", "z", "z", "z", "z", "z", "z", "", "")
		s.own[1] = renamed
		require.NoError(t, s.start(1))
		require.Equal(t, want, s.by[1].Node(1).Placement())
		s.inSync(5)
		s.submit(1, testRange, row(1))

		// Node 6 itself comes to another decision; so does one of the five that lost its folder.
		lost := want.Of(testRange)[0]
		s.end(lost)
		s.disks[lost] = nil
		for _, id := range []geo.NodeID{6, lost} {
			s.own[id] = renamed
			require.NoError(t, s.start(id))
			require.NotEqual(t, want, s.by[id].Node(id).Placement())
		}
		s.submit(5, testRange, row(2))
		for _, id := range []geo.NodeID{6, lost} {
			n := s.by[id].Node(id)
			require.Eventually(t, func() bool {
				reported := 0
				require.NoError(t, n.Work(t.Context(), func() (error, error) {
					reported = len(n.Differing())
					for _, r := range n.Has() {
						require.Equal(t, membership.Joining, n.Identity(r).Phase, "range %d of node %d", r, id)
					}
					return nil, nil
				}))
				return reported >= 4
			}, electionWait, time.Millisecond)
		}
		// With the configuration of then it decides again, as then, and is rebuilt.
		s.end(6)
		s.end(lost)
		s.own[lost] = nil
		require.NoError(t, s.start(lost))
		s.inSync(5)
		require.Equal(t, want, s.by[lost].Node(lost).Placement())

		s.end(lost)
		s.own[lost] = s.sites[:4]
		require.ErrorIs(t, s.start(lost), ErrPlacement)
		s.own[lost] = nil
		require.NoError(t, s.start(lost))
	})
}

// Nodes of a new stamp whose configurations have different domains do not begin it: no
// range that they could disagree about gets a leader. It begins when they agree.
//
// Capability: Storage on a node: Fault and upgrade domains.
func TestNodesAgreeOnPlacement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWide(t)
		s.own[5] = sitesOf("f1", "u1", "f1", "u1", "f1", "u1", "f2", "u2", "f3", "u3")
		s.startAll()
		require.NotEqual(t, s.by[1].Node(1).Placement(), s.by[5].Node(5).Placement())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		require.Error(t, s.by[1].Submit(ctx, geo.FirstRange(geo.Catalog), wideGate{}))
		for _, id := range s.by[5].Node(5).Has() {
			require.Zero(t, s.by[5].Node(5).Range(id).Leader(), "range %d", id)
		}
		s.end(5)
		s.own[5] = nil
		require.NoError(t, s.start(5))
		s.inSync(5)
	})
}

// A folder that is older than placements opens with every range on all nodes that the configuration
// lists then, and with no other nodes later.
func TestFolderWithoutPlacement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWide(t)
		s.sites = s.sites[:3]
		s.startAll()
		s.submit(1, testRange, wideGate{})
		for _, id := range s.nodes() {
			s.end(id)
			require.NoError(t, s.disks[id].Remove("data/"+Name("north", id)+"/"+PlacementFile))
		}
		s.startAll()
		s.submit(2, testRange, row(1))
		s.inSync(3)
		s.end(1)
		s.own[1] = fiveSites()
		require.NoError(t, s.start(1))
		s.inSync(3)
		require.Equal(t, ranges.Everywhere([]geo.NodeID{1, 2, 3}), *s.by[1].Node(1).Placement())
	})
}
