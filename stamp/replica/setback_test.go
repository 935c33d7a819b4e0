package replica

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// R4: the mark that peers remember is persisted and committed: neither what is in the log above the commit index, nor what
// is above the log, nor what a lost replica has.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
func TestR4Mark(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
	require.Equal(t, geo.EntryID{Term: 3, Index: 7}, l.Mark())
	batch := l.log.NewBatch()
	require.NoError(t, errors.Join(l.rlog.Trim(batch, 7), batch.Commit(true)))
	require.Equal(t, geo.EntryID{Term: 3, Index: 7}, l.Mark(), "the entry is trimmed, its term is known")
	l.Lose(ErrLost)
	require.Zero(t, l.Mark())
	require.Zero(t, newLone(t, geo.EntryID{}, hard(1, 0, 0), nil).Mark())
}

// R4: a replica is lost if a node remembers an entry of it that its log does not have: one beyond its end, or another one in
// that place. What it has, and what it has trimmed, proves nothing.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
func TestR4Recall(t *testing.T) {
	for _, c := range []struct {
		name string
		mark geo.EntryID
		lost bool
	}{
		{"has it", geo.EntryID{Term: 3, Index: 9}, false},
		{"beyond the end", geo.EntryID{Term: 3, Index: 10}, true},
		{"another entry", geo.EntryID{Term: 2, Index: 9}, true},
		{"trimmed", geo.EntryID{Term: 2, Index: 3}, false},
		{"nothing", geo.EntryID{}, false},
	} {
		l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
		batch := l.log.NewBatch()
		require.NoError(t, errors.Join(l.rlog.Trim(batch, 5), batch.Commit(true)))
		l.Recall(c.mark, 2)
		require.Equal(t, c.lost, errors.Is(l.Lost(), ErrLost), c.name)
	}
}

// R4: a leader that lacks a committed entry is lost, whether a node reports it or a follower answers with its commit index.
// A follower may lack it, and what the leader has appended and not persisted yet is not missing.
func TestR4LeaderLacksCommitted(t *testing.T) {
	lead := func() *lone {
		l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
		l.lead()
		return l
	}
	l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
	l.Prove(geo.EntryID{Term: 3, Index: 99}, 4, 2)
	require.NoError(t, l.Lost(), "a follower may be behind")

	l = lead()
	require.EqualValues(t, 10, l.end, "with the entry that begins its term")
	l.Prove(geo.EntryID{Term: 4, Index: 10}, 4, 2)
	require.NoError(t, l.Lost())
	l.Prove(geo.EntryID{Term: 3, Index: 11}, 5, 2)
	require.NoError(t, l.Lost(), "a later leader may have committed it, and this one was deposed")
	l.Prove(geo.EntryID{Term: 4, Index: 11}, 4, 2)
	require.ErrorIs(t, l.Lost(), ErrLost)

	l = lead()
	l.Prove(geo.EntryID{Term: 2, Index: 8}, 4, 2)
	require.ErrorIs(t, l.Lost(), ErrLost, "another entry was committed there")

	for _, c := range []struct {
		name        string
		term, index uint64
		reject      bool
		lost        bool
	}{
		{"at the end", 4, 10, false, false},
		{"beyond it", 4, 11, false, true},
		{"a refusal names what the leader sent", 4, 11, true, false},
		{"of a former term", 3, 11, false, false},
	} {
		l = lead()
		_, term := l.Leader()
		require.EqualValues(t, 4, term)
		m := message(pb.MsgAppResp, 2, c.term, c.index)
		m.Reject = &c.reject
		l.step(m)
		require.Equal(t, c.lost, errors.Is(l.Lost(), ErrLost), c.name)
	}

	l = lead()
	require.NoError(t, l.Propose([]byte("x")))
	p := &Pass{}
	l.Collect(p) // It is sent, and not persisted yet.
	l.Step(message(pb.MsgAppResp, 2, 4, 11), l.now)
	require.NoError(t, l.Lost())
	require.NoError(t, p.Append(l.log))
}

// R4: where the log ends is known from the start, and follows a snapshot: a leader lacks nothing that is in one.
func TestR4EndOfTheLog(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
	require.EqualValues(t, 9, l.end)
	index, term := uint64(20), uint64(3)
	snapshot := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: &index, Term: &term}}
	l.noteEnd(&pb.Message{Snapshot: snapshot})
	require.EqualValues(t, 20, l.end)
	after := uint64(21)
	l.noteEnd(&pb.Message{Snapshot: snapshot, Entries: []*pb.Entry{{Index: &after, Term: &term}}})
	require.EqualValues(t, 21, l.end)
	l.noteEnd(&pb.Message{})
	require.EqualValues(t, 21, l.end, "only the hard state")
}

// R4: while a snapshot replaces state and log, the log proves nothing: the replica reports no mark, and is not lost.
func TestR4MarkWhileInstalling(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
	l.lead()
	l.waits = []*pb.Message{{}}
	require.Zero(t, l.Mark())
	l.Recall(geo.EntryID{Term: 4, Index: 99}, 2)
	l.Prove(geo.EntryID{Term: 4, Index: 99}, 4, 2)
	require.NoError(t, l.Lost())
	l.waits = nil
	require.NotZero(t, l.Mark())
	l.Recall(geo.EntryID{Term: 4, Index: 99}, 2)
	require.ErrorIs(t, l.Lost(), ErrLost)
}
