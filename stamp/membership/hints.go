package membership

import (
	"sync"
	"time"

	"antipode/geo"
)

// Hints are the leaders of ranges that a node has no replica of: the leader of each reports
// itself every tick. Methods may be called concurrently.
type Hints struct {
	// Timeout is for how long a hint holds: an election timeout.
	Timeout time.Duration

	mu      sync.Mutex
	leaders map[geo.RangeID]hint
}

type hint struct {
	node geo.NodeID
	term uint64
	at   time.Duration // running time of the node that received it
}

// Observe takes a hint from a node of the range at a running time.
func (h *Hints) Observe(id geo.RangeID, from geo.NodeID, term uint64, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A lower term is of a leader that has not noticed its successor yet. If the successor is
	// silent the term counts nothing: a range that was re-formed begins with that of the
	// survivor, which may be lower.
	if last := h.leaders[id]; term < last.term && h.holds(last, now) {
		return
	}
	if h.leaders == nil {
		h.leaders = map[geo.RangeID]hint{}
	}
	h.leaders[id] = hint{from, term, now}
}

// Leader returns the leader of a range, 0 if none reported itself within Timeout.
func (h *Hints) Leader(id geo.RangeID, now time.Duration) geo.NodeID {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.leaders[id]; h.holds(l, now) {
		return l.node
	}
	return 0
}

func (h *Hints) holds(l hint, now time.Duration) bool { return now-l.at <= h.Timeout }
