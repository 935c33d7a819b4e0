package ranges

import (
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// A range that was recovered with loss (R4) may have lost records that it received and acknowledged. The closed records
// that its source has made since leave those out (R12), but a full one of before, which the bus may still bring, does not
// name them, and those that follow it would join: Last Sync Time would pass over what was lost. So the first one that is
// taken is full and of a time after all that the range can have acknowledged. Nothing was taken that was ahead of the
// clock here (R6), so that is the clock's time at the recovery and geo.ClockOffMax. What was nevertheless, with both
// locations' clocks ahead and set right since, is not covered.

// setClosesFrom keeps from which closed time on chains of received closed records may begin, where the level of the cluster
// allows it.
func (m *Machine) setClosesFrom(b *state.Batch, now time.Time) error {
	if !m.gate.Allows(feature.Walls) {
		return nil
	}
	m.closesFrom = geo.TimestampOf(now.Add(geo.ClockOffMax))
	return b.Set(keys.ClosesFrom(m.id), change.AppendHead(nil, geo.Head{Seq: geo.Seq(m.closesFrom)}))
}

func (m *Machine) loadClosesFrom() error {
	v, ok, err := m.state.Get(keys.ClosesFrom(m.id))
	if err != nil || !ok {
		return err
	}
	h, err := change.ParseHead(v)
	m.closesFrom = geo.Timestamp(h.Seq)
	return err
}

// ClosesFrom is the least time of a closed record that may be taken where none is since the range was recovered with
// loss; 0 if it never was.
func (tx *Tx) ClosesFrom() geo.Timestamp {
	m := tx.r.Machine
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.closesFrom
}
