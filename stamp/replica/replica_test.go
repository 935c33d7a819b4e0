package replica

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// plain is a state machine that keeps nothing but its configuration.
type plain struct{ members Members }

func (*plain) Apply([]*pb.Entry) error { return nil }
func (m *plain) Members() Members      { return m.members }

// lone is one replica of three, over a log in memory that it shares with none. The messages of the others are made up.
type lone struct {
	*Replica
	t     *testing.T
	log   state.Log
	rlog  state.RangeLog
	syncs []bool // of the commits
	sent  []*pb.Message
	o     Options
	now   time.Duration
}

const loneRange = geo.RangeID(4)

// watched is a log that records which commits were synced.
type watched struct {
	state.Log
	l *lone
}

type watchedBatch struct {
	state.LogBatch
	l *lone
}

func (w watched) NewBatch() state.LogBatch { return watchedBatch{w.Log.NewBatch(), w.l} }

func (w watchedBatch) Commit(sync bool) error {
	w.l.syncs = append(w.l.syncs, sync)
	return w.LogBatch.Commit(sync)
}

// newLone makes the replica 1 of a range whose log is given, up to an entry, with a hard state.
func newLone(t *testing.T, last geo.EntryID, hs *pb.HardState, change func(*Options)) *lone {
	t.Helper()
	log, err := seglog.Open("log", state.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	rlog, err := log.Range(loneRange, nil)
	require.NoError(t, err)
	l := &lone{t: t, log: log, rlog: rlog, now: time.Hour}
	batch := log.NewBatch()
	var entries []*pb.Entry
	for index := uint64(1); index <= last.Index; index++ {
		entries = append(entries, &pb.Entry{Index: &index, Term: &last.Term})
	}
	require.NoError(t, errors.Join(rlog.Append(batch, entries), rlog.SetHardState(batch, hs), batch.Commit(true)))
	l.o = Options{
		Range: loneRange, Node: 1, ID: 1, Log: rlog, Machine: &plain{FirstMembers([]geo.NodeID{1, 2, 3})},
		Rand: rand.New(rand.NewPCG(1, 1)), Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&l.o)
	}
	l.Replica, err = Open(l.o, l.now)
	require.NoError(t, err)
	return l
}

func hard(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

// work does what is ready, and keeps what is sent.
func (l *lone) work() {
	l.t.Helper()
	for p := (&Pass{}); l.HasReady(); p.Reset() {
		l.Collect(p)
		require.NoError(l.t, p.Append(watched{l.log, l}))
		p.Apply(true)
		p.Apply(false)
		l.sent = append(l.sent, p.Sends...)
	}
}

// message is one of another replica.
func message(typ pb.MessageType, from, term, index uint64) *pb.Message {
	to, logTerm := uint64(1), term
	return &pb.Message{Type: &typ, From: &from, To: &to, Term: &term, Index: &index, LogTerm: &logTerm}
}

// step takes a message, and the replica works.
func (l *lone) step(m *pb.Message) {
	l.t.Helper()
	l.Step(m, l.now)
	l.work()
}

// said reports whether a message of a type was sent, and not a refusal.
func (l *lone) said(typ pb.MessageType) bool {
	for _, m := range l.sent {
		if m.GetType() == typ && !m.GetReject() {
			return true
		}
	}
	return false
}

// lead has the replica win an election.
func (l *lone) lead() {
	l.t.Helper()
	l.now += time.Hour // It is not quiet any more.
	require.NoError(l.t, l.rn.Campaign())
	l.work()
	_, term := l.Leader()
	for _, typ := range []pb.MessageType{pb.MsgPreVoteResp, pb.MsgVoteResp} {
		l.step(message(typ, 2, term+1, 0))
	}
	require.True(l.t, l.IsLeader())
}

// persist has another replica acknowledge all of the leader's log.
func (l *lone) persist(from uint64) {
	l.t.Helper()
	last, err := l.rlog.LastIndex()
	require.NoError(l.t, err)
	_, term := l.Leader()
	l.step(message(pb.MsgAppResp, from, term, last))
}

// R4: a replica whose log ends below what it knows to be committed, or has applied, or begins behind it, is lost.
func TestOpenFindsALostLog(t *testing.T) {
	last := geo.EntryID{Term: 3, Index: 5}
	for name, c := range map[string]struct {
		hs      *pb.HardState
		applied uint64
		lost    bool
	}{
		"whole":                      {hard(3, 0, 5), 5, false},
		"nothing applied":            {hard(3, 0, 5), 0, false},
		"committed behind its end":   {hard(3, 0, 6), 5, true},
		"applied behind its end":     {hard(3, 0, 5), 6, true},
		"neither but one of another": {hard(4, 2, 0), 0, false},
	} {
		l := newLone(t, last, c.hs, func(o *Options) { o.Applied = c.applied })
		require.Equal(t, c.lost, errors.Is(l.Lost(), ErrLost), name)
	}
	l := newLone(t, last, hard(3, 0, 5), nil)
	batch := l.log.NewBatch()
	require.NoError(t, errors.Join(l.rlog.Trim(batch, 3), batch.Commit(true)))
	for applied, lost := range map[uint64]bool{2: true, 3: false, 5: false} {
		l.o.Applied = applied
		r, err := Open(l.o, 0)
		require.NoError(t, err)
		require.Equal(t, lost, errors.Is(r.Lost(), ErrLost), "applied %d", applied)
	}
}

// R4: what was applied was committed, also if the log was not synced with that commit index: Raft begins with it, or would
// panic.
func TestAppliedWasCommitted(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 2, 2), func(o *Options) { o.Applied = 4 })
	require.NoError(t, l.Lost())
	hs := l.rn.BasicStatus().HardState
	require.EqualValues(t, 4, hs.GetCommit())
	require.EqualValues(t, 2, hs.GetVote())
}

// R4: the commit of a leader's heartbeat is never above what this replica has acknowledged, so one above the end of its log
// shows that it lost entries.
func TestHeartbeatShowsALostLog(t *testing.T) {
	for commit, lost := range map[uint64]bool{5: false, 6: true} {
		l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), nil)
		m := message(pb.MsgHeartbeat, 2, 3, 0)
		m.Commit = &commit
		l.step(m)
		require.Equal(t, lost, errors.Is(l.Lost(), ErrLost), "commit %d", commit)
	}
}

// R5: only a replica that never voted, and holds nothing, has promised nothing: it need not be quiet after its start. It is
// not one any more once it was asked for its vote, or a leader spoke to it; a question whether it would vote changes nothing.
func TestFresh(t *testing.T) {
	none := geo.EntryID{}
	require.False(t, newLone(t, none, hard(FirstTerm, 0, 0), nil).quiet(time.Hour))
	require.True(t, newLone(t, none, hard(FirstTerm, 2, 0), nil).quiet(time.Hour), "it voted")
	require.True(t, newLone(t, none, hard(FirstTerm+1, 0, 0), nil).quiet(time.Hour), "it knows a later term")
	require.True(t, newLone(t, geo.EntryID{Term: 1, Index: 1}, hard(FirstTerm, 0, 0), nil).quiet(time.Hour), "it has an entry")
	for typ, still := range map[pb.MessageType]bool{pb.MsgPreVote: true, pb.MsgVote: false, pb.MsgHeartbeat: false} {
		l := newLone(t, none, hard(FirstTerm, 0, 0), nil)
		l.step(message(typ, 2, FirstTerm+1, 0))
		require.Equal(t, !still, l.quiet(l.now), "after %s", typ)
	}
}

// R5: a restarted replica neither votes nor stands for an election timeout, for no one that asks: a leader that transfers its
// leadership neither. One that leaves never stands.
func TestQuiet(t *testing.T) {
	last := geo.EntryID{Term: 3, Index: 5}
	open := func(leaving bool) *lone {
		l := newLone(t, last, hard(3, 0, 5), func(o *Options) {
			o.Leaving = func() bool { return leaving }
			o.Applied = 5
		})
		l.step(message(pb.MsgHeartbeat, 2, 3, 0))
		l.sent = nil
		return l
	}
	ask := func(l *lone, typ pb.MessageType, answer pb.MessageType) bool {
		m := message(typ, 3, 9, 9)
		if typ == pb.MsgTimeoutNow {
			m = message(typ, 2, 3, 0)
		}
		l.step(m)
		return l.said(answer)
	}
	for typ, answer := range map[pb.MessageType]pb.MessageType{
		pb.MsgVote: pb.MsgVoteResp, pb.MsgPreVote: pb.MsgPreVoteResp, pb.MsgTimeoutNow: pb.MsgVote,
	} {
		l := open(false)
		for range l.o.withDefaults().ElectionTicks { // Raft's own promise to the leader is over.
			l.rn.TickQuiesced()
		}
		timeout := time.Duration(l.o.withDefaults().ElectionTicks) * l.o.withDefaults().Tick
		l.now = time.Hour + timeout - 1
		require.False(t, ask(l, typ, answer), "%s in time", typ)
		l.now++
		require.True(t, ask(l, typ, answer), "%s after the timeout", typ)
	}
	l := open(true)
	l.now += time.Hour
	require.False(t, ask(l, pb.MsgTimeoutNow, pb.MsgVote), "it leaves")
}

// R5: only a leader answers the question of a follower, and only that of a voter: a learner may lack what was acknowledged,
// and a replica that was removed does not know what happens since.
func TestWhoseQuestionIsAnswered(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), func(o *Options) {
		o.Applied = 5
		m := o.Machine.(*plain)
		m.members.List = append(m.members.List, Member{ID: 5, Node: 4, Learner: true})
		m.members.Next = 6
	})
	require.False(t, l.answersIndex(2), "it does not lead")
	l.lead()
	require.True(t, l.answersIndex(2))
	require.False(t, l.answersIndex(4), "no member")
	require.False(t, l.answersIndex(5), "a learner")
	l.persist(2)
	l.sent = nil
	for from, answered := range map[uint64]bool{4: false, 5: false, 2: true} {
		_, term := l.Leader()
		m := message(pb.MsgReadIndex, from, term, 0)
		m.Entries = []*pb.Entry{{Data: make([]byte, roundLen)}}
		l.sent = nil
		l.step(m)
		require.Equal(t, answered, l.said(pb.MsgHeartbeat), "of %d", from)
	}
}

// R5: a follower may serve reads while it is a voter that knows a leader; an answer to another round than the last is none.
func TestMayFollow(t *testing.T) {
	open := func(learner bool) *lone {
		l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), func(o *Options) {
			o.Applied = 5
			o.Machine.(*plain).members.List[0].Learner = learner
		})
		require.False(t, l.MayFollow(), "it knows no leader")
		l.step(message(pb.MsgHeartbeat, 2, 3, 0))
		return l
	}
	require.False(t, open(true).MayFollow(), "a learner")
	l := open(false)
	require.True(t, l.MayFollow())
	l.Ask(l.now)
	first := l.round.context
	l.Ask(l.now)
	l.receiveIndex(first, 99)
	_, answered, _ := l.Asked(l.now)
	require.False(t, answered, "of the round before")
	l.receiveIndex(l.round.context, 7)
	index, answered, _ := l.Asked(l.now)
	require.True(t, answered)
	require.EqualValues(t, 7, index)
	l.o.Machine.(*plain).members.List = l.o.Machine.(*plain).members.List[1:]
	l.reconfigure()
	require.False(t, l.MayFollow(), "it was removed")
	l.lose(ErrLost)
	require.False(t, l.MayFollow(), "it is lost")
}

// R1: a leader evaluates once it has applied an entry of its own term, which needs a quorum.
func TestMayEvaluateInItsTerm(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), nil)
	l.work()
	require.EqualValues(t, 5, l.Applied(), "it has applied entries of another term")
	l.lead()
	require.False(t, l.MayEvaluate())
	l.persist(3)
	require.True(t, l.MayEvaluate())
}

// R4: nothing that a replica answers for leaves before the log is synced with it, a vote neither; what nobody waits for is
// not synced.
func TestAnswersWaitForTheSync(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), func(o *Options) { o.Applied = 5 })
	l.now += time.Hour
	synced := func(what string, m *pb.Message, answer pb.MessageType, want bool) {
		t.Helper()
		l.sent, l.syncs = nil, nil
		l.step(m)
		require.Equal(t, answer != pb.MsgHup, l.said(answer), what)
		require.Contains(t, append(l.syncs, !want), want, what)
		require.NotContains(t, l.syncs, !want, what)
	}
	synced("a vote", message(pb.MsgVote, 2, 9, 9), pb.MsgVoteResp, true)
	app := message(pb.MsgApp, 2, 9, 5)
	three, index, term := uint64(3), uint64(6), uint64(9)
	app.LogTerm, app.Entries = &three, []*pb.Entry{{Index: &index, Term: &term, Data: []byte("x")}}
	synced("entries", app, pb.MsgAppResp, true)
	beat := message(pb.MsgHeartbeat, 2, 9, 0)
	beat.Commit = &index
	synced("a commit", beat, pb.MsgHeartbeatResp, false)
}

// R5: a lease belongs to the term of its round. It is void in a term in which the replica asked another one to lead, also if
// a round that began before is answered since.
func TestLeaseIsOfItsTerm(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), func(o *Options) { o.Applied = 5 })
	answer := func() {
		for _, m := range l.sent {
			if m.GetType() == pb.MsgHeartbeat && len(m.GetContext()) > 0 && To(m) == 2 {
				_, term := l.Leader()
				resp := message(pb.MsgHeartbeatResp, 2, term, 0)
				resp.Context = m.GetContext()
				l.step(resp)
			}
		}
	}
	l.lead()
	l.ReadIndex(l.now)
	l.work()
	answer()
	require.Zero(t, l.Lease(), "it may not evaluate yet")
	l.persist(2)
	l.ReadIndex(l.now)
	l.work()
	answer()
	require.Equal(t, l.now+l.leaseLength(), l.Lease())
	begun, confirmed := l.Rounds()
	require.Equal(t, begun, confirmed)
	l.now += time.Millisecond
	l.sent = nil
	l.ReadIndex(l.now)
	l.ReadIndex(l.now + 1)
	again, _ := l.Rounds()
	require.Equal(t, begun+1, again, "one round at a time")
	l.work()
	require.NotZero(t, l.Transfer([]geo.NodeID{2, 3}))
	require.Zero(t, l.Lease())
	answer()
	require.Zero(t, l.Lease(), "for the rest of the term")
	require.True(t, l.LeaseVoid())
}

// R5: from before a commit is named to the followers until it is applied here the leader is behind what they may show.
func TestBehindUntilApplied(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), func(o *Options) { o.Applied = 5 })
	l.lead()
	l.persist(2)
	require.False(t, l.Behind())
	require.NoError(t, l.Propose([]byte("x")))
	l.work()
	require.False(t, l.Behind(), "it is not committed")
	last, err := l.rlog.LastIndex()
	require.NoError(t, err)
	_, term := l.Leader()
	l.Step(message(pb.MsgAppResp, 2, term, last), l.now)
	p := &Pass{}
	l.Collect(p)
	require.NotEmpty(t, p.Sends)
	require.True(t, l.Behind())
	p.Apply(true)
	require.False(t, l.Behind())
	require.Equal(t, last, l.Applied())
}

// A leader asks to lead in its place only a replica that is in sync, itself never: first one that has not just come in, since
// that may be quiet after a start, and of those the one that has most.
func TestHeir(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 5}, hard(3, 0, 5), nil)
	all := []geo.NodeID{1, 2, 3}
	require.Zero(t, l.Heir(all), "it does not lead")
	l.lead()
	two, three := &l.inSync.peers[1], &l.inSync.peers[2]
	l.inSync.decided = time.Hour
	two.match, three.match = 8, 9
	require.EqualValues(t, 3, l.Heir(all))
	require.EqualValues(t, 2, l.Heir([]geo.NodeID{1, 2}))
	require.Zero(t, l.Heir([]geo.NodeID{1}))
	three.since = time.Hour
	require.EqualValues(t, 2, l.Heir(all), "the other one has just come in")
	two.out = true
	require.EqualValues(t, 3, l.Heir(all), "the other one is out of sync")
	three.out = true
	require.Zero(t, l.Heir(all))
}

// taken is a snapshot that was staged.
type taken struct{ installed bool }

func (*taken) Offer() (*pb.Snapshot, error) { return nil, errors.New("it sends none") }
func (*taken) Begin(*pb.Snapshot) error     { return nil }
func (*taken) Ended() bool                  { return true }
func (*taken) Install(*pb.Snapshot) error   { return nil }
func (s *taken) Installed() error {
	s.installed = true
	return nil
}

// R4: a snapshot is in the log, synced, before it is reported or answered. Its last entry is what is applied, and the replica
// is none any more that has promised nothing.
func TestSnapshotIsSynced(t *testing.T) {
	s := &taken{}
	l := newLone(t, geo.EntryID{}, hard(FirstTerm, 0, 0), func(o *Options) { o.Snapshots = s })
	m := message(pb.MsgSnap, 2, 7, 0)
	m.Snapshot = SnapshotOf(geo.EntryID{Term: 6, Index: 20}, FirstMembers([]geo.NodeID{1, 2, 3}))
	l.step(m)
	require.True(t, s.installed)
	require.Equal(t, []bool{true}, l.syncs[:1])
	require.True(t, l.said(pb.MsgAppResp))
	require.EqualValues(t, 20, l.Applied())
	require.EqualValues(t, 6, l.appliedTerm)
	require.True(t, l.quiet(l.now))
	first, err := l.rlog.FirstIndex()
	require.NoError(t, err)
	require.EqualValues(t, 21, first)
}
