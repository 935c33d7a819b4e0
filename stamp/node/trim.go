package node

import "sort"

// pinFactor is how many times LogBytesMax a log may take while a peer is fed by a
// snapshot: what follows the snapshot must be there when the peer has it. Beyond, the peer
// gets another snapshot, whose payload it mostly has by then.
const pinFactor = 4

// overBudget reports whether the log of a range is longer than what it may keep for a
// peer that is behind.
func (r *hostedRange) overBudget() bool {
	return r.n.o.takesSnapshots() && r.log.Bytes() > r.n.o.LogBytesMax
}

// trimTo is up to which index the log of a range is trimmed: least, which no replica
// needs any more, or beyond it what exceeds the budget. It is never above own, the index
// from which this node recovers. over says that it is the budget that asks.
func (r *hostedRange) trimTo(least, own uint64) (index uint64, over bool) {
	if !r.overBudget() {
		return least, false
	}
	if least >= own {
		return own, true
	}
	n, log := r.n, r.log
	limit := own
	if pin, ok := n.snapshots.Pin(r.ID(), n.o.Clock.Mono()); ok && log.Bytes() <= pinFactor*n.o.LogBytesMax {
		limit = max(least, min(own, pin))
	}
	// A quarter more than it must, so that not every tick writes a tombstone.
	excess := log.Bytes() - n.o.LogBytesMax/4*3
	index = least + uint64(sort.Search(int(limit-least), func(i int) bool {
		_, bytes := log.UpTo(least + uint64(i))
		return bytes >= excess
	}))
	return index, true
}
