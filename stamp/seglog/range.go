package seglog

import (
	"fmt"
	"math"
	"sync"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/state"
)

// tailBytesMax bounds the newest entries that a range keeps in memory, so that
// replication and apply seldom read from disk. What is not written yet is kept beyond
// it.
const tailBytesMax = 4 << 20

// entryOverhead is added to an entry's data where bytes are counted.
const entryOverhead = 32

// slot is where an entry lies. Its 16 bytes are all the memory of an entry that is not
// in the tail.
type slot struct {
	segment uint32 // 0: not written yet, or, while the log is read at open, not yet found
	offset  uint32
	size    uint32 // of the record
	term    uint32
}

// rangeState is what a segment's first frame says of a range.
type rangeState struct {
	// term, vote and commit are the hard state; all 0 for none.
	term, vote, commit uint64
	// truncated is the last index trimmed away, and its term.
	truncated, truncatedTerm uint64
	last                     uint64
}

// rangeLog is one range's part of a Log. It implements state.RangeLog.
type rangeLog struct {
	l  *Log
	id geo.RangeID

	// mu guards the rest: the ship and status goroutines read while the node's
	// scheduler appends. Order: rangeLog.mu, then Log.mu.
	mu     sync.Mutex
	voters []uint64
	rangeState
	// slots are the entries from truncated+1 to last.
	slots deque[slot]
	// tail are the newest entries, ending at last. Invariant: an entry that is not
	// written yet is in it.
	tail      deque[*pb.Entry]
	tailBytes int
	bytes     uint64

	// The rest belongs to the scheduler.

	// written is the state as of the last frame written.
	written rangeState
	// touched: in Log.touched.
	touched bool
}

// slot returns the place of an index in truncated+1 to last. The caller holds mu.
func (g *rangeLog) slot(index uint64) *slot { return g.slots.at(int(index - g.truncated - 1)) }

// tailFirst is the index of the oldest entry in memory. The caller holds mu.
func (g *rangeLog) tailFirst() uint64 { return g.last + 1 - uint64(g.tail.len()) }

// Append implements state.RangeLog.
func (g *rangeLog) Append(_ state.LogBatch, entries []*pb.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	first := entries[0].GetIndex()
	if first <= g.truncated || first > g.last+1 {
		return fmt.Errorf("seglog: append from index %d to a log of %d to %d", first, g.truncated+1, g.last)
	}
	for i, e := range entries {
		if e.GetIndex() != first+uint64(i) || e.GetTerm() > math.MaxUint32 || len(e.Data) > commitBytesMax {
			return fmt.Errorf("seglog: entry of index %d where %d belongs, term %d, %d bytes",
				e.GetIndex(), first+uint64(i), e.GetTerm(), len(e.Data))
		}
	}
	g.cutBack(first)
	for _, e := range entries {
		s := slot{size: uint32(entryBytes + len(e.Data)), term: uint32(e.GetTerm())}
		g.l.stageEntry(g, recordEntry, e.GetIndex(), s, uint8(e.GetType()), e.Data)
		g.slots.push(s)
		g.tail.push(e)
		g.last = e.GetIndex()
		g.tailBytes += len(e.Data) + entryOverhead
		g.bytes += uint64(len(e.Data) + entryOverhead)
	}
	return nil
}

// cutBack removes the entries from first on, which a new leader replaces.
func (g *rangeLog) cutBack(first uint64) {
	for ; g.last >= first; g.last-- {
		s := *g.slot(g.last)
		g.l.release(s)
		g.bytes -= uint64(s.bytes())
		g.slots.dropBack(1)
		if g.tail.len() > 0 {
			g.tailBytes -= s.bytes()
			g.tail.dropBack(1)
		}
	}
}

// bytes is what the entry counts for in Bytes.
func (s slot) bytes() int { return int(s.size) - entryBytes + entryOverhead }

// SetHardState implements state.RangeLog.
func (g *rangeLog) SetHardState(_ state.LogBatch, hs *pb.HardState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.term, g.vote, g.commit = hs.GetTerm(), hs.GetVote(), hs.GetCommit()
	g.l.stage(g, recordHardState, g.term, g.vote, g.commit)
	return nil
}

// Trim implements state.RangeLog.
func (g *rangeLog) Trim(_ state.LogBatch, index uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index <= g.truncated {
		return nil
	}
	term, err := g.termOf(index)
	if err != nil {
		return err
	}
	g.l.stage(g, recordTrim, index, term)
	g.cutUpTo(geo.EntryID{Term: term, Index: index})
	return nil
}

// cutUpTo removes the entries up to and including to, which is above truncated.
func (g *rangeLog) cutUpTo(to geo.EntryID) {
	if first := g.tailFirst(); to.Index >= first {
		g.dropTail(int(to.Index - first + 1))
	}
	n := int(to.Index - g.truncated)
	for i := range n {
		s := *g.slots.at(i)
		g.l.release(s)
		g.bytes -= uint64(s.bytes())
	}
	g.slots.dropFirst(n)
	g.truncated, g.truncatedTerm = to.Index, to.Term
}

// Reset implements state.RangeLog.
func (g *rangeLog) Reset(_ state.LogBatch, last geo.EntryID) error {
	if last.Term > math.MaxUint32 {
		return fmt.Errorf("seglog: reset to index %d of term %d", last.Index, last.Term)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.l.stage(g, recordReset, last.Index, last.Term)
	g.reset(last)
	return nil
}

// reset removes all entries; the log then begins behind last.
func (g *rangeLog) reset(last geo.EntryID) {
	for i := range g.slots.len() {
		g.l.release(*g.slots.at(i))
	}
	g.slots.dropBack(g.slots.len())
	g.tail.dropBack(g.tail.len())
	g.tailBytes, g.bytes = 0, 0
	g.truncated, g.truncatedTerm, g.last = last.Index, last.Term, last.Index
}

// dropTail lets the n oldest entries go from memory.
func (g *rangeLog) dropTail(n int) {
	for i := range n {
		g.tailBytes -= len((*g.tail.at(i)).Data) + entryOverhead
	}
	g.tail.dropFirst(n)
}

// shrinkTail is called when everything staged was written.
func (g *rangeLog) shrinkTail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written, g.touched = g.rangeState, false
	n, bytes := 0, g.tailBytes
	for ; bytes > tailBytesMax && n < g.tail.len()-1; n++ {
		bytes -= len((*g.tail.at(n)).Data) + entryOverhead
	}
	if n > 0 {
		g.dropTail(n)
	}
}

// UpTo implements state.RangeLog.
func (g *rangeLog) UpTo(index uint64) (entries, bytes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if index = min(index, g.last); index <= g.truncated {
		return 0, 0
	}
	entries = index - g.truncated
	return entries, g.bytes / (g.last - g.truncated) * entries
}

// Bytes implements state.RangeLog.
func (g *rangeLog) Bytes() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// InitialState implements raft.Storage.
func (g *rangeLog) InitialState() (*pb.HardState, *pb.ConfState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var hs *pb.HardState
	if g.term != 0 || g.vote != 0 || g.commit != 0 {
		term, vote, commit := g.term, g.vote, g.commit
		hs = &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
	}
	return hs, &pb.ConfState{Voters: g.voters}, nil
}

// Entries implements raft.Storage.
func (g *rangeLog) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if lo <= g.truncated {
		return nil, raft.ErrCompacted
	}
	if hi > g.last+1 {
		return nil, raft.ErrUnavailable
	}
	if lo >= hi {
		return nil, nil
	}
	n, size := uint64(0), uint64(0)
	for ; n < hi-lo; n++ {
		size += uint64(g.slot(lo + n).bytes())
		if n > 0 && size > maxSize {
			break
		}
	}
	out := make([]*pb.Entry, 0, n)
	inMemory := g.tailFirst()
	for i := lo; i < lo+n; i = lo + uint64(len(out)) {
		if i >= inMemory {
			out = append(out, *g.tail.at(int(i - inMemory)))
			continue
		}
		read, err := g.l.readEntries(g, i, min(lo+n, inMemory))
		if err != nil {
			return nil, err
		}
		out = append(out, read...)
	}
	return out, nil
}

// Term implements raft.Storage.
func (g *rangeLog) Term(i uint64) (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.termOf(i)
}

func (g *rangeLog) termOf(i uint64) (uint64, error) {
	switch {
	case i == g.truncated:
		return g.truncatedTerm, nil
	case i < g.truncated:
		return 0, raft.ErrCompacted
	case i > g.last:
		return 0, raft.ErrUnavailable
	}
	return uint64(g.slot(i).term), nil
}

// LastIndex implements raft.Storage.
func (g *rangeLog) LastIndex() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last, nil
}

// FirstIndex implements raft.Storage.
func (g *rangeLog) FirstIndex() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.truncated + 1, nil
}

// Snapshot implements raft.Storage. A log has none: the replica above it answers from
// the state.
func (g *rangeLog) Snapshot() (*pb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
}
