package ranges

import (
	"cmp"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
)

// FallOut stages that a copy falls out of the budget of the outbox (R18): all its streams here are
// stopped, those without a record too, and what the outbox holds of them is deleted, as much as one
// group may. It does nothing unless the account's gate numbers the copy. Called again, it deletes what is left,
// and what was numbered since.
//
// Numbers and hashes go on, so that heads in closed records stay above every cursor that lacks a
// record: no receiver takes the copy to be complete, whether it knows of the stop or not.
func (tx *Tx) FallOut(c outbox.Copy) error {
	gate := tx.Gate(c.Account)
	if gate.Role != change.RolePrimary || !gate.Numbered || gate.Epoch != c.Epoch {
		return nil
	}
	m := tx.r.Machine
	for lane := range geo.Lane(geo.LaneCount) {
		s := geo.Stream{Account: c.Account, Epoch: c.Epoch, Range: tx.r.o.Range, Lane: lane}
		if why, stopped := tx.Stopped(s); !stopped || why.Reason != change.StopBudget {
			next := change.Stop{Reason: change.StopBudget, Here: tx.Head(s), There: m.TrimmedHead(s)}
			if stopped && why.Reason.Stands() {
				next.There = why.There
			}
			tx.Stop(s, next)
		}
		if err := tx.Trim(s, m.Head(s).Seq); err != nil {
			return err
		}
	}
	return nil
}

// Holding is what the outbox holds of a copy.
type Holding struct {
	outbox.Copy
	outbox.Backlog
	// FellOut reports that the copy fell out of the budget of the outbox (R18).
	FellOut bool
}

// Holdings returns what the outbox holds of each copy that the gates number, and those that fell out of its
// budget, by account. It reads no row, so Oldest is zero.
func (m *Machine) Holdings() []Holding {
	m.mu.RLock()
	defer m.mu.RUnlock()
	held := m.outbox.Backlogs()
	var out []Holding
	for a, g := range m.gates.of {
		if g.Role != change.RolePrimary || !g.Numbered {
			continue
		}
		c := Holding{Copy: outbox.Copy{Account: a, Epoch: g.Epoch}}
		c.Backlog, c.FellOut = held[c.Copy], m.fellOut(c.Copy)
		if c.Records > 0 || c.FellOut {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Holding) int { return cmp.Compare(a.Account, b.Account) })
	return out
}

// fellOut reports whether a copy fell out: all its streams did. The caller holds mu.
func (m *Machine) fellOut(c outbox.Copy) bool {
	return m.stops[geo.Stream{Account: c.Account, Epoch: c.Epoch, Range: m.id}].Reason == change.StopBudget
}

// Oldest returns the commit time of the oldest record that the outbox holds of each copy. It reads a row
// for each stream that has one.
func (m *Machine) Oldest() (map[outbox.Copy]geo.Timestamp, error) {
	m.mu.RLock()
	firsts := m.outbox.Firsts()
	m.mu.RUnlock()
	out := make(map[outbox.Copy]geo.Timestamp, len(firsts))
	for c, keys := range firsts {
		oldest, err := outbox.Oldest(m.state, keys)
		if err != nil {
			return nil, err
		}
		if oldest != 0 {
			out[c] = oldest
		}
	}
	return out, nil
}
