package ranges

import (
	"bytes"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// recentMax bounds the changes that a recent remembers.
const recentMax = 16_384

// recent are the partitions of the catalog that the newest entries have changed: who has read the whole catalog reads only
// these again. The state of other ranges is too large to be read whole, so nothing is remembered of it.
type recent struct {
	// Every change above the version floor is in list, which goes up.
	floor uint64
	list  []recentChange
	// touched are the partitions that the current Apply changes. wiped: and others.
	touched []string
	wiped   bool
}

type recentChange struct {
	version   uint64
	partition string
}

// touch takes a partition that the current Apply changes.
func (r *recent) touch(partition []byte) {
	if bytes.HasPrefix(partition, keys.AppendService(nil, geo.Catalog)) {
		r.touched = append(r.touched, string(partition))
	}
}

// committed takes the version of the data after an Apply.
func (r *recent) committed(version uint64) {
	if r.wiped {
		*r = recent{floor: version}
		return
	}
	for _, p := range r.touched {
		r.list = append(r.list, recentChange{version, p})
	}
	r.touched = r.touched[:0]
	if over := len(r.list) - recentMax; over > 0 {
		over = max(over, recentMax/2) // Not one by one.
		r.floor, r.list = r.list[over-1].version, append([]recentChange(nil), r.list[over:]...)
	}
}

// Changed returns the version of the data, and the partitions of the catalog that have changed since another version: known is
// false if that is not known, since it is too long ago or of another history, or if the data is being changed. A snapshot that
// is taken afterwards has all of these changes. A partition may be named more than once.
func (s State) Changed(since kv.Version) (now kv.Version, partitions []string, known bool) {
	m := s.r.Machine
	m.mu.RLock()
	defer m.mu.RUnlock()
	now = s.Version()
	if since == 0 || uint64(since)>>historyShift != uint64(now)>>historyShift || uint64(since) < m.recent.floor {
		return now, nil, false
	}
	for i := len(m.recent.list) - 1; i >= 0 && m.recent.list[i].version > uint64(since); i-- {
		partitions = append(partitions, m.recent.list[i].partition)
	}
	return now, partitions, true
}
