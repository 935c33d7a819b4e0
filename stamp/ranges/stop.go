package ranges

import (
	"maps"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// Stopped returns why a stream that this range numbers or receives may not go on; ok is false if it
// may. Groups in flight count.
func (tx *Tx) Stopped(s geo.Stream) (why change.Stop, ok bool) {
	why, staged := tx.r.stops[s]
	switch {
	case !staged:
		return tx.r.Machine.Stopped(s)
	case why.Reason == change.NotStopped:
		return change.Stop{}, false
	}
	return why, true
}

// Stop stages that a stream may not go on (R16), or, with change.NotStopped, that it may again. It
// sets the time of the stop.
func (tx *Tx) Stop(s geo.Stream, why change.Stop) {
	why.At = tx.Timestamp(0)
	tx.b.Stop(s, why)
	save(tx, tx.r.stops, s)
	tx.r.stops[s] = why
}

// Stopped returns why a stream may not go on; ok is false if it may.
func (m *Machine) Stopped(s geo.Stream) (why change.Stop, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	why, ok = m.stops[s]
	return why, ok
}

// Stops returns a copy of all stops of the range.
func (m *Machine) Stops() map[geo.Stream]change.Stop {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.stops)
}

// Incarnation counts the recoveries with loss of the range.
func (m *Machine) Incarnation() geo.Incarnation {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return geo.Incarnation(m.members.Recovery())
}

func (m *Machine) loadStops() error {
	return keys.EachStream(m.state, keys.Stops(m.id), func(s geo.Stream, v []byte) (err error) {
		m.stops[s], err = change.ParseStop(v)
		return err
	})
}

func (m *Machine) applyStop(batch *state.Batch, body []byte) error {
	s, why, err := change.ParseStopPart(body)
	if err != nil {
		return err
	}
	m.applied.Last = max(m.applied.Last, why.At)
	if why.Reason == change.NotStopped {
		delete(m.stops, s)
		return batch.Delete(keys.Stop(m.id, s))
	}
	m.stops[s] = why
	return batch.Set(keys.Stop(m.id, s), change.AppendStop(nil, why))
}
