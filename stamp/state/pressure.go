package state

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble has writers wait while too much in memory waits for its flush, or too many files for their compaction. The
// scheduler of a node must not wait: its ranges would lose their leases. So it asks Pressed before it writes, and lets
// the write wait while the store is at one of the bounds below. Pebble's own bounds are twice as high then, for what is
// written between two looks at the store, and by others than the scheduler.

const (
	// memTablesMax is how many memtables there may be: one is written, the others wait for their flush.
	memTablesMax = 4
	// levelFilesMax is how many files over each other level 0 may have.
	levelFilesMax = 32
	// lookBytes is after how many bytes that were written the store is looked at again.
	lookBytes = 1 << 20
	// entryBytes is about what a row takes in a memtable beside its key and value.
	entryBytes = 100
)

// pressure is how near a store is to its bounds. A look at it may wait for the disk, so nobody waits for a look.
type pressure struct {
	// written is how many bytes were written since the last look began.
	written atomic.Int64
	// over: the last look found the store at a bound. eased: since it began a flush or a compaction has ended.
	over, eased atomic.Bool
	// looking: a look is under way. asked: Pressed was true, and Options.Eased was not called since.
	looking, asked atomic.Bool
	// notify is Options.Eased.
	notify func()
}

// Pressed reports whether a write may have to wait, since the store cannot flush or compact as fast as it is written.
// Options.Eased is called when that may be over. It waits for nothing. Any write may have to wait without Options.Eased.
func (s *Store) Pressed() bool {
	p := &s.pressure
	if p.written.Load() >= s.lookBytes() || p.over.Load() && p.eased.Load() {
		s.lookSoon()
	}
	if !s.near() {
		return false
	}
	p.asked.Store(true)
	if p.over.Load() && p.eased.Load() { // What ended in between has called nobody back, nor has a look.
		s.lookSoon()
	}
	return s.near()
}

// near reports whether the last look found the store at a bound, or is too long ago.
func (s *Store) near() bool {
	return s.pressure.over.Load() || s.pressure.written.Load() >= int64(s.opts.MemTableSize)
}

func (s *Store) lookBytes() int64 { return min(lookBytes, int64(s.opts.MemTableSize)/2) }

// lookSoon looks at the store, in a goroutine for which Close waits, unless that is under way.
func (s *Store) lookSoon() {
	p := &s.pressure
	if !p.looking.CompareAndSwap(false, true) {
		return
	}
	if s.enter() != nil {
		return // Closed: nothing is written any more.
	}
	p.eased.Store(false)
	before := p.written.Load()
	go func() {
		defer s.leave()
		over := s.over()
		p.over.Store(over)
		p.written.Add(-before)
		p.looking.Store(false)
		if !over || p.eased.Load() {
			p.ease()
		}
	}()
}

// over looks at the store: whether it is at a bound. It may wait for the disk.
func (s *Store) over() bool {
	m := s.db.Metrics()
	return m.MemTable.Size >= memTablesMax*s.opts.MemTableSize || m.Levels[0].Sublevels >= levelFilesMax
}

// ease has the caller ask again to whom Pressed was true.
func (p *pressure) ease() {
	if p.asked.CompareAndSwap(true, false) && p.notify != nil {
		p.notify()
	}
}

// listen has flushes and compactions noticed that end.
func (p *pressure) listen(l *pebble.EventListener) {
	ended := func() {
		p.eased.Store(true)
		p.ease()
	}
	l.FlushEnd = func(pebble.FlushInfo) { ended() }
	l.CompactionEnd = func(pebble.CompactionInfo) { ended() }
}
