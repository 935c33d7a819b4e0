package ranges

import (
	"fmt"

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
	return m.outbox.Trimmed(s).Seq
}

// Ends returns the last record deleted from a stream's outbox and the last one numbered; both are zero of a stream
// without a record, and of one that was forgotten.
func (m *Machine) Ends(s geo.Stream) (trimmed, head geo.Head) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Trimmed(s), m.outbox.Head(s)
}

// TrimmedHead returns the last record deleted from a stream's outbox.
func (m *Machine) TrimmedHead(s geo.Stream) geo.Head {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Trimmed(s)
}

// TrimmedHeads returns the last records deleted from the outboxes of all streams.
func (m *Machine) TrimmedHeads() map[geo.Stream]geo.Head {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.outbox.Trims()
}

// OutboxAt returns record n of a stream as a place in it; ok is false if n is above the head or
// below the last record deleted: its hash is then unknown here. A record in between is known from
// the next one, which carries its hash.
func (m *Machine) OutboxAt(s geo.Stream, n geo.Seq) (at change.OutboxHead, ok bool, err error) {
	for {
		m.mu.RLock()
		trimmed, head := m.outbox.Ends(s)
		m.mu.RUnlock()
		switch {
		case n == head.Seq:
			return head, true, nil
		case n == trimmed.Seq:
			return trimmed, true, nil
		case n > head.Seq || n < trimmed.Seq:
			return at, false, nil
		}
		// The row is there unless a trim, or another state of this replica, has come since.
		if at, ok, err = outbox.Before(m.state, m.id, s, n+1); ok || err != nil {
			return at, ok, err
		}
		m.mu.RLock()
		trimmedNow, headNow := m.outbox.Ends(s)
		m.mu.RUnlock()
		if trimmedNow == trimmed && headNow == head {
			return at, false, fmt.Errorf("ranges: %s: the outbox lacks #%d, between #%d and #%d", s, n+1, trimmed.Seq, head.Seq)
		}
	}
}

// Cursor returns how far a received stream is applied here.
func (m *Machine) Cursor(s geo.Stream) change.Cursor {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.received.Cursor(s)
}

// Cursors copies the cursors of a source range: those that are behind, or all.
func (m *Machine) Cursors(src geo.SourceRange, behind bool) map[geo.Stream]change.Cursor {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := map[geo.Stream]change.Cursor{}
	each := m.received.Each
	if behind {
		each = m.received.Behind
	}
	each(src, func(s geo.Stream, c change.Cursor) { out[s] = c })
	return out
}

// Known returns what is known of a source range.
func (m *Machine) Known(src geo.SourceRange) cursor.Known {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.received.Known(src)
}

// Received returns the greatest time committed here of a source range: see cursor.Received.Latest.
func (m *Machine) Received(src geo.SourceRange) geo.Timestamp {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.received.Latest(src)
}

// Progress copies how far this replica has applied the streams of a source range: those of
// an account, or of cursor.EveryAccount.
func (m *Machine) Progress(src geo.SourceRange, a geo.Account) cursor.Progress {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.received.Progress(src, a)
	p.Recovered = m.members.Recovery() > 0
	for st, why := range m.stops {
		if st.Source() == src && (a == cursor.EveryAccount || st.Account == a) {
			p.Stops = append(p.Stops, cursor.StreamStop{Stream: st, Stop: why})
		}
	}
	if a != cursor.EveryAccount {
		return p // Asked for each account every second: what follows looks at all of them.
	}
	for name, g := range m.gates.of {
		if g.Role == change.RoleNone || g.Role == change.RolePrimary && g.Epoch.Number > 1 {
			if p.Ended == nil {
				p.Ended = map[geo.Account]geo.Epoch{}
			}
			p.Ended[name] = g.Epoch
		}
	}
	return p
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
