package ranges

import (
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
	var ended []geo.Stream
	for s := range heads {
		if s.Account == a && s.Epoch.Location == tx.Location() && s.Epoch.Compare(gate.Epoch) < 0 {
			ended = append(ended, s)
		}
	}
	slices.SortFunc(ended, geo.Stream.Compare)
	for _, s := range ended {
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
