package replica

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// applying is a state machine that keeps the indexes that it applied.
type applying struct {
	plain
	indexes []uint64
}

func (m *applying) Apply(entries []*pb.Entry) error {
	for _, e := range entries {
		m.indexes = append(m.indexes, e.GetIndex())
	}
	return nil
}

// pressedLone is a replica whose log and state end at index 5 of term 3, and whose state store is pressed while pressed is set.
type pressedLone struct {
	*lone
	m       *applying
	taken   taken
	pressed bool
}

func newPressedLone(t *testing.T) *pressedLone {
	l := &pressedLone{m: &applying{plain: plain{FirstMembers([]geo.NodeID{1, 2, 3})}}, pressed: true}
	l.lone = newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), func(o *Options) {
		o.Applied, o.Machine, o.Snapshots = 5, l.m, &l.taken
		o.Pressed = func() bool { return l.pressed }
	})
	return l
}

// append has the leader send the next entries, of a size, and name a commit.
func (l *pressedLone) append(entries, size int, commit uint64) {
	l.t.Helper()
	last, err := l.rlog.LastIndex()
	require.NoError(l.t, err)
	m := message(pb.MsgApp, 2, 3, last)
	m.Commit = &commit
	for range entries {
		last++
		index, term := last, uint64(3)
		m.Entries = append(m.Entries, &pb.Entry{Index: &index, Term: &term, Data: make([]byte, size)})
	}
	l.sent = nil
	l.step(m)
}

// While the state store is pressed a replica persists and acknowledges entries, answers heartbeats, and applies nothing.
// It has nothing ready, so that its node waits. Then it applies everything, in order.
func TestPressedReplicaAppliesLater(t *testing.T) {
	l := newPressedLone(t)
	l.append(2, 10, 6)
	require.True(t, l.said(pb.MsgAppResp))
	l.append(2, 10, 8)
	require.True(t, l.said(pb.MsgAppResp))
	require.True(t, l.Lost() == nil && !l.HasReady())
	beat, nine := message(pb.MsgHeartbeat, 2, 3, 0), uint64(9)
	beat.Commit = &nine
	l.step(beat)
	require.True(t, l.said(pb.MsgHeartbeatResp))
	last, err := l.rlog.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 9, last)
	require.Empty(t, l.m.indexes)
	require.EqualValues(t, 5, l.Applied())
	l.pressed = false
	require.True(t, l.HasReady())
	l.work()
	require.Equal(t, []uint64{6, 7, 8, 9}, l.m.indexes)
	require.EqualValues(t, 9, l.Applied())
	require.False(t, l.HasReady())
}

// If the store is pressed in the middle of a pass, or eased in one, what is later in the log does not pass what waits.
func TestWhatWaitsIsAppliedFirst(t *testing.T) {
	l := newPressedLone(t)
	asked := 0
	l.append(1, 10, 6)
	l.Replica.o.Pressed = func() bool { // It is eased in the pass in which both are to be applied.
		asked++
		return asked <= 2
	}
	l.append(1, 10, 7)
	l.work()
	require.Greater(t, asked, 2)
	require.Equal(t, []uint64{6, 7}, l.m.indexes)
}

// What waits to be applied holds no more memory than Raft gives out, and no more of the log than its bound: then no entries
// are taken, while heartbeats are answered. Once it is applied the replica takes entries again.
func TestUnappliedIsBounded(t *testing.T) {
	l := newPressedLone(t)
	held := func() (bytes int) {
		for _, m := range l.unapplied.messages {
			for _, e := range m.GetEntries() {
				bytes += len(e.GetData())
			}
		}
		return bytes
	}
	const size = 3 << 20
	last := func() uint64 {
		index, err := l.rlog.LastIndex()
		require.NoError(t, err)
		return index
	}
	for i := 0; ; i++ {
		before := last()
		l.append(1, size, before+1)
		require.LessOrEqual(t, held(), 4<<20+size)
		if last() == before {
			break
		}
		require.Less(t, i, unappliedBytesMax/size+2)
	}
	require.False(t, l.said(pb.MsgAppResp))
	require.GreaterOrEqual(t, int(last()-5)*size, unappliedBytesMax-size)
	require.NotZero(t, held())
	l.step(message(pb.MsgHeartbeat, 2, 3, 0))
	require.True(t, l.said(pb.MsgHeartbeatResp))
	l.pressed = false
	l.work()
	require.Equal(t, last(), l.Applied())
	l.append(1, size, last()+1)
	require.True(t, l.said(pb.MsgAppResp))
	require.Equal(t, last(), l.Applied())
}

// What the log held before does not count, whatever the size of its entries, nor does what comes twice, nor what was
// applied meanwhile.
func TestUnappliedCountsWhatCame(t *testing.T) {
	for _, before := range []int{100, 1 << 20} {
		l := newPressedLone(t)
		last := func() uint64 {
			index, err := l.rlog.LastIndex()
			require.NoError(t, err)
			return index
		}
		l.pressed = false
		for range 80 {
			l.append(1, before, last()+1)
		}
		l.pressed = true
		const size = 1 << 20
		took := func(want int) {
			t.Helper()
			got := 0
			for ; ; got++ {
				from := last()
				if l.append(1, size, from+1); last() == from {
					break
				}
				require.LessOrEqual(t, got, want)
			}
			require.Equal(t, want, got)
		}
		took(unappliedBytesMax/size + 1) // The first finds nothing that waits.
		l.pressed = false
		l.work()
		require.Equal(t, last(), l.Applied())
		require.Zero(t, l.unapplied.bytes)
		l.pressed = true
		took(unappliedBytesMax/size + 1)
		require.EqualValues(t, unappliedBytesMax, l.unapplied.bytes)
		again := message(pb.MsgApp, 2, 3, last()-1)
		index, term := last(), uint64(3)
		again.Entries = []*pb.Entry{{Index: &index, Term: &term, Data: make([]byte, size)}}
		l.unapplied.bytes = 0
		l.step(again)
		require.Zero(t, l.unapplied.bytes, "it came before")
	}
}

// A snapshot replaces what waits to be applied: none of it is applied on top, and what follows the snapshot is.
func TestSnapshotReplacesWhatWaits(t *testing.T) {
	l := newPressedLone(t)
	l.append(1, 5<<20, 6) // As much as Raft gives out before it is applied.
	require.NotEmpty(t, l.unapplied.messages)
	l.Tick(l.now)
	require.NotZero(t, l.unapplied.ticks)
	l.pressed = false // At the very moment.
	m := message(pb.MsgSnap, 2, 3, 0)
	m.Snapshot = SnapshotOf(geo.EntryID{Term: 3, Index: 20}, FirstMembers([]geo.NodeID{1, 2, 3}))
	l.step(m)
	require.True(t, l.taken.installed)
	require.Empty(t, l.m.indexes)
	require.EqualValues(t, 20, l.Applied())
	l.Tick(l.now)
	require.Zero(t, l.unapplied.ticks)
	l.append(2, 10, 22)
	require.Equal(t, []uint64{21, 22}, l.m.indexes)
}

// A lost replica drops what waits.
func TestLostReplicaAppliesNothing(t *testing.T) {
	l := newPressedLone(t)
	l.append(1, 10, 6)
	l.Lose(ErrLost)
	l.pressed = false
	l.work()
	require.Empty(t, l.unapplied.messages)
	require.Empty(t, l.m.indexes)
}

// A leader that has applied nothing of what waits for some election timeouts is to leave, to one that is in sync; again only
// after as long. One that applies now and then is not, nor is one that does not lead.
func TestStalledLeader(t *testing.T) {
	l := newPressedLone(t)
	l.pressed = false
	l.lead()
	l.persist(2)
	require.True(t, l.MayEvaluate())
	wait := stalledElections * l.o.withDefaults().ElectionTicks
	propose := func() {
		require.NoError(t, l.Propose([]byte("x")))
		l.work()
		l.persist(2)
		l.persist(3)
	}
	ticks := func(n int) {
		for range n {
			l.now += l.o.withDefaults().Tick
			l.Tick(l.now)
			l.work()
			l.persist(2)
			l.persist(3)
		}
	}
	ticks(2 * wait)
	require.Nil(t, l.Stalled(), "nothing waits")
	l.pressed = true
	propose()
	require.True(t, l.Behind())
	ticks(wait - 1)
	require.Nil(t, l.Stalled())
	l.pressed = false
	l.work()
	require.False(t, l.Behind())
	l.pressed = true
	propose()
	ticks(wait - 1)
	require.Nil(t, l.Stalled(), "it has applied something")
	ticks(1)
	require.Equal(t, []geo.NodeID{1, 2, 3}, l.Stalled())
	require.Nil(t, l.Stalled())
	ticks(wait)
	require.NotNil(t, l.Stalled())

	f := newPressedLone(t)
	f.append(1, 10, 6)
	for range 2 * wait {
		f.now += f.o.withDefaults().Tick
		f.Tick(f.now)
	}
	require.Nil(t, f.Stalled(), "it follows")
	require.Equal(t, 2*wait, f.unapplied.ticks)
}
