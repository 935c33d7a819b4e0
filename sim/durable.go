package sim

import (
	"bytes"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/seglog"
	"antipode/stamp/state"
)

// ackChecked is the share of acknowledgements at which the disks are crashed and read at once,
// which costs more than the write. All other writes are looked up on the disks with which the
// nodes start again.
const ackChecked = 0.15

// checkAck checks invariant 1 for an acknowledged write at the moment of its answer: it took
// effect, and after a crash that loses everything unsynced the log of every in-sync replica, two
// at least, holds it and the chunk store holds its payload.
func (s *Sim) checkAck(o *op) {
	if s.rewritten {
		return
	}
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
		if m.damaged {
			continue // Its disk lost what it had persisted, and the leader has yet to learn of it.
		}
		refs := m.uncollected(o.payload.refs)
		if m.n != nil {
			m.checkChunks(fmt.Sprintf("the acknowledged write %d", o.id), refs)
		}
		m.owes[o.rangeID] = max(m.owes[o.rangeID], o.index)
		m.owesChunks = append(m.owesChunks, refs...)
		if now {
			m.checkDurable(o.rangeID, o.index)
			m.checkChunksDurable(refs)
		}
	}
}

// checkOwed: the disk that the node starts on holds every write that was
// acknowledged while the node was in sync, and its payload.
func (m *member) checkOwed() {
	for _, id := range m.l.s.shipped {
		if m.owes[id] > 0 {
			m.checkDurable(id, m.owes[id])
		}
	}
	m.owesChunks = m.uncollected(m.owesChunks)
	m.checkChunksDurable(m.owesChunks)
}

func (m *member) checkDurable(id geo.RangeID, index uint64) {
	if err := m.durable(id, index); err != nil {
		m.l.s.fail(fmt.Errorf("%w: %s-%d r%d: %w", ErrNotDurable, m.l.name, m.id, id, err))
	}
}

func (m *member) checkChunksDurable(refs []extent.Ref) {
	if len(refs) == 0 {
		return
	}
	if err := m.holdsChunks(refs); err != nil {
		m.l.s.fail(fmt.Errorf("%w: %s-%d: payload: %w", ErrNotDurable, m.l.name, m.id, err))
	}
}

// holdsChunks reports as an error that a crash now would cost the node one of the
// chunks, or a byte of it.
func (m *member) holdsChunks(refs []extent.Ref) error {
	store, err := m.crashedExtents()
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if m.isCorrupted(ref) {
			continue
		}
		if _, err = store.Read(ref, 0, make([]byte, ref.Length)); err != nil {
			break
		}
	}
	return errors.Join(err, store.Close())
}

// crashedExtents opens the node's chunks as a crash now would leave them.
func (m *member) crashedExtents() (*extent.Store, error) {
	return extent.OpenReadOnly(m.synced(), extentsDir, extent.Options{})
}

// durable reports as an error that a crash now would leave the node's log without
// an index of a range.
func (m *member) durable(id geo.RangeID, index uint64) error {
	return m.inCrashedLog(id, func(log state.RangeLog) error { return m.holds(log, id, index) })
}

// votedFor reports as an error that a crash now would make the node forget a vote.
func (m *member) votedFor(id geo.RangeID, term, candidate uint64) error {
	return m.inCrashedLog(id, func(log state.RangeLog) error {
		hard, _, err := log.InitialState()
		if err == nil && (hard.GetTerm() < term || hard.GetTerm() == term && hard.GetVote() != candidate) {
			err = fmt.Errorf("voted for %d in term %d, the disk says %d in %d", candidate, term, hard.GetVote(), hard.GetTerm())
		}
		return err
	})
}

// inCrashedLog reads the log of a range as a crash now would leave it.
func (m *member) inCrashedLog(id geo.RangeID, look func(state.RangeLog) error) error {
	log, err := seglog.Open(dataDir+"/log", m.lookOptions())
	if err != nil {
		return err
	}
	rl, err := log.Range(id, []uint64{1, 2, 3})
	if err == nil {
		err = look(rl)
	}
	return errors.Join(err, log.Close())
}

// lookOptions open a crashed copy of the node's disk without changing it.
func (m *member) lookOptions() state.Options {
	o := m.storeOptions(m.synced())
	o.ReadOnly = true
	return o
}

func (m *member) holds(log state.RangeLog, id geo.RangeID, index uint64) error {
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	if index < first {
		return nil // Its effect is in the state: the log is trimmed only below the durable state.
	}
	if last < index {
		return fmt.Errorf("the log ends at index %d, want %d", last, index)
	}
	entries, err := log.Entries(index, index+1, 1)
	if err == nil && !bytes.Equal(entries[0].Data, m.l.history[id].log[index-1].data) {
		err = fmt.Errorf("index %d holds another entry", index)
	}
	return err
}
