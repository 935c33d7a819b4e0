package ranges

import (
	"maps"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// gateTable are the gates of the accounts, one for each account of the location, and what is asked of
// them together at every step.
type gateTable struct {
	of map[geo.Account]change.Gate
	// numbered counts the gates that have this range send closed records, receiving those of accounts that
	// are received here.
	numbered, receiving int
}

// set sets the gate of an account.
func (t *gateTable) set(a geo.Account, g change.Gate) {
	t.count(t.of[a], -1)
	t.count(g, 1)
	t.of[a] = g
}

func (t *gateTable) count(g change.Gate, by int) {
	if g.Role == change.RolePrimary && g.Numbered {
		t.numbered += by
	}
	if g.Role == change.RoleSecondary && g.Open {
		t.receiving += by
	}
}

func (m *Machine) loadGate(key, value []byte) error {
	a, err := keys.ParseGateKey(key)
	if err != nil {
		return err
	}
	g, err := change.ParseGate(value)
	m.gates.set(a, g)
	return err
}

// applyGate sets a gate. With a later epoch what is known of the streams of former ones is dropped, stops included (R13),
// but of those that a primary has numbered itself.
func (m *Machine) applyGate(batch *state.Batch, body []byte) error {
	a, g, err := change.ParseGatePart(body)
	if err != nil {
		return err
	}
	m.gates.set(a, g)
	if err := batch.Set(keys.Gate(m.id, a), change.AppendGate(nil, g)); err != nil {
		return err
	}
	for s := range m.stops {
		if s.Account != a || !m.former(s) {
			continue
		}
		delete(m.stops, s)
		if err := batch.Delete(keys.Stop(m.id, s)); err != nil {
			return err
		}
	}
	return m.received.DropFormer(batch, a, m.former)
}

// former reports whether a stream is of a former epoch, in which the account's present primary was not the primary. Its
// own streams of former epochs end by EndStreams.
func former(g change.Gate, s geo.Stream) bool {
	return s.Epoch.Compare(g.Epoch) < 0 && (g.Role != change.RolePrimary || s.Epoch.Location != g.Epoch.Location)
}

func (m *Machine) former(s geo.Stream) bool { return former(m.gates.of[s.Account], s) }

// Gate returns the gate of an account; an absent one is closed.
func (m *Machine) Gate(a geo.Account) change.Gate {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.gates.of[a]
}

// Numbered reports whether an account of the range is shipped from here. A range without such an
// account commits and sends no closed records (R12).
func (m *Machine) Numbered() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.gates.numbered > 0
}

// Receiving reports whether an account of the range is received here from its primary location.
func (m *Machine) Receiving() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.gates.receiving > 0
}

// Gates returns all gates.
func (m *Machine) Gates() map[geo.Account]change.Gate {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.gates.of)
}
