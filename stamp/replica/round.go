package replica

import (
	"encoding/binary"
	"slices"
	"time"

	"antipode/geo"
)

// round is a follower's question to the leader which index holds everything that was
// acknowledged before it (R5). The leader answers after a quorum confirmed that it still
// leads.
type round struct {
	// context names the round: its replica, when it began, and a draw. An answer to
	// another one, such as one of an earlier life of this node, is none.
	context  []byte
	began    time.Duration
	answered bool
	index    uint64
}

// roundLen is the length of a round's context. A leader's own context, for its lease, is
// shorter: see ReadIndex.
const roundLen = 24

// roundTicks is after how many ticks without an answer a round begins again: question or
// answer were lost.
const roundTicks = 3

// MayFollow reports whether the replica may serve reads as a follower: it votes, is
// trusted, and knows a leader. A learner, one that is being rebuilt, and one that knows
// that it was removed may not.
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

// Asked returns the leader's answer to the round that Ask began, once it is there. late
// reports that it is not and that question or answer may be lost: ask again.
func (r *Replica) Asked(now time.Duration) (index uint64, answered, late bool) {
	return r.round.index, r.round.answered, !r.round.answered && now-r.round.began >= roundTicks*r.o.Tick
}

// receiveIndex takes the leader's answer to a round.
func (r *Replica) receiveIndex(context []byte, index uint64) {
	if len(context) == roundLen && slices.Equal(context, r.round.context) {
		r.round.answered, r.round.index = true, index
	}
}

// answersIndex reports whether this replica may answer the question of another: it leads,
// and that one votes. A removed replica that does not know it asks in vain.
func (r *Replica) answersIndex(from geo.ReplicaID) bool {
	asker, ok := r.members.Of(from)
	return ok && !asker.Learner && r.IsLeader()
}
