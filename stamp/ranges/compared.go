package ranges

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// A range that was recovered with loss (R4) may have gone back to before the gate of an account's epoch, which the
// catalog and the other location know. Under a former gate its changes would have numbers that the other location
// refuses, and the wipe of a copy would be undone (R7, R10). So the range takes no change of an account that is primary
// here, promises no time and takes no gate, until its gates were compared with the catalog: see
// directory.Directory.Compare. That is durable in the range, under its incarnation, so that the next recovery asks for
// it again, also one that loses it.
//
// The catalog is what others are compared with, so it is never uncompared: nobody finds that it was itself recovered to
// before an epoch that other ranges have.

// Uncompared reports whether the range was recovered with loss and its gates were not compared since.
func (m *Machine) Uncompared() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return Service(m.id) != geo.Catalog && m.compared != geo.Incarnation(m.members.Recovery())
}

// Uncompared is Machine.Uncompared, without groups in flight.
func (tx *Tx) Uncompared() bool { return tx.r.Machine.Uncompared() }

// Incarnation is how often the range was recovered with loss.
func (tx *Tx) Incarnation() geo.Incarnation { return tx.r.Machine.Incarnation() }

// Compared stages that the gates were compared under an incarnation.
func (tx *Tx) Compared(as geo.Incarnation) { tx.b.Compared(as) }

func (m *Machine) applyCompared(batch *state.Batch, body []byte) (err error) {
	if m.compared, err = change.ParseCompared(body); err != nil {
		return err
	}
	return batch.Set(keys.Compared(m.id), body)
}

func (m *Machine) loadCompared() error {
	v, ok, err := m.state.Get(keys.Compared(m.id))
	if err != nil || !ok {
		return err
	}
	m.compared, err = change.ParseCompared(v)
	return err
}

// Gate returns the gate of an account in the range.
func (s State) Gate(a geo.Account) change.Gate { return s.r.Machine.Gate(a) }
