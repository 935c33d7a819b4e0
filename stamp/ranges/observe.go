package ranges

import (
	"maps"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/keys"
	"antipode/stamp/outbox"
)

// Backlog counts what the other location has not acknowledged.
func (m *Machine) Backlog() (outbox.Backlog, error) {
	m.mu.RLock()
	b, oldest := m.outbox.Backlog()
	m.mu.RUnlock()
	var err error
	b.Oldest, err = outbox.Oldest(m.state, oldest)
	return b, err
}

// Outbox returns encoded records of a stream from number n on: see outbox.Read.
func (m *Machine) Outbox(s geo.Stream, n geo.Seq, bytesMax int) ([][]byte, error) {
	return outbox.Read(m.state, m.id, s, n, bytesMax)
}

// Heads returns the heads of all streams that this range is the source of, and their time: no
// commit at or before it will follow.
func (m *Machine) Heads() (map[geo.Stream]geo.Head, geo.Timestamp) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Heads(), m.applied.Last
}

// Head returns the last record numbered in a stream.
func (m *Machine) Head(s geo.Stream) geo.Head {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Head(s)
}

// Trimmed returns the last number deleted from a stream's outbox.
func (m *Machine) Trimmed(s geo.Stream) geo.Seq {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Trimmed(s)
}

// Cursor returns how far a received stream is applied here.
func (m *Machine) Cursor(s geo.Stream) geo.Head {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.received.Applied(s)
}

// ReceivedClosed returns the closed time committed for a source range.
func (m *Machine) ReceivedClosed(src geo.SourceRange) (geo.Timestamp, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.received.Closed(src)
}

// Progress copies how far this replica has applied the streams of a source range: those of
// an account, or of cursor.EveryAccount.
func (m *Machine) Progress(src geo.SourceRange, a geo.Account) cursor.Progress {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.received.Progress(src, a)
}

// Gate returns the gate of an account; an absent one is closed.
func (m *Machine) Gate(a geo.Account) change.Gate {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.gates[a]
}

// Gates returns all gates.
func (m *Machine) Gates() map[geo.Account]change.Gate {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.gates)
}

// AppliedState returns up to which entry the log is applied.
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
