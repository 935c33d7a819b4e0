package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
)

// patient makes elections slow compared with a message, so that a node that returns learns of a recovery
// before it may vote, even on the slowest machine. No replica leaves the in-sync set, so each of them has
// what was acknowledged.
func patient(o *Options) { o.ElectionTicks, o.InSyncTimeout = 100, time.Hour }

// requireRows requires rows from to to of a value, wherever they are served.
func (s *snapStamp) requireRows(from, to int, value string) {
	s.t.Helper()
	for i := from; i < to; i++ {
		require.NoError(s.t, s.Read(context.Background(), testRange, func(st ranges.State) error {
			v, ok, err := st.Get(append(partition(i).Append(nil), 'r'))
			require.True(s.t, ok && strings.HasPrefix(string(v), value), "row %d", i)
			return err
		}))
	}
}

// recover re-forms testRange as soon as a former leader has stepped down.
func (s *snapStamp) recover(untrusted bool) (out stamp.Recovered) {
	s.t.Helper()
	return s.recoverAbove(untrusted, 0)
}

func (s *snapStamp) recoverAbove(untrusted bool, floor geo.Timestamp) (out stamp.Recovered) {
	s.t.Helper()
	require.Eventually(s.t, func() (ok bool) {
		var err error
		out, err = s.Recover(context.Background(), testRange, untrusted, func(context.Context) (geo.Timestamp, error) { return floor, nil })
		return err == nil
	}, electionWait, 10*time.Millisecond)
	return out
}

// R4: two of three nodes are gone for good, and an operator re-forms the range from the
// third. It has every write that was acknowledged, serves reads alone, refuses writes
// until two are in sync, and gets its other replicas back by itself.
// It holds invariant 5.
func TestRecover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{Transport: memtransport.New(), silent: map[geo.ReplicaID]bool{}}
		var seen events
		s := newSnapStamp(t, w, func(o *Options) { o.OnEvent, o.InSyncTimeout = seen.take, time.Hour })
		s.write(0, 40, "a")
		s.dropLog(5)
		s.write(40, 60, "a")
		left := s.follower() // It may not know yet that the last entry is committed.
		lead := (left+1)%3 + 1
		old := s.replicaOf(left)
		require.NoError(t, s.Stop(lead, false))
		require.NoError(t, s.Stop(left%3+1, false))
		r := s.recover(false)
		w.silence(old)
		require.Equal(t, left, r.Survivor.Node)
		require.Len(t, r.Silent, 2)
		require.Eventually(t, func() bool { return s.leader() == left }, electionWait, time.Millisecond)
		require.True(t, seen.has(RangeRecovered, r.Replica))
		s.requireRows(0, 60, "a")
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := s.Submit(ctx, testRange, &put{p: partition(0), value: "alone"})
			require.Error(t, err)
			return errors.Is(err, kv.ErrBusy)
		}, electionWait, time.Millisecond)

		for _, id := range s.Nodes() {
			if id != left {
				require.NoError(t, s.fss[id].RemoveAll("data/"+Name("north", id)))
				s.start(id)
				s.write(60, 70, "b")
			}
		}
		s.same()
		s.requireRows(60, 70, "b")
		require.Empty(t, w.spoke)
		for _, m := range s.Leader(testRange).Machine.Members().List {
			require.Equal(t, r.Recovery, replica.RecoveryOf(m.ID))
			require.False(t, m.Learner)
		}
	})
}

// R6: a range that was recovered with loss commits above every time that the other location has received
// of it, even if the clocks here are behind that time, and after every change of the leader. A floor that
// cannot be had leaves the range as it is.
func TestR6RecoveryHasFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), patient)
		s.write(0, 10, "a")
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, true))
		}
		s.start(1)
		silent := errors.New("the other location is silent")
		require.Eventually(t, func() bool {
			_, err := s.Recover(t.Context(), testRange, false, func(context.Context) (geo.Timestamp, error) { return 0, silent })
			return errors.Is(err, silent)
		}, electionWait, 10*time.Millisecond)
		require.Zero(t, s.Node(1).Identity(testRange).Recovery())

		floor := geo.TimestampOf(s.o.Clock.Now().Add(time.Hour))
		r := s.recoverAbove(false, floor)
		require.Equal(t, floor, r.Floor)
		last := func() geo.Timestamp { return s.Leader(testRange).Machine.AppliedState().Last }
		require.Eventually(t, func() bool { return s.leader() == 1 }, electionWait, time.Millisecond)
		require.Equal(t, floor, last())
		require.Zero(t, s.Node(1).Identity(testRange).Floor, "it belongs to the recovery alone")
		s.start(2)
		s.start(3)
		s.same()
		s.write(0, 1, "b")
		require.Greater(t, last(), floor)
		s.same()
		require.NoError(t, s.Stop(1, false))
		s.start(1)
		s.write(1, 2, "c")
		require.Greater(t, last(), floor)
	})
}

// R13, R16: a range that was recovered with loss may have lost records that it had received and acknowledged,
// which the source's next closed records leave out: the closed times that it had are void on every
// replica, and none is taken before a full one of after the recovery, by the clock of whichever leads.
func TestR16RecoveryVoidsClosedTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), patient)
		full := &change.Closed{Origin: "south", Range: testRange, Full: true, T: 1000}
		s.submit(takeClosed{full})
		src := geo.SourceRange{Origin: "south", Range: testRange}
		require.EqualValues(t, 1000, s.Leader(testRange).Machine.Known(src).Closed)
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, true))
		}
		s.start(1)
		before := geo.TimestampOf(time.Now().Add(2 * geo.ClockOffMax))
		s.recover(false)
		s.start(2)
		s.start(3)
		s.same()
		for _, id := range s.Nodes() {
			known := s.Node(id).Range(testRange).Machine.Known(src)
			require.Zero(t, known.Closed, "node %d", id)
			none := func() geo.Timestamp { return 0 }
			require.False(t, known.Joins(&change.Closed{Origin: "south", Range: testRange, T0: 900, T: 1100}, none))
			require.True(t, known.Joins(full, none))
			s.makeLeader(id)
			var from closesFrom
			s.submit(&from)
			require.GreaterOrEqual(t, geo.Timestamp(from), before)
		}

		// A leader that leads again goes by its clock of then: its process remembers a term of before.
		id := s.leader()
		for _, to := range []geo.NodeID{id%3 + 1, id} {
			before = geo.TimestampOf(time.Now().Add(2 * geo.ClockOffMax))
			require.Eventually(t, func() bool {
				if s.leader() == to {
					return true
				}
				if lead := s.leader(); lead != 0 {
					require.NoError(t, s.Node(lead).Work(t.Context(), func() (refusal, failure error) {
						s.Node(lead).Range(testRange).Replica().Transfer([]geo.NodeID{to})
						return nil, nil
					}))
				}
				return false
			}, 2*electionWait, 10*time.Millisecond)
			var from closesFrom
			s.submit(&from)
			require.GreaterOrEqual(t, geo.Timestamp(from), before)
		}
	})
}

// closesFrom is a command that reads from which closed time on a chain may begin.
type closesFrom geo.Timestamp

func (c *closesFrom) Evaluate(tx *ranges.Tx) error {
	*c = closesFrom(tx.ClosesFrom())
	return nil
}

// takeClosed is a command that takes a closed record.
type takeClosed struct{ c *change.Closed }

func (c takeClosed) Evaluate(tx *ranges.Tx) error {
	tx.TakeClosed(c.c)
	return nil
}

// Two old replicas, both whole, come back after their range was re-formed without them.
// They are a quorum of the old configuration, and still neither votes or leads: each learns of
// the recovery first, gives up its data, and is rebuilt.
// It holds invariant 5.
func TestRetiredReplicasAreFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{Transport: memtransport.New(), silent: map[geo.ReplicaID]bool{}}
		var seen events
		s := newSnapStamp(t, w, func(o *Options) {
			o.OnEvent = seen.take
			patient(o)
		})
		s.write(0, 40, "a")
		s.dropLog(5)
		left := s.follower()
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, false))
			w.silence(replica.FirstID(id))
		}
		s.start(left)
		r := s.recover(false)
		for _, id := range s.Nodes() {
			if id != left {
				s.start(id)
			}
		}
		s.same()
		s.write(40, 60, "b")
		s.requireRows(0, 40, "a")
		require.Empty(t, w.spoke)
		for _, id := range s.Nodes() {
			require.Equal(t, id != left, seen.has(ReplicaLost, replica.FirstID(id)), "node %d", id)
			require.Equal(t, r.Recovery, s.Node(id).Identity(testRange).Recovery())
		}
	})
}

// A replica that has learned of a recovery, and of nothing since, grants no vote to a replica of the old
// configuration that has not, not even after a restart. The other one learns of the recovery from it.
func TestRetiredReplicaDoesNotVote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &witness{Transport: memtransport.New(), silent: map[geo.ReplicaID]bool{}}
		s := newSnapStamp(t, w, patient)
		s.write(0, 10, "a")
		left := s.follower()
		knows, other := left%3+1, (left+1)%3+1
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, false))
		}
		s.start(left)
		r := s.recover(false)
		w.silence(replica.FirstID(knows))
		s.start(knows)
		retired := func(id geo.NodeID) func() bool {
			return func() bool { return s.Node(id).Range(testRange).View().Lost != nil }
		}
		// Without the survivor nobody rebuilds it.
		require.Eventually(t, func() bool { return s.Node(knows).Range(testRange).View().Lost != nil || s.replicaOf(knows) != 0 }, electionWait, time.Millisecond)
		require.NoError(t, s.Stop(left, false))
		require.NoError(t, s.Stop(knows, false))
		s.start(knows)
		s.start(other)
		require.Eventually(t, retired(other), electionWait, time.Millisecond)
		require.ErrorIs(t, s.Node(other).Range(testRange).View().Lost, replica.ErrRetired)
		require.Zero(t, s.leader())
		require.Empty(t, w.spoke)
		s.start(left)
		s.same()
		s.requireRows(0, 10, "a")
		require.Equal(t, r.Recovery, s.Leader(testRange).Machine.Members().Recovery())
	})
}

// While there is a quorum of trusted replicas a recovery is refused, with a leader or without. A replica
// that lost what it had fsynced is chosen only if the operator allows that.
func TestRecoverRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), patient)
		s.write(0, 40, "a")
		s.dropLog(5)
		_, err := s.Recover(context.Background(), testRange, false, nil)
		require.ErrorIs(t, err, membership.ErrQuorum)
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, true))
		}
		_, err = s.Recover(context.Background(), testRange, false, nil)
		require.ErrorIs(t, err, membership.ErrNoSurvivor)
		s.start(1)
		s.start(2)
		_, err = s.Recover(context.Background(), testRange, true, nil)
		require.ErrorIs(t, err, membership.ErrQuorum)

		for _, id := range []geo.NodeID{1, 2} {
			require.NoError(t, s.Stop(id, true))
		}
		require.NoError(t, s.fss[1].RemoveAll("data/north-1/log"))
		require.NoError(t, s.fss[2].RemoveAll("data/north-2"))
		s.start(1)
		s.start(2)
		_, err = s.Recover(context.Background(), testRange, false, nil)
		require.ErrorIs(t, err, membership.ErrNoSurvivor)
		require.Zero(t, s.leader())
		r := s.recover(true)
		require.EqualValues(t, 1, r.Survivor.Node)
		require.False(t, r.Survivor.Trusted)
		s.start(3)
		s.same()
		s.requireRows(0, 40, "a")
		s.write(40, 50, "b")
	})
}

// A crash at any sync of a recovery leaves the old replica, whole, or one from which the
// recovery goes on to its end, with every entry of the log. The log holds changes of the
// old configuration, above the durable state.
// It holds invariant 5.
func TestCrashWhileRecovering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), func(o *Options) { o.LogBytesMax, o.FlushEntries = 0, 0 })
		s.write(0, 10, "a")
		id := s.follower()
		require.NoError(t, s.Stop(id, false))
		require.NoError(t, s.fss[id].RemoveAll("data/"+Name("north", id)))
		s.start(id)
		require.Eventually(t, func() bool { return s.replicaOf(id) == 4 }, 3*electionWait, time.Millisecond)
		s.write(10, 40, "a")
		s.same()
		left := id%3 + 1
		for _, p := range s.Nodes() {
			require.NoError(t, s.Stop(p, false))
		}
		mem := s.fss[left].(*vfs.MemFS)
		rec := &recordingFS{FS: mem, mem: mem}
		s.fss[left] = rec
		s.start(left)
		rec.take()
		r := s.recoverAbove(false, 1<<62)
		clones := rec.take()
		require.NoError(t, s.Stop(left, false))
		require.Greater(t, len(clones), 5)
		old, newer := 0, 0
		for i, clone := range clones {
			o := s.o
			o.ID, o.Dir, o.State.FS, o.Transport = left, "data/"+Name("north", left), clone, memtransport.New()
			n, err := Open(o)
			require.NoError(t, err)
			m := n.Range(testRange).Machine
			require.NoError(t, n.Range(testRange).Replica().Lost(), "crash %d", i)
			require.Equal(t, membership.Member, n.Identity(testRange).Phase)
			if n.Identity(testRange).Recovery() == 0 {
				old++
				require.Zero(t, newer, "crash %d", i)
				require.Zero(t, m.Members().Recovery())
			} else {
				newer++
				require.Equal(t, r.Replica, n.Range(testRange).Replica().ID())
				require.Equal(t, r.Recovery.Members(), m.Members())
				require.GreaterOrEqual(t, m.AppliedState().Index, r.Survivor.Index, "crash %d", i)
				require.EqualValues(t, 1<<62, m.AppliedState().Last, "crash %d", i)
			}
			require.NoError(t, n.Close(false))
		}
		t.Logf("crashes before the commit point %d, after it %d", old, newer)
		require.Positive(t, newer)
		s.fss[left] = clones[old] // The first one behind the commit point.
		for _, p := range s.Nodes() {
			s.start(p)
		}
		s.same()
		s.requireRows(0, 40, "a")
		require.Equal(t, r.Recovery, s.Leader(testRange).Machine.Members().Recovery())
	})
}

// A survivor whose state and log were lost between the commit point of a recovery and its end does not
// start as an empty range.
func TestRecoveryOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), patient)
		s.write(0, 40, "a")
		s.dropLog(5)
		for _, id := range s.Nodes() {
			require.NoError(t, s.Stop(id, true))
		}
		once, err := replica.Recovery(0).Next(1)
		require.NoError(t, err)
		s.start(1)
		n := s.Node(1)
		require.NoError(t, n.Work(context.Background(), func() (refusal, failure error) {
			return nil, n.BeginRecovery(testRange, once.None()+1)
		}))
		require.NoError(t, s.Stop(1, false))
		require.NoError(t, s.fss[1].RemoveAll("data/north-1/state"))
		require.NoError(t, s.fss[1].RemoveAll("data/north-1/log"))
		require.ErrorIs(t, s.Start(1), membership.ErrNoSurvivor)
	})
}
