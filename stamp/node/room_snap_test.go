package node_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/replica"
	"antipode/stamp/room"
	"antipode/stamp/snapshot"
)

// newSmallSnapStamp returns a snapStamp, a follower in it, and that one's disk.
func newSmallSnapStamp(t *testing.T) (*snapStamp, *events, geo.NodeID, *smallDisk) {
	seen := &events{}
	s := newSnapStamp(t, memtransport.New(), func(o *Options) {
		eager(o)
		o.OnEvent = seen.takeAll
	})
	id := s.follower()
	require.NoError(t, s.Stop(id, true))
	d := newSmallDisk()
	d.FS = s.fss[id]
	s.fss[id] = d
	s.start(id)
	s.write(0, 20, "a")
	s.same()
	return s, seen, id, d
}

// A follower whose disk is full takes no range snapshot; with room again it takes one, if the logs of the others have
// lost what it needs, and is in sync without help. Meanwhile payload goes to the others, and it fetches it afterwards.
func TestFullFollowerReturnsBySnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen, id, d := newSmallSnapStamp(t)
		d.leave(ReserveBytes/4 - 1)
		require.Eventually(t, func() bool { return s.Node(id).Room().Level() == room.Spent }, electionWait, time.Millisecond)
		refs := s.putChunks(100, 110)
		s.write(20, 120, "b")
		at := s.Node(id).Range(testRange).Machine.AppliedState().Index
		require.Eventually(t, func() bool {
			lead := s.leader()
			if lead == 0 {
				return false
			}
			first, err := s.Node(lead).Log(testRange).FirstIndex()
			return err == nil && first > at+1
		}, electionWait, time.Millisecond, "the log of the leader still has what the follower needs")
		require.False(t, seen.has(SnapshotInstalled, s.replicaOf(id)))
		require.Zero(t, d.failed)
		d.leave(1 << 40)
		require.Eventually(t, func() bool { return seen.has(SnapshotInstalled, s.replicaOf(id)) }, electionWait, time.Millisecond)
		s.same()
		require.Eventually(t, func() bool { return intact(s.Node(id), refs) }, electionWait, time.Millisecond)
	})
}

// A range snapshot that is on its way ends once half of the reserve is left, and none begins on a disk that is full.
func TestFullDiskEndsASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, id, d := newSmallSnapStamp(t)
		lead := s.Leader(testRange)
		last := lead.Machine.AppliedState()
		snap := replica.SnapshotOf(geo.EntryID{Term: last.Term, Index: last.Index + 1000}, lead.Machine.Members())
		from := uint64(s.replicaOf(s.leader()))
		begin := func() (*snapshot.Incoming, error) {
			return s.Node(id).AcceptSnapshot(s.leader(), snapshot.Header{Range: testRange, Message: &pb.Message{From: &from, Snapshot: snap}})
		}
		in, err := begin()
		require.NoError(t, err)
		d.leave(ReserveBytes/2 - 1)
		require.Eventually(t, func() bool { return s.Node(id).Room().Level() == room.Bare }, electionWait, time.Millisecond)
		require.ErrorIs(t, in.Send(t.Context(), snapshot.Fragment{}), snapshot.ErrBusy)
		in.Close()
		d.leave(ReserveBytes + RoomMore/2)
		require.Eventually(t, func() bool { return s.Node(id).Room().Level() == room.Full }, electionWait, time.Millisecond)
		if in, err = begin(); err == nil {
			in.Close()
		}
		require.ErrorIs(t, err, snapshot.ErrBusy)
	})
}

// R2, R3: payload goes to two nodes that have room, past one that has none; with one alone it is refused as busy.
func TestR2PayloadGoesPastAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disks := map[geo.NodeID]*smallDisk{}
		s := testStamp(t, func(id geo.NodeID) vfs.FS {
			disks[id] = newSmallDisk()
			return disks[id]
		})
		put := func(n byte) error {
			data := []byte{n}
			return s.PutChunk(context.Background(), extent.NewRef(extent.ChunkID{n}, data), data)
		}
		require.NoError(t, put(1))
		for i, id := range s.Nodes()[:2] {
			disks[id].leave(ReserveBytes - 1)
			CheckRoom(s.Node(id))
			if i == 0 {
				require.NoError(t, put(2))
				require.False(t, s.Node(id).Extents().Durable(extent.ChunkID{2}))
				require.True(t, s.Node(3).Extents().Durable(extent.ChunkID{2}))
			}
		}
		require.ErrorIs(t, put(3), kv.ErrBusy)
	})
}

// A node that failed because its disk is full is not opened in vain until it stays out of service: it is opened once there
// is room, however long that takes.
func TestFullNodeIsOpenedOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen, id, d := newSmallSnapStamp(t)
		d.leave(0)
		s.Node(id).FailWith(syscall.ENOSPC)
		require.Eventually(t, func() bool { return s.Node(id) == nil }, electionWait, time.Millisecond)
		asked := d.asked.Load()
		require.Eventually(t, func() bool { return d.asked.Load() > asked+20 }, 10*electionWait, time.Millisecond, "it looks for room no more")
		s.write(20, 30, "b")
		require.False(t, seen.has(NodeRestarted, 0))
		require.False(t, seen.has(NodeOutOfService, 0))
		d.leave(1 << 40)
		require.Eventually(t, func() bool { return seen.has(NodeRestarted, 0) }, electionWait, time.Millisecond)
		s.same()
	})
}

// Of the damaged stores that were set aside the newest stays once the replicas are whole again, and on a full disk none.
func TestSetAsideStoresAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen, id, d := newSmallSnapStamp(t)
		asides := func() (out []string) {
			names, err := d.List("data/" + Name("north", id))
			require.NoError(t, err)
			for _, name := range names {
				if strings.Contains(name, ".damaged-") {
					out = append(out, name)
				}
			}
			return out
		}
		for i := range 2 {
			s.Node(id).Quarantine("state", syscall.EIO)
			require.Eventually(t, func() bool { return seen.times(NodeRestarted, 0) > i }, electionWait, time.Millisecond)
			s.same()
		}
		require.Eventually(t, func() bool { return seen.times(AsideRemoved, 0) == 1 }, electionWait, time.Millisecond)
		newest := asides()
		require.Len(t, newest, 1)
		require.Positive(t, s.Node(id).Room().AsideBytes())
		d.leave(ReserveBytes - 1)
		require.Eventually(t, func() bool { return seen.times(AsideRemoved, 0) == 2 }, electionWait, time.Millisecond)
		require.Empty(t, asides())
		require.Zero(t, s.Node(id).Room().AsideBytes())
	})
}

// With less than half of the reserve a follower fetches no payload, so that entries that name it wait; with less than a
// quarter it drops them. With room it fetches what it needs.
func TestFullFollowerFetchesNoPayload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, id, d := newSmallSnapStamp(t)
		n := s.Node(id)
		on := func(f func()) {
			require.NoError(t, n.Work(t.Context(), func() (refusal, failure error) { f(); return nil, nil }))
		}
		held := func() (out int) {
			on(func() { out = len(n.Held(testRange)) })
			return out
		}
		d.leave(ReserveBytes/2 - 1)
		require.Eventually(t, func() bool { return n.Room().Level() == room.Bare }, electionWait, time.Millisecond)
		refs := s.putChunks(100, 103)
		require.Eventually(t, func() bool { return held() > 0 }, electionWait, time.Millisecond)
		var from uint64
		on(func() { from = n.Ticks() })
		require.Eventually(t, func() (later bool) {
			on(func() { later = n.Ticks() > from+20 })
			return later
		}, electionWait, time.Millisecond)
		for _, ref := range refs {
			require.False(t, n.Extents().Durable(ref.ID))
		}
		require.ErrorIs(t, n.ScrubOptions().Node.Copy(refs[0]), kv.ErrBusy)
		require.Positive(t, held())
		d.leave(ReserveBytes/4 - 1)
		require.Eventually(t, func() bool { return held() == 0 }, electionWait, time.Millisecond)
		s.write(200, 210, "c")
		require.Zero(t, held())
		d.leave(1 << 40)
		s.same()
		require.Eventually(t, func() bool { return intact(n, refs) }, electionWait, time.Millisecond)
	})
}
