package ranges

import (
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
)

// EndStreams stages that the streams of an account's former epochs leave the outbox, acknowledged or not, and
// are stopped no more: its gate is of a later epoch of this location, so nothing follows in them, and the other location
// knows that epoch. It returns true if there is more than one group may delete. The heads stay: see ForgetStreams.
func (tx *Tx) EndStreams(a geo.Account) (more bool, err error) {
	return tx.dropStreams(a, func(s geo.Stream, _ geo.Seq) {
		if _, stopped := tx.Stopped(s); stopped {
			tx.Stop(s, change.Stop{Reason: change.NotStopped})
		}
	})
}

// DropStreams is EndStreams while the other location may not know of the later epoch. It still takes what closed records
// say of the former one, so streams that lose records which it has not acknowledged are stopped like those that fall out
// of the outbox's budget: a head above its cursor is then named for as long as it may count (R12, R13). EndStreams ends
// that. Once the account's gate has numbers, the other location knows the epoch, and DropStreams does nothing.
func (tx *Tx) DropStreams(a geo.Account) (more bool, err error) {
	if tx.Gate(a).Numbered {
		return false, nil
	}
	m := tx.r.Machine
	return tx.dropStreams(a, func(s geo.Stream, head geo.Seq) {
		why, stopped := tx.Stopped(s)
		if head > m.Trimmed(s) && (!stopped || why.Reason != change.StopBudget) {
			tx.Stop(s, change.Stop{Reason: change.StopBudget, Here: m.Head(s), There: m.TrimmedHead(s)})
		}
	})
}

// dropStreams stages the deletion of what the outbox has of an account's former epochs, after stop of each stream with
// its head.
func (tx *Tx) dropStreams(a geo.Account, stop func(s geo.Stream, head geo.Seq)) (more bool, err error) {
	m, gate := tx.r.Machine, tx.Gate(a)
	ended := map[geo.Stream]bool{}
	take := func(s geo.Stream) {
		if s.Account == a && s.Epoch.Location == tx.Location() && s.Epoch.Compare(gate.Epoch) < 0 {
			ended[s] = true
		}
	}
	for _, s := range m.streamsOf(a) {
		take(s)
	}
	for s := range m.Stops() { // One that fell out of the budget may have no record (R18).
		take(s)
	}
	for _, s := range slices.SortedFunc(maps.Keys(ended), geo.Stream.Compare) {
		head, from := m.Head(s).Seq, m.Trimmed(s)
		if stop(s, head); head <= from {
			continue
		}
		before := tx.trimmed
		if err := tx.Trim(s, head); err != nil {
			return false, err
		}
		// Rows none of which can be decoded stay where they are more than one group may delete: nothing comes behind them.
		some := tx.trimmed > before || before == outbox.TrimRowsMax
		more = more || some && int(head-from) > outbox.TrimRowsMax-before
	}
	return more, nil
}

// ForgetStreams stages that nothing is kept any more of the streams of an account's epochs before one that the other
// location has in all its ranges: no cursor of them is left there, so closed records name them to nobody (R12, R13).
// They have ended before: one in which a record waits, or that is stopped, stays. It returns true if a later group can
// forget more: those whose records this one deletes, and those above its bound.
//
// Under a gate of a former epoch it does nothing: the range may have been recovered to before it, and would number
// the stream from its beginning. The caller names the epoch, since a call that is late may find the range in one that
// the other location does not know yet: until it does, the heads keep Last Sync Time there below what is not copied.
func (tx *Tx) ForgetStreams(a geo.Account, known geo.Epoch) (more bool) {
	m := tx.r.Machine
	if tx.Gate(a).Epoch.Compare(known) < 0 {
		return false
	}
	forgotten := 0
	for _, s := range slices.SortedFunc(slices.Values(m.streamsOf(a)), geo.Stream.Compare) {
		if s.Epoch.Location != tx.Location() || s.Epoch.Compare(known) >= 0 {
			continue
		}
		if _, stopped := tx.Stopped(s); stopped {
			continue
		}
		if forgotten == outbox.ForgetMax {
			return true
		}
		if tx.Head(s).Seq != m.Trimmed(s) {
			more = more || tx.trimmed > 0 // Else its records stay: see dropStreams.
			continue
		}
		forgotten++
		tx.b.Trim(s, change.OutboxHead{})
		save(tx, tx.r.heads, s)
		delete(tx.r.heads, s)
	}
	return more
}

// streamsOf returns the streams of an account that the range is the source of, in no order.
func (m *Machine) streamsOf(a geo.Account) []geo.Stream {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Of(a)
}
