package node

import (
	"antipode/stamp/membership"
	"antipode/stamp/state"
)

// A log is trimmed below the least durable applied index of all configured replicas, stopped ones
// included, so that a short absence costs no snapshot. A log longer than LogBytesMax is trimmed further,
// below this node's own index, so that a long absence costs no disk: see snapshot.Manager.TrimTo. That of a lost
// replica is not trimmed.

// settle has the state be flushed soon, and the logs that may name chunks be trimmed up to the last entry that may have
// unnamed some, once that is durable on every node, which each sees to by itself: otherwise rows of before and entries
// would name what was overwritten until enough else was written. The trims of before are durable when it returns: entries
// that a crash brought back would name what is dropped.
func (s *scheduler) settle() error {
	for _, r := range s.n.ranges {
		if !s.n.namesChunks(r.ID()) {
			continue
		}
		s.settling = s.settling || r.unnamed > r.flushed
		if r.settle == 0 { // Else the trim of before comes first: it would never come where the index moved on.
			r.settle = r.unnamed
		}
	}
	return s.n.stores.log.NewBatch().Commit(true)
}

// A trim removes at least this many entries or bytes, since it writes a record itself.
const (
	trimEntriesMin = 4096
	trimBytesMin   = 2 << 20
)

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
	report := membership.DurableIndex{Replica: r.Replica().ID(), Index: own}
	changed := report != r.durable[here] || repeat
	r.durable[here] = report
	least, members := own, r.Replica().Members()
	for _, p := range r.n.placement.Of(r.ID()) {
		least = min(least, r.durable[p].Of(members, p))
		if changed && p != here {
			r.report(p, report)
		}
	}
	if r.Replica().Lost() != nil { // Its log may end below what is durable, and grows no more.
		return false, nil
	}
	least, over := r.n.snapshots.TrimTo(r.ID(), least, own)
	entries, bytes := r.log.UpTo(least)
	settled := r.settle != 0 && least >= r.settle
	if settled {
		r.settle = 0
	}
	if entries < trimEntriesMin && bytes < trimBytesMin && (!over && !settled || entries == 0) {
		return false, nil
	}
	if settled {
		r.n.unnamings.Add(1)
	}
	return true, r.log.Trim(batch, least)
}
