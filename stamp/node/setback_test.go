package node_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/replica"
)

// newSetBack is a stamp whose nodes 1 and 2 may be set back to when it had 20 rows: old are their disks of then. It has 40.
func newSetBack(t *testing.T) (s *snapStamp, old map[geo.NodeID]vfs.FS) {
	s = newSnapStamp(t, memtransport.New(), func(o *Options) {
		patient(o)
		o.InSyncTimeout, o.LogBytesMax = 300*time.Millisecond, 0
	})
	s.write(0, 20, "a")
	s.same()
	old = map[geo.NodeID]vfs.FS{}
	for _, id := range []geo.NodeID{1, 2} {
		old[id] = s.fss[id].(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
	}
	s.write(20, 40, "a")
	return s, old
}

func (s *snapStamp) stopAll() {
	s.t.Helper()
	for _, id := range s.Nodes() {
		require.NoError(s.t, s.Stop(id, false))
	}
}

// remembers waits until a node remembers that others have logged all that they have now.
func (s *snapStamp) remembers(by geo.NodeID, of ...geo.NodeID) {
	s.t.Helper()
	s.same()
	for _, id := range of {
		last, err := s.Node(id).Log(testRange).LastIndex()
		require.NoError(s.t, err)
		require.Eventually(s.t, func() bool { return s.Node(by).Remembered(testRange, id) >= last }, electionWait, time.Millisecond)
	}
}

func (s *snapStamp) lost(id geo.NodeID) error { return s.Node(id).Range(testRange).View().Lost }

func (s *snapStamp) requireLost(ids ...geo.NodeID) {
	s.t.Helper()
	for _, id := range ids {
		require.Eventually(s.t, func() bool { return s.lost(id) != nil }, electionWait, time.Millisecond, "node %d", id)
		require.ErrorIs(s.t, s.lost(id), replica.ErrLost)
		require.ErrorContains(s.t, s.lost(id), "set back")
	}
}

// requireRecovers requires that the range waits for an operator, goes on from node 3 with all its rows, and makes replicas
// of the other nodes again, under new ids.
func (s *snapStamp) requireRecovers() {
	s.t.Helper()
	var plan stamp.Recovered
	require.Eventually(s.t, func() (ok bool) {
		var err error
		plan, err = s.PlanRecovery(s.t.Context(), testRange, false, nil)
		return err == nil
	}, electionWait, 10*time.Millisecond)
	require.EqualValues(s.t, 3, plan.Survivor.Node)
	require.Len(s.t, plan.Others, 2)
	for _, v := range plan.Others {
		require.Contains(s.t, v.Why, "set back")
	}
	require.Zero(s.t, s.Node(3).Identity(testRange).Recovery(), "a plan changes nothing")
	r := s.recover(false)
	require.EqualValues(s.t, 3, r.Survivor.Node)
	require.True(s.t, r.Survivor.Trusted)
	s.write(80, 81, "c")
	s.same()
	s.requireRows(0, 40, "a")
	for _, m := range s.Leader(testRange).Machine.Members().List {
		require.Equal(s.t, r.Recovery, replica.RecoveryOf(m.ID))
	}
}

// R4: the disks of two of three nodes are set back while all are stopped. The third remembers what they had, so they are lost
// before they vote: the range has no quorum, and an operator re-forms it from the third.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
func TestR4TwoOfThreeSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, old := newSetBack(t)
		s.remembers(3, 1, 2)
		s.stopAll()
		for _, id := range s.Nodes() {
			if fs := old[id]; fs != nil {
				s.fss[id] = fs
			}
			s.start(id)
		}
		s.requireLost(1, 2)
		require.NoError(t, s.lost(3))
		require.Zero(t, s.leader())
		s.requireRecovers()
	})
}

// R4: where nobody remembers, as after the upgrade from a version without marks, two nodes that were set back elect one of
// them. It is lost once the third shows what was committed, and so is the other one, whether the range was idle or was
// written meanwhile.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
func TestR4LeaderWithoutCommitted(t *testing.T) {
	for _, written := range []int{0, 40} {
		t.Run(fmt.Sprint(written), func(t *testing.T) {
			s, old := newSetBack(t)
			s.stopAll()
			require.NoError(t, s.fss[3].Remove("data/north-3/"+MarksFile))
			for id, fs := range old {
				s.fss[id] = fs
				s.start(id)
			}
			require.Eventually(t, func() bool { return s.leader() != 0 }, electionWait, time.Millisecond)
			s.write(60, 60+written, "b")
			s.start(3)
			s.requireLost(1, 2)
			require.NoError(t, s.lost(3))
			s.requireRecovers()
		})
	}
}

// R4: one node of three is set back while all are stopped, and another one is behind. Together they would be a quorum that
// has forgotten what was acknowledged. The third remembers, so the first does not vote, and is rebuilt under a new id.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
func TestR4OneOfThreeSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, old := newSetBack(t)
		s.same()
		require.NoError(t, s.Stop(2, false))
		s.write(40, 60, "a")
		last, err := s.Node(1).Log(testRange).LastIndex()
		require.NoError(t, err)
		require.Eventually(t, func() bool { return s.Node(3).Remembered(testRange, 1) >= last }, electionWait, time.Millisecond)
		require.NoError(t, s.Stop(1, false))
		require.NoError(t, s.Stop(3, false))
		s.fss[1] = old[1]
		for _, id := range s.Nodes() {
			s.start(id)
		}
		s.same()
		s.requireRows(0, 60, "a")
		require.Greater(t, s.replicaOf(1), geo.ReplicaID(3))
		require.EqualValues(t, 2, s.replicaOf(2))
		require.EqualValues(t, 3, s.replicaOf(3))
		_, err = s.Recover(t.Context(), testRange, false, nil)
		require.ErrorIs(t, err, membership.ErrQuorum)
	})
}

// R4: a node is rebuilt, and its disk is later set back to before that, alone or with another one. Its log and identity fit
// each other, and nobody remembers a mark of its former replica. The others know the later one, so it is lost, under the id
// of the later one: it is rebuilt under an id that is above both, or the range waits for an operator, who can recover it.
func TestR4SetBackToBeforeARebuild(t *testing.T) {
	t.Parallel()
	for _, back := range [][]geo.NodeID{{2}, {1, 2}} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, old := newSetBack(t)
				require.NoError(t, s.Stop(2, false))
				s.fss[2] = vfs.NewCrashableMem()
				s.start(2)
				require.Eventually(t, func() bool { return s.replicaOf(2) > 3 }, electionWait, time.Millisecond)
				later := s.replicaOf(2)
				s.remembers(3, back...)
				s.stopAll()
				for _, id := range back {
					s.fss[id] = old[id]
				}
				for _, id := range s.Nodes() {
					s.start(id)
				}
				if len(back) == 1 {
					require.Eventually(t, func() bool { return s.replicaOf(2) > later }, electionWait, time.Millisecond)
					s.same()
					s.requireRows(0, 40, "a")
					return
				}
				s.requireLost(1, 2)
				require.Equal(t, later, s.Node(2).Identity(testRange).Replica, "the id that it may have taken part under")
				require.NoError(t, s.lost(3))
				require.Zero(t, s.leader())
				s.requireRecovers()
			})
		})
	}
}

// A stamp is made again in folders that were emptied, but for what the nodes remember of their peers. No replica of it is
// lost by marks of the former one, whose ids were the same.
func TestR4MarksOfAFormerStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSetBack(t)
		for _, id := range s.Nodes() {
			s.remembers(id, 1+id%3)
		}
		s.stopAll()
		for _, id := range s.Nodes() {
			fs, dir := s.fss[id], fmt.Sprintf("data/north-%d", id)
			names, err := fs.List(dir)
			require.NoError(t, err)
			require.Contains(t, names, MarksFile)
			for _, name := range names {
				if name != MarksFile {
					require.NoError(t, fs.RemoveAll(fs.PathJoin(dir, name)))
				}
			}
			s.start(id)
		}
		require.Eventually(t, func() bool { return s.leader() != 0 }, electionWait, time.Millisecond)
		s.write(0, 1, "b")
		for _, id := range s.Nodes() {
			require.NoError(t, s.lost(id))
			require.Equal(t, geo.ReplicaID(id), s.replicaOf(id))
		}
	})
}
