package ranges

import (
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// applyReceived applies a record of the other location with its cursor in the same
// batch (DESIGN 2.6: exactly once), or the cursor alone (R14).
func (m *Machine) applyReceived(batch *state.Batch, body []byte, whole bool) error {
	r, err := change.ParseRecord(body)
	if err != nil {
		return err
	}
	if whole {
		if err := m.setOps(batch, &r); err != nil {
			return err
		}
	}
	// A promotion must not mint below what was applied here (R20).
	m.applied.Last = max(m.applied.Last, r.CommitTime)
	s := r.Stream()
	c := m.cursors[s]
	if c == nil {
		c = &change.Cursor{}
		m.cursors[s] = c
	}
	c.Applied = geo.Head{Seq: r.Seq, Hash: change.HashOf(body)}
	m.reach(s, c)
	m.movedCursors[s] = struct{}{}
	return nil
}

// reach moves the sync time of a stream that is behind over every closed time
// whose head it has applied (R13).
func (m *Machine) reach(s geo.Stream, c *change.Cursor) {
	for len(c.Pairs) > 0 && c.Pairs[0].Head <= c.Applied.Seq {
		c.Sync = c.Pairs[0].T
		c.Pairs = c.Pairs[1:]
	}
	if len(c.Pairs) == 0 {
		c.Pairs, c.Sync = nil, 0
		delete(m.behind, s)
	}
}

// applyReceivedClosed takes a closed record: the evaluation made sure that it joins
// on to the committed one (T0) or is full (R12).
func (m *Machine) applyReceivedClosed(batch *state.Batch, body []byte) error {
	c, err := change.ParseClosed(body)
	if err != nil {
		return err
	}
	src := Source{c.Origin, c.Range}
	was := m.received[src]
	if c.T <= was {
		return nil
	}
	m.received[src] = c.T
	m.applied.Last = max(m.applied.Last, c.T)
	named := make(map[geo.Stream]struct{}, len(c.Heads))
	for _, h := range c.Heads {
		s := c.Stream(h)
		named[s] = struct{}{}
		m.closeStream(s, h.Seq, was, c.T)
	}
	for s := range m.behind {
		if _, ok := named[s]; ok || s.Range != c.Range || s.Epoch.Location != c.Origin {
			continue
		}
		// Its head did not change since T0, so the last pair now stands for T.
		cur := m.cursors[s]
		cur.Pairs[len(cur.Pairs)-1].T = c.T
		m.movedCursors[s] = struct{}{}
	}
	c.Heads, c.Full, c.T0 = nil, false, 0
	return batch.Set(keys.Received(m.id, c.Origin, c.Range), change.AppendClosed(nil, &c))
}

// closeStream notes that a stream's head was head at t.
func (m *Machine) closeStream(s geo.Stream, head geo.Seq, was, t geo.Timestamp) {
	cur := m.cursors[s]
	if cur == nil {
		cur = &change.Cursor{}
		m.cursors[s] = cur
	}
	switch n := len(cur.Pairs); {
	case head <= cur.Applied.Seq:
		return // At its head: its sync time is the range's closed time.
	case n == 0:
		cur.Sync = was
		cur.Pairs = []change.Pair{{T: t, Head: head}}
		m.behind[s] = struct{}{}
	case cur.Pairs[n-1].Head == head:
		cur.Pairs[n-1].T = t
	case n == change.PairsMax:
		// Drop one in between: the sync time moves in larger steps, never too far.
		cur.Pairs = append(cur.Pairs[:n-1], change.Pair{T: t, Head: head})
	default:
		cur.Pairs = append(cur.Pairs, change.Pair{T: t, Head: head})
	}
	m.movedCursors[s] = struct{}{}
}

// SyncTimes is what one receiving range knows of one source range.
type SyncTimes struct {
	// Closed is the greatest closed time committed here.
	Closed geo.Timestamp
	// Least is the least sync time of the account's streams: Closed when all are
	// at their heads.
	Least geo.Timestamp
	// Behind counts the account's streams that are not at their heads.
	Behind int
}

// add takes a stream that is not at its head.
func (t *SyncTimes) add(sync geo.Timestamp) {
	t.Behind++
	t.Least = min(t.Least, sync)
}

// SyncTimes returns the sync times of an account's streams from a source range; ok
// is false while no closed record of it was committed here (R13: absent).
func (m *Machine) SyncTimes(src Source, a geo.Account) (SyncTimes, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t, ok := m.received[src]
	if !ok {
		return SyncTimes{}, false
	}
	out := SyncTimes{Closed: t, Least: t}
	for s := range m.behind {
		if plantedbugs.Planted(plantedbugs.SkipStream) && s.Lane%4 == 0 {
			continue
		}
		if s.Account == a && src.feeds(s) {
			out.add(m.cursors[s].Sync)
		}
	}
	return out, true
}

// Cursor returns how far a stream is applied here.
func (m *Machine) Cursor(s geo.Stream) geo.Head {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.cursor(s).Applied
}

// Received returns the closed time committed for a source range.
func (m *Machine) Received(src Source) (geo.Timestamp, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t, ok := m.received[src]
	return t, ok
}

// Cursors returns all cursors of a source range.
func (m *Machine) Cursors(src Source) map[geo.Stream]geo.Head {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make(map[geo.Stream]geo.Head)
	for s, c := range m.cursors {
		if src.feeds(s) && c.Applied.Seq > 0 {
			out[s] = c.Applied
		}
	}
	return out
}

// BehindOf returns the streams of a source range that are below a closed head, with
// the head they miss.
func (m *Machine) BehindOf(src Source) map[geo.Stream]geo.Seq {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.behind) == 0 {
		return nil
	}
	out := make(map[geo.Stream]geo.Seq)
	for s := range m.behind {
		if src.feeds(s) {
			pairs := m.cursors[s].Pairs
			out[s] = pairs[len(pairs)-1].Head
		}
	}
	return out
}
