package state

import "sync/atomic"

// freedMin is from how many bytes on the memory of blocks that left the cache is given back at once.
const freedMin = 1 << 20

// freed watches how much the block cache gives up when tables are deleted, which may be most of it.
type freed struct {
	// most is what it held at most when a table was made, since the last time that memory was given back, in bytes.
	most atomic.Int64
}

// created takes what the cache holds when a compaction has made a table, before those that it replaces are deleted.
func (f *freed) created(cached int64) { f.most.Store(max(f.most.Load(), cached)) }

// deleted takes what the cache holds after a table was deleted, and calls trim if it gave up so much that this is
// worth the time.
func (f *freed) deleted(cached int64, trim func()) {
	if f.most.Load()-cached >= freedMin {
		trim()
		f.most.Store(cached)
	}
}
