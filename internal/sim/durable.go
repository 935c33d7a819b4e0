package sim

import (
	"bytes"
	"fmt"

	"antipode/geo"
	"antipode/stamp/engine"
)

// ackChecked is the share of acknowledgements at whose moment the disks are crashed
// and read: that costs more than the write. All others are looked for on the disks
// with which the nodes start again.
const ackChecked = 0.15

// checkAck holds an acknowledged write against invariant 1: it took effect, and the
// log of every in-sync replica, two at least, holds it after a crash that loses all
// that was not synced, at the moment of the answer.
func (s *Sim) checkAck(o *op) {
	if o.index == 0 {
		s.fail(fmt.Errorf("%w: write %d", ErrAckLost, o.id))
		return
	}
	inSync := o.m.n.Range(o.rangeID).Replica().InSyncNodes()
	if len(inSync) < 2 {
		s.fail(fmt.Errorf("%w: write %d: %d replicas in sync", ErrNotDurable, o.id, len(inSync)))
		return
	}
	now := s.chance(ackChecked)
	if now {
		s.counts.AckChecked++
	}
	for _, id := range inSync {
		m := o.l.member(id)
		m.owes[o.rangeID] = max(m.owes[o.rangeID], o.index)
		if now {
			m.checkDurable(o.rangeID, o.index)
		}
	}
}

// checkOwed: the disk that the node starts on holds every write that was
// acknowledged while the node was in sync.
func (m *member) checkOwed() {
	for _, id := range shipped {
		if m.owes[id] > 0 {
			m.checkDurable(id, m.owes[id])
		}
	}
}

func (m *member) checkDurable(id geo.RangeID, index uint64) {
	if err := m.durable(id, index); err != nil {
		m.l.s.fail(fmt.Errorf("%w: %s-%d r%d: %w", ErrNotDurable, m.l.name, m.id, id, err))
	}
}

// durable reports as an error that a crash now would leave the node's log without
// an index of a range.
func (m *member) durable(id geo.RangeID, index uint64) error {
	log, err := engine.OpenLog(dataDir+"/log", m.lookOptions())
	if err != nil {
		return err
	}
	err = m.holds(log, id, index)
	if closeErr := log.Close(); err == nil {
		err = closeErr
	}
	return err
}

// lookOptions open a crashed copy of the node's disk without changing it.
func (m *member) lookOptions() engine.Options {
	o := m.engineOptions(m.crashed())
	o.ReadOnly = true
	return o
}

func (m *member) holds(log engine.Log, id geo.RangeID, index uint64) error {
	rl, err := log.Range(id, []uint64{1, 2, 3})
	if err != nil {
		return err
	}
	last, err := rl.LastIndex()
	if err != nil {
		return err
	}
	if last < index {
		return fmt.Errorf("the log ends at index %d, want %d", last, index)
	}
	entries, err := rl.Entries(index, index+1, 1)
	if err == nil && !bytes.Equal(entries[0].Data, m.l.history[id].log[index-1].data) {
		err = fmt.Errorf("index %d holds another entry", index)
	}
	return err
}
