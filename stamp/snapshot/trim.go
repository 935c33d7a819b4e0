package snapshot

import (
	"sort"

	"antipode/geo"
)

// overBudget reports whether the log of a range is longer than what it may keep for a peer that is behind.
func (m *Manager) overBudget(id geo.RangeID) bool {
	return m.o.RowChunks != nil && m.o.Node.Log(id).Bytes() > m.o.LogBytesMax
}

// FlushFreesLog reports whether a flush of the state would let the log of a range be trimmed to its budget.
func (m *Manager) FlushFreesLog(id geo.RangeID) bool {
	_, pinned := m.Pin(id)
	return m.overBudget(id) && !pinned
}

// TrimTo returns the index up to which the log of a range is trimmed: least, below which no replica needs it, or
// a later one, to keep it within its budget. It is never above own, the index from which this node
// recovers, nor above Pin. over reports whether the log was over its budget.
func (m *Manager) TrimTo(id geo.RangeID, least, own uint64) (index uint64, over bool) {
	if !m.overBudget(id) {
		return least, false
	}
	if least >= own {
		return own, true
	}
	log, limit := m.o.Node.Log(id), own
	if pin, ok := m.Pin(id); ok { // What follows the snapshot must be there when the peer has it.
		limit = max(least, min(own, pin))
	}
	// A quarter more than necessary, so that not every tick writes a trim.
	excess := log.Bytes() - m.o.LogBytesMax/4*3
	index = least + uint64(sort.Search(int(limit-least), func(i int) bool {
		_, bytes := log.UpTo(least + uint64(i))
		return bytes >= excess
	}))
	return index, true
}
