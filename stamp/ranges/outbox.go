package ranges

import (
	"encoding/binary"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// queued counts the record that was appended to a stream's outbox.
func (m *Machine) queued(s geo.Stream, size int) {
	m.outboxRecords++
	m.outboxBytes += int64(size)
	m.sizes[s] = append(m.sizes[s], uint32(size))
}

// unqueued counts that the oldest record of a stream's outbox is deleted.
func (m *Machine) unqueued(s geo.Stream) {
	queue := m.sizes[s]
	m.outboxRecords--
	m.outboxBytes -= int64(queue[0])
	if queue = queue[1:]; len(queue) == 0 {
		delete(m.sizes, s)
		return
	}
	m.sizes[s] = queue
}

// Backlog is how much of the outbox the other location has not acknowledged.
type Backlog struct {
	Records, Bytes int64
	// Oldest is the commit time of the oldest record, zero where there is none.
	Oldest geo.Timestamp
}

// Backlog counts the outbox.
func (m *Machine) Backlog() (Backlog, error) {
	m.mu.RLock()
	b := Backlog{Records: m.outboxRecords, Bytes: m.outboxBytes}
	var firsts []geo.Stream
	next := map[geo.Stream]geo.Seq{}
	if b.Records > 0 {
		for s, h := range m.heads {
			if t := m.trimmed[s]; t < h.Seq {
				firsts = append(firsts, s)
				next[s] = t + 1
			}
		}
	}
	m.mu.RUnlock()
	for _, s := range firsts {
		v, ok, err := m.state.Get(keys.Outbox(m.id, s, next[s]))
		if err != nil {
			return b, err
		}
		if !ok {
			continue // Trimmed since.
		}
		h, err := change.ParseHeader(v)
		if err != nil {
			return b, err
		}
		if b.Oldest == 0 || h.CommitTime < b.Oldest {
			b.Oldest = h.CommitTime
		}
	}
	return b, nil
}

// Outbox returns encoded records of a stream from number n on, at most bytesMax of
// them together but at least one where there is one.
func (m *Machine) Outbox(s geo.Stream, n geo.Seq, bytesMax int) ([][]byte, error) {
	upper := keys.Outbox(m.id, s, ^geo.Seq(0))
	it, err := m.state.Scan(keys.Outbox(m.id, s, n), upper)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	size := 0
	for it.Next() {
		key := it.Key()
		if geo.Seq(binary.BigEndian.Uint64(key[len(key)-8:])) != n+geo.Seq(len(out)) {
			break
		}
		size += len(it.Value())
		if len(out) > 0 && size > bytesMax {
			break
		}
		out = append(out, append([]byte(nil), it.Value()...))
	}
	return out, it.Close()
}

// Heads returns the heads of all streams this range is the source of, with the
// time they are the heads as of: no commit at or before it will follow.
func (m *Machine) Heads() (map[geo.Stream]geo.Head, geo.Timestamp) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[geo.Stream]geo.Head, len(m.heads))
	for s, h := range m.heads {
		out[s] = h
	}
	return out, m.applied.Last
}

// Trimmed returns the last number deleted from a stream's outbox.
func (m *Machine) Trimmed(s geo.Stream) geo.Seq {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.trimmed[s]
}

// Gate returns the gate of an account, closed where there is none.
func (m *Machine) Gate(a geo.Account) change.Gate {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.gates[a]
}

// Gates returns all gates.
func (m *Machine) Gates() map[geo.Account]change.Gate {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[geo.Account]change.Gate, len(m.gates))
	for a, g := range m.gates {
		out[a] = g
	}
	return out
}

// AppliedState returns where the state stands in its log.
func (m *Machine) AppliedState() change.AppliedState {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.applied
}

// DurableIndex is the applied index that a crash would leave.
func (m *Machine) DurableIndex() (uint64, error) {
	v, ok, err := m.state.GetDurable(keys.Applied(m.id))
	if err != nil || !ok {
		return 0, err
	}
	a, err := change.ParseApplied(v)
	return a.Index, err
}
