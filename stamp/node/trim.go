package node

import (
	"sort"

	"antipode/stamp/membership"
	"antipode/stamp/state"
)

// A log is trimmed below the least durable applied index of all configured replicas, stopped ones
// included, so that a short absence costs no snapshot. A log longer than LogBytesMax is trimmed further,
// below this node's own index, so that a long absence costs no disk: see trimTo.

// A trim removes at least this many entries or bytes, since it writes a record itself.
const (
	trimEntriesMin = 4096
	trimBytesMin   = 2 << 20
)

// pinFactor is how many times LogBytesMax a log may take while a peer is fed by a
// snapshot: what follows the snapshot must be there when the peer has it. Beyond, the peer
// gets another snapshot, whose payload it mostly has by then.
const pinFactor = 4

// overBudget reports whether the log of a range is longer than what it may keep for a
// peer that is behind.
func (r *hostedRange) overBudget() bool {
	return r.n.o.takesSnapshots() && r.log.Bytes() > r.n.o.LogBytesMax
}

// trimTo returns the index up to which the log is trimmed: least, below which no replica needs it, or
// a later one, to keep it within its budget. It is never above own, the index from which this node
// recovers. over reports whether the log was over its budget.
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
	// A quarter more than necessary, so that not every tick writes a trim.
	excess := log.Bytes() - n.o.LogBytesMax/4*3
	index = least + uint64(sort.Search(int(limit-least), func(i int) bool {
		_, bytes := log.UpTo(least + uint64(i))
		return bytes >= excess
	}))
	return index, true
}

// trimLogs reports the durable indexes of all ranges and trims their logs.
func (s *scheduler) trimLogs() error {
	batch := s.n.stores.log.NewBatch()
	repeat, trimmed := s.ticks%repeatTicks == 0, false
	err := s.each(func(r *hostedRange) error {
		trims, err := r.trim(batch, repeat)
		trimmed = trimmed || trims
		return err
	})
	if err != nil || !trimmed {
		return err
	}
	return batch.Commit(false)
}

// trim reports the durable index of the range to its other nodes, if it changed or repeat is set,
// and trims the log through the batch; trimmed reports whether it did.
func (r *hostedRange) trim(batch state.LogBatch, repeat bool) (trimmed bool, err error) {
	own, err := r.Machine.DurableIndex()
	if err != nil || r.Replica().Installing() { // The state may be ahead of the log then.
		return false, err
	}
	here := r.n.o.ID
	changed := own != r.durable[here] || repeat
	r.durable[here] = own
	least := own
	for _, p := range r.n.placement.Of(r.ID()) {
		least = min(least, r.durable[p])
		if changed && p != here {
			r.report(p, membership.DurableIndex{Index: own})
		}
	}
	least, over := r.trimTo(least, own)
	entries, bytes := r.log.UpTo(least)
	if entries < trimEntriesMin && bytes < trimBytesMin && (!over || entries == 0) {
		return false, nil
	}
	return true, r.log.Trim(batch, least)
}
