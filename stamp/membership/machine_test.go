package membership

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/replica"
)

var three = []geo.NodeID{1, 2, 3}

// machine is that of node 1 of three, whose replica is in a phase.
func machine(p Phase, id geo.ReplicaID) *Machine {
	d := NewIdentity(1, 7, false, replica.Members{})
	d.Phase, d.Replica = p, id
	return New(Options{Node: 1, Range: 4, Nodes: three, Placement: 5, Rebuilds: true, Life: 70}, *d)
}

// knowsLast is that of a replica which has learned in this life which id was given last.
func knowsLast(p Phase, id geo.ReplicaID) *Machine {
	m := machine(p, id)
	m.lastKnown = true
	return m
}

func saved(p Phase, id geo.ReplicaID) SaveIdentity {
	return SaveIdentity{Identity{Phase: p, Replica: id, Nonce: 7, Peers: map[geo.NodeID]Nonce{}}}
}

// once is the recovery of the range from node 2.
func once(t *testing.T) replica.Recovery {
	r, err := replica.Recovery(0).Next(2)
	require.NoError(t, err)
	return r
}

// R4: a node presents an older copy of its folder, of before its replica became another one. Who knows the later one has it be
// lost under that id. What may not have begun yet shows nothing: a lost replica, or one that missed a recovery, is about to
// become it.
func TestR4OutdatedReplica(t *testing.T) {
	later := once(t).None() + 3
	for name, c := range map[string]struct {
		phase Phase
		mark  LogMark
		lost  geo.ReplicaID
	}{
		"of an id":                      {Member, LogMark{Replica: 4}, 4},
		"of a mark":                     {Member, LogMark{Replica: 4, Index: 9, Term: 2}, 4},
		"of a mark after a recovery":    {Member, LogMark{Replica: later, Index: 9, Term: 2}, later},
		"lost, of a mark":               {Lost, LogMark{Replica: 4, Index: 9, Term: 2}, 4},
		"of an earlier one":             {Member, LogMark{Replica: 2}, 0},
		"lost, and to become it":        {Lost, LogMark{Replica: 4}, 0},
		"to become it after a recovery": {Member, LogMark{Replica: later}, 0},
		"the sender's own":              {Member, LogMark{Replica: 4, Index: 9, Term: 2, In: 2}, 0},
		"rebuilding":                    {Rebuilding, LogMark{Replica: 4, Index: 9, Term: 2}, 0},
		"forgotten":                     {Forgotten, LogMark{Replica: 4, Index: 9, Term: 2}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(c.phase, 3)
			out := m.Step(Received{2, c.mark})
			if c.lost == 0 {
				require.NotContains(t, fmt.Sprint(out), "set back")
				require.Equal(t, c.phase, m.Identity().Phase)
				require.EqualValues(t, 3, m.Identity().Replica)
				return
			}
			require.Equal(t, saved(Lost, c.lost), out[0])
			require.ErrorIs(t, out[1].(Lose).Reason, replica.ErrLost)
			require.Contains(t, out, Report{ReplicaLost, 1, c.lost, out[1].(Lose).Reason.Error()})
			require.Equal(t, Lost, m.Identity().Phase)
		})
	}
}

// Each transition of the diagram in the package text, and what a restart in it continues.
func TestTransitions(t *testing.T) {
	lost := errors.New("the log ends early")
	later := once(t)
	fromLeader := RaftMessage{From: 2, Sender: 2, Receiver: 4, FromLeader: true, Members: replica.FirstMembers(three), CanRebuild: true}
	recovering := saved(Recovering, later.None()+1)
	recovering.Identity.Floor = 9
	reforming := func() *Machine {
		m := machine(Recovering, later.None()+1)
		m.id.Floor = 9
		return m
	}
	retired := RaftMessage{From: 2, Sender: later.None() + 1, Receiver: later.None() + 2, Members: replica.FirstMembers(three)}
	for name, c := range map[string]struct {
		m    *Machine
		e    Event
		want []Effect
		to   Phase
		id   geo.ReplicaID
	}{
		"it joins when all have answered": {
			m: func() *Machine { m := machine(Joining, 1); m.id.Peers = map[geo.NodeID]Nonce{2: 8, 3: 9}; return m }(), e: Join{},
			want: []Effect{StartLog{}, SaveIdentity{Identity{Phase: Member, Replica: 1, Nonce: 7, Peers: map[geo.NodeID]Nonce{2: 8, 3: 9}}}, Reopen{}}, to: Member, id: 1,
		},
		"it asks until then": {
			m: machine(Joining, 1), e: Join{}, want: []Effect{Send{2, Hello{7, 5}}, Send{3, Hello{7, 5}}}, to: Joining, id: 1,
		},
		"a new folder of a range that exists forgot its id": {
			m: machine(Joining, 1), e: ReplicaFailed{lost}, to: Forgotten, id: 1,
			want: []Effect{saved(Forgotten, 1), Report{ReplicaLost, 1, 1, lost.Error()}},
		},
		"a member that lost something": {
			m: machine(Member, 1), e: ReplicaFailed{lost}, to: Lost, id: 1,
			want: []Effect{saved(Lost, 1), Report{ReplicaLost, 1, 1, lost.Error()}},
		},
		"it asks for its last id": {
			m: machine(Forgotten, 1), e: Manage{Lost: true, Due: true}, to: Forgotten, id: 1,
			want: []Effect{Send{2, LossReport{Nonce: 70}}, Send{3, LossReport{Nonce: 70}}},
		},
		"it learns its last id": {
			m: machine(Forgotten, 1), e: Received{2, LastID{Nonce: 70, Replica: 3}}, to: Lost, id: 3,
			want: []Effect{Report{ReplicaLost, 1, 3, "its folder is a new one; the leader reported the last id given"}, saved(Lost, 3)},
		},
		"another folder's answer is none": {
			m: machine(Forgotten, 1), e: Received{2, LastID{Nonce: 6, Replica: 3}}, to: Forgotten, id: 1,
		},
		"it is rebuilt under a new id": {
			m: knowsLast(Lost, 3), e: fromLeader, to: Rebuilding, id: 4,
			want: []Effect{Report{Kind: ReplicaRebuilding, Node: 1, Replica: 4}, saved(Rebuilding, 4), Wipe{}},
		},
		"its old data is gone": {
			m: knowsLast(Rebuilding, 4), e: Wiped{}, to: Member, id: 4, want: []Effect{StartLog{}, saved(Member, 4), Reopen{}},
		},
		"it is gone after a restart, and with it what it began since, if its folder was set back": {
			m: machine(Rebuilding, 4), e: Wiped{}, to: Lost, id: 4, want: []Effect{saved(Lost, 4), Reopen{errEarlierLife}},
		},
		"a forgotten one is not": {m: machine(Forgotten, 1), e: fromLeader, to: Forgotten, id: 1},
		"nor one without an id above its last one": {
			m: knowsLast(Lost, 4), e: fromLeader, to: Lost, id: 4,
		},
		"a restart goes on to rebuild": {m: machine(Rebuilding, 4), e: Opened{HardState: true, Lost: lost}, want: []Effect{Wipe{}}, to: Rebuilding, id: 4},
		"a restart remembers a loss": {
			m: machine(Lost, 3), e: Opened{HardState: true}, to: Lost, id: 3, want: nil,
		},
		"a later recovery retires it": {
			m: machine(Member, 1), e: retired, to: Lost, id: later.None(),
			want: nil,
		},
		"an operator re-forms the range from it": {
			m: machine(Lost, 1), e: Reform{As: later, Floor: 9}, to: Recovering, id: later.None() + 1,
			want: []Effect{recovering, Lose{fmt.Errorf("%w: %s", replica.ErrRetired, later)}, ReformState{As: later, Floor: 9}},
		},
		"the range is re-formed": {
			m: reforming(), e: Reformed{}, to: Member, id: later.None() + 1,
			want: []Effect{saved(Member, later.None()+1), ReportReformed{}, DropHeld{}, Reopen{}},
		},
		"a restart goes on to re-form": {
			m: reforming(), e: Opened{}, to: Recovering, id: later.None() + 1, want: []Effect{ReformState{As: later, Floor: 9}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.m.Step(c.e)
			if c.want != nil {
				require.Equal(t, c.want, got)
			}
			require.Equal(t, c.to, c.m.Identity().Phase)
			require.Equal(t, c.id, c.m.Identity().Replica)
		})
	}
}

// R4: a node removes the data of a lost replica, or re-forms the range from it, apart from its other ranges.
// Meanwhile nothing passes that replica, and the new id is not reported lost: the leader would remove it. A later
// recovery retires it, and what ends afterwards makes no member of it.
func TestWhileDataIsReplaced(t *testing.T) {
	first := once(t)
	next, err := first.Next(3)
	require.NoError(t, err)
	for ended, m := range map[Event]*Machine{
		Wiped{}: machine(Rebuilding, first.None()+1), Reformed{}: machine(Recovering, first.None()+1),
	} {
		phase, id := m.id.Phase, m.id.Replica
		require.Empty(t, m.Step(ReplicaFailed{errors.New("the old one")}), phase)
		require.Empty(t, m.Step(Manage{Lost: true, Due: true}), phase)
		require.Empty(t, m.Step(Join{Lost: true}), phase)
		for _, to := range []geo.ReplicaID{id, id + 1} {
			require.Empty(t, m.Step(RaftMessage{
				From: 2, Sender: first.None() + 2, Receiver: to, FromLeader: true, Members: replica.FirstMembers(three), CanRebuild: true,
			}), "%s, a message for %s", phase, number(to))
		}
		require.Equal(t, []Effect{Send{3, RecoveryReport{first}}}, m.Step(Received{3, RecoveryReport{}}), "the fence holds")
		require.False(t, m.Whole(replica.FirstMembers(three), nil), phase)
		require.Equal(t, phase, m.id.Phase)
		require.Equal(t, saved(Lost, next.None()), m.Step(Received{2, RecoveryReport{next}})[0], phase)
		require.Empty(t, m.Step(ended), phase)
		require.Equal(t, Lost, m.id.Phase)
	}
	require.Empty(t, machine(Lost, 1).Step(Wiped{}))
	require.Empty(t, machine(Member, 1).Step(Reformed{}))
}

// A restart of a member without its hard state, and of a lost replica, opens one that cannot be
// trusted.
func TestRestartOfALostReplica(t *testing.T) {
	for _, m := range []*Machine{machine(Lost, 1), machine(Forgotten, 1), machine(Member, 1)} {
		out := m.Step(Opened{})
		require.Len(t, out, 1)
		require.ErrorIs(t, out[0].(Reopen).Lost, replica.ErrLost)
	}
	require.Equal(t, []Effect{Reopen{}}, machine(Member, 1).Step(Opened{HardState: true}))
}

// R4: a folder set back to where its replica was lost, or to before a recovery of the range, does not know the ids that were
// begun since. Under none of them it is rebuilt: the leader says in each life, and after each recovery, which was given last.
func TestR4LostReplicaAsksForTheLastID(t *testing.T) {
	later := once(t)
	call := RaftMessage{From: 2, Sender: 2, Receiver: 4, FromLeader: true, Members: replica.FirstMembers(three), CanRebuild: true}
	m := machine(Lost, 1)
	require.Empty(t, m.Step(call), "it may have begun 4")
	due := Manage{Lost: true, Due: true}
	asks := []Effect{Send{2, LossReport{Nonce: 70}}, Send{3, LossReport{Nonce: 70}}}
	reports := func(id geo.ReplicaID) []Effect {
		return []Effect{Send{2, LossReport{Replica: id}}, Send{3, LossReport{Replica: id}}}
	}
	require.Equal(t, append(asks, reports(1)...), m.Step(due))
	require.Empty(t, m.Step(Received{2, LastID{Nonce: 7, Replica: 4}}), "the answer to another life")
	require.Equal(t, []Effect{saved(Lost, 4)}, m.Step(Received{2, LastID{Nonce: 70, Replica: 4}}))
	require.Equal(t, reports(4), m.Step(due))
	require.Empty(t, m.Step(call))
	require.Empty(t, m.Step(Received{2, LastID{Nonce: 70, Replica: 9}}), "a late answer")
	call.Receiver = 5
	require.Contains(t, m.Step(call), Effect(saved(Rebuilding, 5)))

	m = machine(Lost, 3)
	require.Empty(t, m.Step(Received{2, LastID{Nonce: 70, Replica: 3}}), "it knows that")
	require.Equal(t, reports(3), m.Step(due))

	// The range was recovered meanwhile, and the folder is one of before.
	first := later.None() + 1
	m = machine(Member, 1)
	m.Step(Received{2, RecoveryReport{later}})
	require.Empty(t, m.Step(RaftMessage{From: 2, Sender: first, Receiver: first + 1, FromLeader: true, Members: replica.FirstMembers(three), CanRebuild: true}))
	require.Empty(t, m.Step(Received{3, LastID{Nonce: 70, Replica: 3}}), "of a leader of before the recovery")
	require.False(t, m.lastKnown)
	require.Equal(t, []Effect{saved(Lost, first+1)}, m.Step(Received{2, LastID{Nonce: 70, Replica: first + 1}}))
}

// The fence of a recovery: a message of an earlier one is dropped and answered, one of a later
// one retires the replica before anything else.
func TestFence(t *testing.T) {
	later := once(t)
	m := machine(Member, later.None()+2)
	old := RaftMessage{From: 3, Sender: 3, Receiver: later.None() + 2, Members: later.Members()}
	require.Equal(t, []Effect{Send{3, RecoveryReport{later}}}, m.Step(old))

	m = machine(Member, 1)
	out := m.Step(Received{2, RecoveryReport{later}})
	require.Equal(t, saved(Lost, later.None()), out[0])
	require.ErrorIs(t, out[1].(Lose).Reason, replica.ErrRetired)
	require.Empty(t, m.Step(RaftMessage{From: 3, Sender: later.None() + 3, Receiver: 1, Members: replica.FirstMembers(three)}), "its old id is not delivered to")
}

// The leader makes one change at a time, and only those that its quorum can commit.
func TestNextChange(t *testing.T) {
	members := func(list ...replica.Member) replica.Members { return replica.Members{Next: 9, List: list} }
	voters := members(replica.Member{ID: 1, Node: 1}, replica.Member{ID: 2, Node: 2}, replica.Member{ID: 3, Node: 3})
	learner := members(replica.Member{ID: 1, Node: 1}, replica.Member{ID: 2, Node: 2}, replica.Member{ID: 4, Node: 3, Learner: true})
	for name, c := range map[string]struct {
		e        Manage
		reported geo.ReplicaID // of node 3
		want     Effect
	}{
		"all are there":                          {e: Manage{Members: voters, InSync: 3}},
		"a lost one is removed":                  {e: Manage{Members: voters, InSync: 2}, reported: 3, want: RemoveReplica{3}},
		"an earlier loss is not of the new one":  {e: Manage{Members: learner, InSync: 2}, reported: 3},
		"a removed one is added as a learner":    {e: Manage{Members: members(voters.List[:2]...), InSync: 2}, reported: 3, want: AddLearner{3}},
		"a learner that caught up is promoted":   {e: Manage{Members: learner, InSync: 2, Learners: []Progress{{4, 950, 1000}}}, want: Promote{4}},
		"one that is behind is not":              {e: Manage{Members: learner, InSync: 2, Learners: []Progress{{4, 900, 1000}}}},
		"nor one that has nothing":               {e: Manage{Members: learner, InSync: 2, Learners: []Progress{{4, 0, 10}}}},
		"alone of three it changes nothing":      {e: Manage{Members: voters, InSync: 1}, reported: 3},
		"the survivor of a recovery adds others": {e: Manage{Members: members(voters.List[0]), InSync: 1}, want: AddLearner{2}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(Member, 1)
			m.led = true
			if c.reported != 0 {
				require.Empty(t, m.Step(Received{3, LossReport{Replica: c.reported}}))
			}
			c.e.Due, c.e.Leads, c.e.HasLeader, c.e.Replica = true, true, true, 1
			var want []Effect
			if c.want != nil {
				want = []Effect{c.want}
			}
			require.Equal(t, want, m.Step(c.e))
			c.e.Leads = false
			require.Empty(t, m.Step(c.e), "a follower proposes nothing")
		})
	}
}

// A node sends in the name of its own replicas alone, what nodes claim is bounded, and a refusal
// is reported once.
func TestClaimsAreBounded(t *testing.T) {
	m := machine(Member, 1)
	members := replica.FirstMembers(three)
	send := func(by geo.NodeID, r geo.ReplicaID) []Effect {
		return m.Step(RaftMessage{From: by, Sender: r, Receiver: 1, Members: members})
	}
	require.Equal(t, []Effect{Deliver{}}, send(2, 2))
	require.IsType(t, Refused{}, send(3, 2)[0])
	require.Empty(t, send(3, 2))
	for r := range geo.ReplicaID(10 * claimsMax) {
		send(2, 100+r)
	}
	require.Len(t, m.claims, claimsMax)
	require.EqualValues(t, 2, m.NodeOf(members, 100))
	require.Empty(t, send(3, 100))
	require.Empty(t, send(2, 5000))
}

// If two nodes report to lead a range, the one of the higher term does, unless it is silent: after
// a recovery with loss terms begin again with the survivor's term.
func TestHints(t *testing.T) {
	h := Hints{Timeout: time.Second}
	h.Observe(9, 2, 7, 0)
	require.EqualValues(t, 2, h.Leader(9, time.Second))
	h.Observe(9, 3, 6, time.Second)
	require.EqualValues(t, 2, h.Leader(9, time.Second), "it does not know its successor yet")
	require.Zero(t, h.Leader(9, 2*time.Second))
	h.Observe(9, 3, 5, 2*time.Second)
	require.EqualValues(t, 3, h.Leader(9, 2*time.Second), "the survivor of a recovery")
}
