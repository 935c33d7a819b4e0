package ranges

import (
	"fmt"

	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// The catalog's range, which is on all nodes, holds the feature levels of the location. Each node takes them over as it
// applies them, for all of its ranges: so nothing is written at a level before the node knows that it is active.

// ErrLevel: the command would write what no node may write before the cluster is finalized at a level.
var ErrLevel = fmt.Errorf("not before the upgrade of both locations is finalized (antipodectl cluster finalize): %w", kv.ErrBusy)

// Levels are the feature levels of the node.
func (r *Range) Levels() *feature.Gate { return r.o.Levels }

// Allows reports whether something of a feature level may be written.
func (tx *Tx) Allows(l feature.Level) bool { return tx.r.o.Levels.Allows(l) }

// Levels are those of the location, groups in flight not included.
func (tx *Tx) Levels() change.Levels {
	return change.Levels{Floor: tx.r.o.Levels.Floor(), Active: tx.r.o.Levels.Active()}
}

// RaiseLevels stages that the levels of the location are at least these. It fails where this program knows less.
func (tx *Tx) RaiseLevels(to change.Levels) error {
	if err := tx.r.o.Levels.Check(to.Floor); err != nil {
		return err
	}
	have := tx.Levels()
	to = change.Levels{Floor: max(to.Floor, have.Floor), Active: max(to.Active, have.Active)}
	if to != have {
		tx.b.Levels(to)
	}
	return nil
}

// run evaluates a command. What needs a level that is not active is refused: a command that writes such a thing asks
// Allows first, and does without.
func (tx *Tx) run(cmd Command) error {
	if err := cmd.Evaluate(tx); err != nil {
		return err
	}
	if !tx.Allows(tx.b.Needs()) {
		return ErrLevel
	}
	return nil
}

// applyLevels takes over what the catalog has committed. A program that does not know the floor stops (ErrLater).
func (m *Machine) applyLevels(batch *state.Batch, body []byte) error {
	l, err := change.ParseLevels(body)
	if err == nil {
		err = m.gate.Check(l.Floor)
	}
	if err != nil {
		return err
	}
	m.gate.Raise(l.Floor, l.Active)
	return batch.Set(keys.Levels(m.id), body)
}

// takeLevels takes over the levels that are in the state.
func (m *Machine) takeLevels() error {
	v, ok, err := m.state.Get(keys.Levels(m.id))
	if err != nil || !ok {
		return err
	}
	l, err := change.ParseLevels(v)
	if err == nil {
		err = m.gate.Check(l.Floor)
	}
	if err != nil {
		return fmt.Errorf("state of range %d: %w", m.id, laterOf(err))
	}
	m.gate.Raise(l.Floor, l.Active)
	return nil
}

// laterOf makes change.ErrVersion replica.ErrLater too: in what is durable here it is no damage.
func laterOf(err error) error {
	if change.IsLater(err) {
		return fmt.Errorf("%w: %w", replica.ErrLater, err)
	}
	return err
}
