package ranges

import (
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
)

// EndStreams stages that the streams of an account's former epochs leave the outbox, acknowledged or not, and
// are stopped no more: its gate is of a later epoch of this location, so nothing follows in them. It
// returns true if there is more than one group may delete. The heads stay.
func (tx *Tx) EndStreams(a geo.Account) (more bool, err error) {
	m, gate := tx.r.Machine, tx.Gate(a)
	heads, _ := m.Heads()
	ended := map[geo.Stream]bool{}
	take := func(s geo.Stream) {
		if s.Account == a && s.Epoch.Location == tx.Location() && s.Epoch.Compare(gate.Epoch) < 0 {
			ended[s] = true
		}
	}
	for s := range heads {
		take(s)
	}
	for s := range m.Stops() { // One that fell out of the budget may have no record (R18).
		take(s)
	}
	for _, s := range slices.SortedFunc(maps.Keys(ended), geo.Stream.Compare) {
		if _, stopped := tx.Stopped(s); stopped {
			tx.Stop(s, change.Stop{Reason: change.NotStopped})
		}
		head, from := heads[s].Seq, m.Trimmed(s)
		if head <= from {
			continue
		}
		if int(head-from) > outbox.TrimRowsMax-tx.trimmed {
			more = true
		}
		if err := tx.Trim(s, head); err != nil {
			return false, err
		}
	}
	return more, nil
}
