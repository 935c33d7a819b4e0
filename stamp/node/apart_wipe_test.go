package node_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/replica"
)

// gated restarts a node of a stamp, whose ranges take writes, on a disk that stands from now on at a point.
func (s *snapStamp) gated(id geo.NodeID, flushes bool) *gatedFS {
	s.t.Helper()
	require.NoError(s.t, s.Stop(id, true))
	fs := newGatedFS(s.t, s.fss[id], flushes)
	s.fss[id] = fs
	s.start(id)
	fs.started.Store(true)
	return fs
}

// lose has the replica of testRange on a node find that it is lost.
func (s *snapStamp) lose(id geo.NodeID) {
	s.t.Helper()
	n := s.Node(id)
	require.NoError(s.t, n.Work(s.t.Context(), func() (refusal, failure error) {
		n.Range(testRange).Replica().Lose(replica.ErrLost)
		return nil, nil
	}))
}

// phase is that of the replica of testRange on a node. It is asked of the scheduler, which must not stand.
func (s *snapStamp) phase(id geo.NodeID) (d membership.Identity) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), electionWait)
	defer cancel()
	require.NoError(s.t, s.Node(id).Work(ctx, func() (refusal, failure error) {
		d = s.Node(id).Identity(testRange)
		return nil, nil
	}))
	return d
}

func (s *snapStamp) openBlobs() {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.Submit(context.Background(), blobs, setGate{openGate}) == nil }, electionWait, time.Millisecond)
}

// R4: while the data of a lost replica is removed, on a disk that is slow or stands, the node goes on in its other ranges. The
// replica is neither the old one nor the new one: it is sent nothing, and its leader keeps the new id. A crash meanwhile
// leaves it so, and the next start finishes it, but does not go on under that id. Neither the flush before it nor the change
// of the state holds the others.
//
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestWipeHoldsItsRangeAlone(t *testing.T) {
	t.Parallel()
	for name, flushes := range map[string]bool{"the tables come": false, "the memtable is flushed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSnapStamp(t, memtransport.New(), func(o *Options) { o.FlushEntries = 1 << 20 })
				s.openBlobs()
				s.write(0, 20, "a")
				id := s.follower()
				mem := s.fss[id].(*vfs.MemFS)
				fs := s.gated(id, flushes)
				s.write(20, 40, "b")
				s.same()
				s.lose(id)
				<-fs.came
				require.Eventually(t, func() bool { return s.phase(id).Phase == membership.Rebuilding }, electionWait, time.Millisecond)
				next := s.phase(id).Replica
				s.requireBlobsFollow(id)
				crashed := mem.CrashClone(vfs.CrashCloneCfg{})
				s.write(40, 60, "c") // Of the range itself: the others go on without this one.
				require.Equal(t, membership.Rebuilding, s.phase(id).Phase)
				member, _ := s.Leader(testRange).Machine.Members().On(id)
				require.Equal(t, replica.Member{ID: next, Node: id, Learner: true}, member, "the leader has not given it another id")
				lost := func() bool { return errors.Is(s.Node(id).Range(testRange).View().Lost, replica.ErrLost) }
				require.Eventually(t, lost, electionWait, time.Millisecond)

				o := s.o
				o.ID, o.Dir, o.State.FS, o.Transport = id, "data/"+Name("north", id), crashed, memtransport.New()
				n, err := Open(o)
				require.NoError(t, err)
				require.Equal(t, membership.Lost, n.Identity(testRange).Phase, "it has to ask for the last id again")
				require.Equal(t, next, n.Range(testRange).Replica().ID())
				require.ErrorIs(t, n.Range(testRange).Replica().Lost(), replica.ErrLost)
				require.Zero(t, n.Range(testRange).Machine.AppliedState().Index, "its data is gone")
				require.NoError(t, n.Close(false))

				fs.open()
				s.same()
				requireNothingStaged(t, s, id)
				require.Equal(t, next, s.phase(id).Replica)
			})
		})
	}
}

// A node that is closed while it removes the data of a replica waits for that. The next start cannot know whether its folder
// was set back since, so the replica is rebuilt under a later id.
func TestNodeIsClosedWhileItWipes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := &asked{Transport: memtransport.New(), lives: map[membership.Nonce]bool{}}
		s := newSnapStamp(t, asked, nil)
		s.write(0, 20, "a")
		id := s.follower()
		fs := s.gated(id, false)
		s.same()
		s.lose(id)
		<-fs.came
		next := s.phase(id).Replica
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(id, false) }()
		require.Eventually(t, func() bool { return s.Node(id) == nil }, electionWait, time.Millisecond)
		require.Empty(t, stopped, "the disk stands")
		fs.open()
		require.NoError(t, <-stopped)
		s.start(id)
		s.same()
		require.Greater(t, s.phase(id).Replica, next)
		require.Equal(t, membership.Member, s.phase(id).Phase)
		asked.mu.Lock()
		defer asked.mu.Unlock()
		require.Len(t, asked.lives, 2, "an answer to the first life must not pass for one to the second")
	})
}

// asked collects by which nonces nodes ask which id was given last.
type asked struct {
	*memtransport.Transport
	mu    sync.Mutex
	lives map[membership.Nonce]bool
}

func (a *asked) Send(from, to geo.NodeID, batch []Envelope) {
	a.mu.Lock()
	for _, e := range batch {
		if m, ok := e.Report.(membership.LossReport); ok && m.Replica == 0 {
			a.lives[m.Nonce] = true
		}
	}
	a.mu.Unlock()
	a.Transport.Send(from, to, batch)
}

// recovering loses all replicas but that of a follower, id, and begins a recovery from it, which waits for the disk.
func recovering(t *testing.T) (s *snapStamp, id geo.NodeID, fs *gatedFS, recovered chan error) {
	s = newSnapStamp(t, memtransport.New(), func(o *Options) { o.FlushEntries = 1 << 20 })
	s.openBlobs()
	s.write(0, 40, "a")
	id = s.follower()
	fs = s.gated(id, true)
	s.same()
	for _, other := range s.Nodes() {
		if other != id {
			s.lose(other)
		}
	}
	recovered = make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*electionWait)
		defer cancel()
		for { // It may have led, and steps down.
			_, err := s.Recover(ctx, testRange, false, nil)
			if again := errors.Is(err, membership.ErrQuorum) || errors.Is(err, membership.ErrChanged) && s.phase(id).Phase == membership.Member; !again {
				recovered <- err
				return
			}
		}
	}()
	<-fs.came
	require.Eventually(t, func() bool { return s.phase(id).Phase == membership.Recovering }, 3*electionWait, time.Millisecond)
	return s, id, fs, recovered
}

// While a range is re-formed from a replica, as an operator requested, its node goes on in its other ranges, and the
// operator waits. Nobody re-forms the range a second time from there meanwhile.
//
// Capability: Storage on a node: A range without a quorum is re-formed from its best survivor.
// Capability: Storage on a node: One range on a slow disk does not hold the others of its node.
func TestRecoveryHoldsItsRangeAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, id, fs, recovered := recovering(t)
		as := s.phase(id).Recovery()
		s.requireBlobsFollow(id)
		_, err := s.Recover(context.Background(), testRange, false, nil)
		require.ErrorIs(t, err, membership.ErrChanged)
		_, err = s.Recover(context.Background(), testRange, true, nil)
		require.ErrorContains(t, err, "re-forms the range already", "one that lost data would retire it")
		survey, err := s.Node(id).Survey(t.Context(), testRange)
		require.NoError(t, err)
		require.False(t, survey.Trusted)
		later, err := as.Next(id)
		require.NoError(t, err)
		require.ErrorContains(t, s.Node(id).Reform(t.Context(), testRange, survey, later, 0), "receives a snapshot")
		require.Empty(t, recovered)
		require.Equal(t, membership.Recovering, s.phase(id).Phase)
		fs.open()
		require.NoError(t, <-recovered)
		s.same()
		s.requireRows(0, 40, "a")
		require.Equal(t, as, s.Leader(testRange).Machine.Members().Recovery())
	})
}

// The operator of a recovery that a later one retires meanwhile gets an error.
//
// Capability: Storage on a node: A range without a quorum is re-formed from its best survivor.
func TestRecoveryThatIsRetired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, id, fs, recovered := recovering(t)
		later, err := s.phase(id).Recovery().Next(id%3 + 1)
		require.NoError(t, err)
		s.Node(id).Receive([]Envelope{{From: id%3 + 1, Range: testRange, Report: membership.RecoveryReport{Recovery: later}}})
		require.Eventually(t, func() bool { return s.phase(id).Phase == membership.Lost }, 3*electionWait, time.Millisecond)
		fs.open()
		err = <-recovered
		require.ErrorIs(t, err, membership.ErrChanged)
		require.ErrorContains(t, err, "has retired it")
	})
}
