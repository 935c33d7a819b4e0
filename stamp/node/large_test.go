package node_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/membership"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/snapshot"
)

// whole waits until a range has three voters, all in sync, none of them of before.
func (s *wide) whole(id geo.RangeID, before ...geo.ReplicaID) (members replica.Members) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for _, stamp := range s.by {
			r := stamp.Leader(id)
			if r == nil || r.InSync() != ranges.Replicas {
				continue
			}
			if members = r.Machine.Members(); len(members.Voters()) != ranges.Replicas { // Read once: they may change.
				continue
			}
			return !slices.ContainsFunc(before, func(gone geo.ReplicaID) bool { _, still := members.Of(gone); return still })
		}
		return false
	}, 3*electionWait, time.Millisecond)
	return members
}

// logMargin is above the entries that a replica has in its log and has not applied.
const logMargin = 50

// logFrom is the first index that any log of a range still has.
func (s *wide) logFrom(id geo.RangeID) uint64 {
	s.t.Helper()
	least := uint64(math.MaxUint64)
	for n, stamp := range s.by {
		if log := stamp.Node(n).Log(id); log != nil {
			first, err := log.FirstIndex()
			require.NoError(s.t, err)
			least = min(least, first)
		}
	}
	return least
}

// wipe ends a node, and starts it on an empty disk.
func (s *wide) wipe(id geo.NodeID) {
	s.t.Helper()
	s.end(id)
	s.disks[id] = nil
	require.NoError(s.t, s.start(id))
}

// R4 in stamps of every size from four to nine nodes, where the ids of new replicas are the
// numbers of other nodes: a range whose replica was lost gets it back under a new id, by a
// snapshot; so does one that was away for longer than the log reaches back; and one that an
// operator re-formed after the disks of two were lost. Every node takes writes all the time,
// and in the end all three replicas have all rows.
//
// Capability: Storage on a node: A lost replica is rebuilt under a new id, without an operator.
func TestLostReplicasInLargeStamps(t *testing.T) {
	for nodes := 4; nodes <= 9; nodes++ {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			if testing.Short() && nodes != 5 && nodes != 8 {
				t.Skip("the sizes between")
			}
			t.Parallel() // They wait for elections most of the time.
			testLostReplicas(t, nodes)
		})
	}
}

func testLostReplicas(t *testing.T, nodes int) {
	var seen events
	s := newWide(t)
	s.sites = sitesOf(make([]string, 2*nodes)...)
	s.tune = func(o *Options) {
		o.ElectionTicks, o.LogBytesMax, o.FlushEntries, o.OnEvent = 30, 2<<10, 10, seen.take
		o.State.LogSegmentBytes = 256 << 10
	}
	s.startAll()
	s.submit(1, testRange, wideGate{})
	next := row(0)
	write := func(count int) {
		for range count {
			at := geo.NodeID(int(next)%nodes + 1)
			for s.by[at] == nil {
				at = at%geo.NodeID(nodes) + 1
			}
			s.submit(at, testRange, next)
			next++
		}
	}
	write(60)
	on := s.by[1].Placed(testRange)
	first := s.whole(testRange)
	require.Equal(t, replica.FirstMembers(on), first)

	lost, left, third := on[int(next)%3], on[(int(next)+1)%3], on[(int(next)+2)%3]
	s.wipe(lost)
	own, _ := s.whole(testRange, replica.FirstID(lost)).On(lost)
	require.Equal(t, first.Next, own.ID)
	require.True(t, seen.has(SnapshotInstalled, own.ID), "it was fed by a snapshot")

	at := s.by[third].Node(third).Range(testRange).Machine.AppliedState().Index
	s.end(third)
	// Its own log may reach a little further than what it had applied when it was asked.
	for s.logFrom(testRange) <= at+logMargin {
		write(10)
	}
	require.NoError(t, s.start(third))
	require.Eventually(t, func() bool { return seen.has(SnapshotInstalled, replica.FirstID(third)) }, electionWait, time.Millisecond)
	s.whole(testRange)

	s.wipe(lost)
	s.wipe(third)
	var got stamp.Recovered
	require.Eventually(t, func() bool {
		var err error
		got, err = s.by[left%geo.NodeID(nodes)+1].Recover(t.Context(), testRange, false, nil)
		return err == nil
	}, electionWait, 10*time.Millisecond)
	require.Equal(t, left, got.Survivor.Node)
	require.Equal(t, replica.FirstID(left), got.Survivor.Replica)
	write(5)
	now := s.whole(testRange, first.Next, first.List[0].ID, first.List[1].ID, first.List[2].ID)
	for _, m := range now.List {
		require.Equal(t, got.Recovery, replica.RecoveryOf(m.ID))
	}
	from := uint64(now.List[0].ID)
	_, err := s.by[now.List[1].Node].Node(now.List[1].Node).AcceptSnapshot(now.List[2].Node, snapshot.Header{Range: testRange, Message: &pb.Message{From: &from}})
	require.ErrorIs(t, err, membership.ErrSender, "a snapshot in the name of another's replica")
	for _, id := range on {
		// A busy machine may be between two leaders.
		require.Eventually(t, func() bool {
			return s.by[id].Read(t.Context(), testRange, func(st ranges.State) error {
				for r := range next {
					_, ok, err := st.Get(r.key(testRange))
					require.NoError(t, err)
					require.True(t, ok, "row %d on node %d", r, id)
				}
				return nil
			}) == nil
		}, electionWait, 10*time.Millisecond, "node %d", id)
	}
}

// Only the node that holds a replica may send in its name. For a replica of the configuration that is
// the node that the configuration names; for an id above all that it gave, the first node of the range
// that uses it; for a removed id, no node. The number of an id does not name a node. A refused message
// gets no answer and has no effect (table).
// It holds R4.
func TestNobodySpeaksForAnothersReplica(t *testing.T) {
	members := replica.Members{Next: 9, List: []replica.Member{{ID: 1, Node: 1}, {ID: 3, Node: 3}, {ID: 8, Node: 2, Learner: true}}}
	for name, c := range map[string]struct {
		replica geo.ReplicaID
		by      geo.NodeID
		ok      bool
	}{
		"its own, of its number":                   {replica: 3, by: 3, ok: true},
		"its own, of another number":               {replica: 8, by: 2, ok: true},
		"another's":                                {replica: 3, by: 2},
		"another's, of its own number":             {replica: 1, by: 3},
		"one that was removed":                     {replica: 2, by: 2},
		"one that was added since":                 {replica: 9, by: 2, ok: true},
		"one of a later recovery":                  {replica: 1<<32 | 1, by: 2, ok: true},
		"one that was added, without the range":    {replica: 9, by: 5},
		"one of a number, by a node that has none": {replica: 5, by: 5},
	} {
		t.Run(name, func(t *testing.T) {
			err := membership.CheckSender(members, []geo.NodeID{1, 2, 3}, c.replica, c.by)
			require.Equal(t, c.ok, err == nil, "%v", err)
		})
	}
}

// A Raft message in the name of a replica of another node is dropped, and a claim to a new
// id is the first node's.
func TestClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &lone{peers: map[geo.NodeID]ChunkPeer{}}
		n := loneNode(t, transport, nil)
		work(t, n)
		vote := func(from geo.ReplicaID, by geo.NodeID) (answered bool) {
			t.Helper()
			transport.sent = nil
			typ, of, to, term, zero := pb.MsgHeartbeat, uint64(from), uint64(1), uint64(5), uint64(0)
			n.Receive([]Envelope{{Range: testRange, From: by, Message: &pb.Message{Type: &typ, From: &of, To: &to, Term: &term, Commit: &zero}}})
			work(t, n)
			return slices.ContainsFunc(transport.sent, func(e Envelope) bool { return e.Message.GetType() == pb.MsgHeartbeatResp })
		}
		require.False(t, vote(3, 2))
		require.False(t, vote(3, 0))
		require.False(t, vote(1, 1), "its own replica, from itself")
		require.False(t, vote(2, 4), "a node without the range")
		require.True(t, vote(2, 2))
		require.False(t, vote(2, 3))
		require.True(t, vote(40, 3))
		require.False(t, vote(40, 2))
	})
}

// Only a leader hint of a node that has the range counts.
func TestLeaderHintsOfNodesWithTheRange(t *testing.T) {
	n := loneNode(t, &lone{peers: map[geo.NodeID]ChunkPeer{}}, nil)
	const elsewhere = 9
	n.Placement().Ranges = map[geo.RangeID][]geo.NodeID{elsewhere: {2}}
	hint := func(from geo.NodeID, term uint64) geo.NodeID {
		t.Helper()
		n.Receive([]Envelope{{Range: elsewhere, From: from, Report: membership.LeaderHint{Term: term}}})
		work(t, n)
		return n.LeaderHint(elsewhere)
	}
	require.Zero(t, hint(3, 8))
	require.EqualValues(t, 2, hint(2, 7))
	require.EqualValues(t, 2, hint(3, 9))
}
