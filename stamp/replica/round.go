package replica

import (
	"encoding/binary"
	"slices"
	"time"

	"antipode/geo"
)

// round is a question of a follower to the leader: up to which index is everything that was
// acknowledged before the question (R5)? The leader answers after a quorum confirmed that it
// still leads.
type round struct {
	// context names the round: the replica, when the round began, and a random number. Answers
	// to other rounds, such as those of an earlier life of this node, are ignored.
	context  []byte
	began    time.Duration
	answered bool
	index    uint64
}

// roundLen is the length of a round's context. A leader's own context, for its lease, is
// shorter: see ReadIndex.
const roundLen = 24

// roundTicks is how many ticks a follower waits for the answer of a round before it begins
// another one: question or answer were lost.
const roundTicks = 3

// MayFollow reports whether the replica may serve reads as a follower: it is a voter, is
// trusted, and knows a leader. A learner may not, nor a replica that is being rebuilt or that
// knows that it was removed.
func (r *Replica) MayFollow() bool {
	if r.lost != nil || r.IsLeader() {
		return false
	}
	own, ok := r.members.Of(r.o.ID)
	return ok && !own.Learner && r.rn.BasicStatus().Lead != 0
}

// Ask begins a round in place of the one before. MayFollow must hold.
func (r *Replica) Ask(now time.Duration) {
	context := binary.LittleEndian.AppendUint64(make([]byte, 0, roundLen), uint64(r.o.ID))
	context = binary.LittleEndian.AppendUint64(context, uint64(now))
	context = binary.LittleEndian.AppendUint64(context, r.o.Rand.Uint64())
	r.round = round{context: context, began: now}
	r.rn.ReadIndex(context)
}

// Asked returns the leader's answer to the round that Ask began, once answered. late: there is
// no answer after roundTicks, so question or answer may be lost: ask again.
func (r *Replica) Asked(now time.Duration) (index uint64, answered, late bool) {
	return r.round.index, r.round.answered, !r.round.answered && now-r.round.began >= roundTicks*r.o.Tick
}

// receiveIndex takes the leader's answer to a round.
func (r *Replica) receiveIndex(context []byte, index uint64) {
	if len(context) == roundLen && slices.Equal(context, r.round.context) {
		r.round.answered, r.round.index = true, index
	}
}

// answersIndex reports whether this replica may answer the question of another: this one
// leads, and the other is a voter. A replica that was removed and does not know it gets no
// answer.
func (r *Replica) answersIndex(from geo.ReplicaID) bool {
	asker, ok := r.members.Of(from)
	return ok && !asker.Learner && r.IsLeader()
}
