package ranges

import (
	"fmt"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// fits checks what R1 asks for before any part takes effect: the entry was
// evaluated in the term it was appended in, on top of the last group that took
// effect, and every number follows the one before it.
func (m *Machine) fits(g *change.Group, term uint64) (bool, error) {
	if g.ID.Term != term || g.Pred != m.applied.Group {
		return false, nil
	}
	fits := true
	heads := map[geo.Stream]geo.Head{}
	err := g.Parts(func(kind change.PartKind, body []byte) error {
		if kind != change.PartChange && kind != change.PartReceived && kind != change.PartReceivedCursor {
			return nil
		}
		h, err := change.ParseHeader(body)
		if err != nil || h.Seq == 0 {
			return err
		}
		at, seen := heads[h.Stream]
		if !seen {
			at = m.heads[h.Stream]
			if kind != change.PartChange {
				at = m.cursor(h.Stream).Applied
			}
		}
		if h.Seq != at.Seq+1 || h.Prev != at.Hash {
			fits = plantedbugs.Planted(plantedbugs.ApplyOutOfOrder)
		}
		heads[h.Stream] = geo.Head{Seq: h.Seq, Hash: change.HashOf(body)}
		return nil
	})
	return fits, err
}

func (m *Machine) cursor(s geo.Stream) change.Cursor {
	if c := m.cursors[s]; c != nil {
		return *c
	}
	return change.Cursor{}
}

func (m *Machine) applyPart(batch *state.Batch, kind change.PartKind, body []byte) error {
	switch kind {
	case change.PartChange:
		return m.applyChange(batch, body)
	case change.PartReceived, change.PartReceivedCursor:
		return m.applyReceived(batch, body, kind == change.PartReceived)
	case change.PartClosed:
		return m.applyClosed(batch, body)
	case change.PartReceivedClosed:
		return m.applyReceivedClosed(batch, body)
	case change.PartGate:
		a, g, err := change.ParseGatePart(body)
		if err != nil {
			return err
		}
		m.gates[a] = g
		return batch.Set(keys.Gate(m.id, a), change.AppendGate(nil, g))
	case change.PartGeneration:
		return batch.Set(body, change.AppendHead(nil, geo.Head{}))
	case change.PartTrim:
		return m.applyTrim(batch, body)
	}
	return fmt.Errorf("%w: part kind %d", change.ErrVersion, kind)
}

func (m *Machine) setOps(batch *state.Batch, r *change.Record) error {
	m.changed = true
	key := append(make([]byte, 0, len(r.Partition)+64), r.Partition...)
	for _, op := range r.Ops {
		key = append(key[:len(r.Partition)], op.Row...)
		var err error
		if op.Delete {
			err = batch.Delete(key)
		} else {
			err = batch.Set(key, op.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) applyChange(batch *state.Batch, body []byte) error {
	r, err := change.ParseRecord(body)
	if err != nil {
		return err
	}
	if err := m.setOps(batch, &r); err != nil {
		return err
	}
	m.applied.Last = max(m.applied.Last, r.CommitTime)
	if r.Seq == 0 {
		return nil
	}
	s := r.Stream()
	head := geo.Head{Seq: r.Seq, Hash: change.HashOf(body)}
	m.heads[s] = head
	m.movedHeads[s] = struct{}{}
	m.queued(s, len(body))
	m.out.Records = append(m.out.Records, Shipped{
		Stream: s, Seq: r.Seq, Hash: head.Hash, CommitTime: r.CommitTime, Bytes: body, Chunks: len(r.Chunks) > 0,
	})
	return batch.Set(keys.Outbox(m.id, s, r.Seq), body)
}

func (m *Machine) applyClosed(batch *state.Batch, body []byte) error {
	t, err := change.ParseClosedTime(body)
	if err != nil {
		return err
	}
	m.closed = max(m.closed, t)
	m.applied.Last = max(m.applied.Last, t)
	m.out.Closed = t
	return batch.Set(keys.Closed(m.id), change.AppendHead(nil, geo.Head{Seq: geo.Seq(m.closed)}))
}

// applyTrim deletes the acknowledged records of a stream. Each outbox key was set
// once, so a SingleDelete annihilates it.
func (m *Machine) applyTrim(batch *state.Batch, body []byte) error {
	s, upTo, err := change.ParseTrim(body)
	if err != nil {
		return err
	}
	upTo = min(upTo, m.heads[s].Seq)
	from := m.trimmed[s]
	if upTo <= from {
		return nil
	}
	for n := from + 1; n <= upTo; n++ {
		m.unqueued(s)
		if err := batch.SingleDelete(keys.Outbox(m.id, s, n)); err != nil {
			return err
		}
	}
	m.trimmed[s] = upTo
	return batch.Set(keys.Trimmed(m.id, s), change.AppendHead(nil, geo.Head{Seq: upTo}))
}
