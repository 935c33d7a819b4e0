package membership

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/feature"
	"antipode/stamp/replica"
)

// voters are the replicas of three nodes, of which node 3 may have another one.
func voters(third replica.Member) replica.Members {
	m := replica.FirstMembers([]geo.NodeID{1, 2})
	m.List, m.Next = append(m.List, third), third.ID+1
	return m
}

// A replica here is whole if it is a voter under the very id that the configuration has, and lost nothing. A damaged store
// that was set aside is removed only then, and only while the others are whole too, and reachable: it may be the last copy.
func TestWhole(t *testing.T) {
	first := replica.FirstMembers(three)
	whole := machine(Member, 1)
	require.True(t, whole.Whole(first, nil))
	require.False(t, whole.Whole(first, errors.New("lost")))
	require.False(t, machine(Member, 4).Whole(first, nil), "under another id")
	require.False(t, machine(Rebuilding, 1).Whole(first, nil))
	require.False(t, whole.Whole(replica.Members{List: first.List[1:], Next: 4}, nil), "it was removed")
	learner := replica.FirstMembers(three)
	learner.List[0].Learner = true
	require.False(t, whole.Whole(learner, nil))

	all := func(geo.NodeID) bool { return true }
	require.True(t, whole.OthersWhole(first, all))
	require.False(t, whole.OthersWhole(first, func(n geo.NodeID) bool { return n != 3 }), "one is silent")
	require.False(t, whole.OthersWhole(voters(replica.Member{ID: 4, Node: 3, Learner: true}), all))
	require.False(t, whole.OthersWhole(replica.FirstMembers([]geo.NodeID{1, 2}), all))
	whole.Step(Received{3, LossReport{Replica: 3}})
	require.False(t, whole.OthersWhole(first, all), "it reports a loss")
	require.True(t, whole.OthersWhole(voters(replica.Member{ID: 4, Node: 3}), all), "of the replica before")
}

// Only a member without a leader asks for a later recovery: another one has no replica that could be retired.
func TestWhoAsksForARecovery(t *testing.T) {
	for p, asks := range map[Phase]bool{Member: true, Joining: false} {
		require.Equal(t, asks, len(machine(p, 1).Step(Manage{Members: replica.FirstMembers(three)})) > 0, "%s", p)
	}
}

// A loss report is about the id that it names, and all before it, of one recovery: not about a later replica of that node. A
// leader never removes itself for a report.
func TestWhatALossReportCovers(t *testing.T) {
	later := once(t)
	for name, c := range map[string]struct {
		reported, is geo.ReplicaID
		covers       bool
	}{
		"that one": {3, 3, true}, "one before": {5, 4, true}, "one since": {3, 4, false},
		"of an earlier recovery": {later.None() + 3, 3, false}, "of a later one": {3, later.None() + 3, false},
	} {
		require.Equal(t, c.covers, coversLoss(c.reported, c.is), name)
		m := machine(Member, 1)
		m.reported[3] = c.reported
		e := Manage{Due: true, Leads: true, HasLeader: true, Replica: 1, InSync: 2, Members: voters(replica.Member{ID: c.is, Node: 3})}
		require.Equal(t, c.covers, m.nextChange(e) == Effect(RemoveReplica{c.is}), name)
	}
	m := machine(Member, 1)
	m.reported[1] = 1
	require.Nil(t, m.nextChange(Manage{Members: replica.FirstMembers(three)}))
}

// Messages from no other node, or from one that has no replica of the range, are dropped; a Hello is answered even to a node
// with another configuration.
func TestWhoseMessagesAreTaken(t *testing.T) {
	for _, from := range []geo.NodeID{1, 9} {
		m := machine(Member, 1)
		require.IsType(t, Refused{}, m.Step(Received{from, LossReport{Replica: 3}})[0])
		require.Empty(t, m.reported)
		require.Empty(t, m.Step(Received{from, LossReport{Replica: 3}}), "reported once")
		raft := RaftMessage{From: from, Sender: 2, Receiver: 1, Members: replica.FirstMembers(three)}
		require.Equal(t, []Effect{Refused{from, "its sender has no replica of the range"}}, machine(Member, 1).Step(raft))
	}
	for _, from := range []geo.NodeID{0, 1} {
		require.IsType(t, Refused{}, machine(Member, 1).Step(Received{from, Hello{Nonce: 9, Placement: 5}})[0])
	}
	answer := HelloAnswer{Asked: 9, Nonce: 7, Known: true}
	require.Equal(t, []Effect{Send{9, answer}}, machine(Member, 1).Step(Received{9, Hello{Nonce: 9, Placement: 5}}))
	require.Equal(t, []Effect{Send{2, answer}}, machine(Member, 1).Step(Received{2, Hello{Nonce: 9}}), "of a version without placements")
	require.Len(t, machine(Member, 1).Step(Received{2, Hello{Nonce: 9, Placement: 6}}), 2, "of another placement")
}

// An answer to a Hello counts while the node joins, and if it is to its own folder: one that was lost since had another nonce.
func TestWhichHelloAnswersCount(t *testing.T) {
	m := machine(Joining, 1)
	m.Step(Received{2, HelloAnswer{Asked: 6, Nonce: 8}})
	require.Empty(t, m.id.Peers, "to the folder before")
	m.Step(Received{2, HelloAnswer{Asked: 7, Nonce: 8}})
	require.Equal(t, map[geo.NodeID]Nonce{2: 8}, m.id.Peers)
	m = machine(Member, 1)
	require.Empty(t, m.Step(Received{2, HelloAnswer{Asked: 7, Nonce: 8, Known: true}}))
	require.Empty(t, m.id.Peers)
}

// All nodes of a stamp write down the same nonces, also if the folder of one was replaced while they joined, so that one
// asks it again: else they would be of two stamps, and refuse each other.
func TestFolderReplacedWhileTheStampIsMade(t *testing.T) {
	m := machine(Joining, 1)
	m.Step(Received{2, HelloAnswer{Asked: 7, Nonce: 8}})
	m.Step(Received{3, HelloAnswer{Asked: 7, Nonce: 9}})
	m.Step(Received{2, Hello{Nonce: 8, Placement: 5}})
	require.Equal(t, map[geo.NodeID]Nonce{2: 8, 3: 9}, m.id.Peers)
	require.Equal(t, []Effect{Send{2, HelloAnswer{Asked: 18, Nonce: 7}}}, m.Step(Received{2, Hello{Nonce: 18, Placement: 5}}))
	require.Equal(t, []Effect{Send{2, Hello{Nonce: 7, Placement: 5}}}, m.Step(Join{}))
	m.Step(Received{2, HelloAnswer{Asked: 7, Nonce: 18}})
	require.Equal(t, map[geo.NodeID]Nonce{2: 18, 3: 9}, m.id.Peers)
	m.Step(Join{})
	require.Equal(t, Member, m.id.Phase)
	require.Equal(t, []Effect{Send{2, HelloAnswer{Asked: 28, Nonce: 7, Known: true}}}, m.Step(Received{2, Hello{Nonce: 28, Placement: 5}}))
	require.Equal(t, Nonce(18), m.id.Peers[2], "it has begun with that one")
}

// A lost replica begins again under a later id only when a leader speaks to that, and while its data may be removed. Until then,
// and while it is lost, it takes part in nothing.
func TestWhenAReplicaIsRebuilt(t *testing.T) {
	call := RaftMessage{From: 2, Sender: 2, Receiver: 4, FromLeader: true, Members: replica.FirstMembers(three), CanRebuild: true}
	require.NotEmpty(t, knowsLast(Lost, 3).Step(call))
	for name, change := range map[string]func(*RaftMessage){
		"no leader speaks":   func(e *RaftMessage) { e.FromLeader = false },
		"its data is in use": func(e *RaftMessage) { e.CanRebuild = false },
		"to its own id":      func(e *RaftMessage) { e.Receiver = 3 },
		"to an id before":    func(e *RaftMessage) { e.Receiver = 2 },
	} {
		e := call
		change(&e)
		require.Empty(t, knowsLast(Lost, 3).Step(e), name)
	}
	require.Empty(t, machine(Forgotten, 3).Step(call), "it does not know which id is later")
	require.Empty(t, machine(Member, 3).Step(call), "it is not lost")
	call.Receiver = 3
	require.Equal(t, []Effect{Deliver{}}, machine(Member, 3).Step(call))
	require.Empty(t, machine(Joining, 3).Step(call))
}

// After a recovery, a node's former knowledge of the replicas of a range no longer counts: who sent in whose name,
// and who reported a loss. A node that forgot its id stays so, whatever recovery it learns of.
func TestRecoveryForgetsTheGroup(t *testing.T) {
	later := once(t)
	m := machine(Member, 1)
	m.reported[3], m.claims[5], m.members = 3, 2, &replica.Members{}
	out := m.Step(Received{2, RecoveryReport{later}})
	require.Contains(t, out, Effect(DropHeld{}))
	require.Empty(t, m.reported)
	require.Empty(t, m.claims)
	require.Nil(t, m.members)
	require.Equal(t, later.None(), m.id.Replica)
	m = machine(Forgotten, 1)
	require.Empty(t, m.Step(Received{2, RecoveryReport{later}}))
	require.Equal(t, Forgotten, m.id.Phase)
}

// A node sends in the name of the replica that the configuration has there; of one that was removed nobody does, and of one that
// is not known yet the first node of the range that does.
func TestWhoSendsForAReplica(t *testing.T) {
	m := voters(replica.Member{ID: 5, Node: 3})
	require.NoError(t, CheckSender(m, three, 5, 3))
	for name, c := range map[string]struct {
		r  geo.ReplicaID
		by geo.NodeID
	}{"of another node": {5, 2}, "removed": {3, 3}, "no node of the range": {6, 9}} {
		require.ErrorIs(t, CheckSender(m, three, c.r, c.by), ErrSender, name)
	}
}

// An identity with a phase that this version does not know is refused. A folder from before there were identities is that of the
// replica that the configuration in its state has on the node.
func TestIdentityIsKnown(t *testing.T) {
	d := Identity{Phase: Forgotten, Replica: 3, Nonce: 7}
	_, err := parseIdentity(d.encode(nil))
	require.NoError(t, err)
	for p, want := range map[Phase]error{0: ErrIdentity, Forgotten + 1: feature.ErrLater} {
		d.Phase = p
		_, err := parseIdentity(d.encode(nil))
		require.ErrorIs(t, err, want)
	}
	members := voters(replica.Member{ID: 7, Node: 3})
	require.EqualValues(t, 7, NewIdentity(3, 1, true, members).Replica)
	require.EqualValues(t, 3, NewIdentity(3, 1, false, members).Replica, "a new folder")
	require.EqualValues(t, 4, NewIdentity(4, 1, true, members).Replica)
}
