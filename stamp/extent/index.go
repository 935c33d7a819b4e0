package extent

import (
	"cmp"
	"slices"
	"sync"
)

// The index says what is held, and where. A store may hold tens of millions of chunks, and
// each Put, Read or question for one waits for mu: no hold of it takes longer for their
// number. It is bounded in steps, of which each is a cell or a file visited, or an id
// looked up in, entered into or taken out of the map:
//
//	Put, Read, Durable, Mark, Delete    a few steps
//	Sweep, Scrub, Compact, Refs, Files, holdSteps at most, or holdMoves of the map; then they
//	Lacks                               release mu, and go on from where they were
//	Stats                               none: its counts are kept as they change
//
// So each file has the cells of its chunks in the order in which they were listed. A walk over all
// chunks visits the files in order of number and the cells of each. A cursor stays valid whatever
// happens meanwhile: a cell never moves, one that is dead stays until its file is dropped, and a
// chunk that is listed again gets a new cell. A walk therefore sees each chunk that keeps its cell
// all the time, and once.
//
// What a walk gathers is allocated before mu is taken: who allocates may have to begin a
// cycle of the garbage collector, which takes milliseconds in a large process. The map and
// the cells hold no pointers, so that the collector passes them over: see doc.go for what
// they take.

// The bounds of one hold of mu, in steps. A cell is visited in some nanoseconds; an entry of
// the map takes up to some hundred, as it is nowhere near the last one.
const (
	holdSteps = 4096
	holdMoves = 128
)

// stepMutex is a mutex that counts the steps done under it.
type stepMutex struct {
	mu sync.Mutex
	// steps since Lock. Guarded by mu.
	steps int
	// locked and unlocking are called under mu. Nil but in tests.
	locked    func()
	unlocking func(steps int)
}

// Lock implements sync.Locker.
func (m *stepMutex) Lock() {
	m.mu.Lock()
	m.steps = 0
	if m.locked != nil {
		m.locked()
	}
}

// Unlock implements sync.Locker.
func (m *stepMutex) Unlock() {
	if m.unlocking != nil {
		m.unlocking(m.steps)
	}
	m.mu.Unlock()
}

// state says what is known of a chunk in the index.
type state uint8

const (
	// sound: written by this process, or durable by what the file's records say.
	sound state = iota
	// unproven: found intact where no record vouches for it, so it may be in the page cache
	// only. It can be read; Put writes it again.
	unproven
	// damaged: bytes of it are lost. Reads answer ErrCorrupt; Put writes it again.
	damaged
	// dead: not in the index any more.
	dead
	stateCount
)

// cell is a chunk in a file.
type cell struct {
	id         ChunkID
	offset     int64
	length     uint32
	crc        uint32
	sliceBytes uint32
	unit       uint32
	// round is the round of collection in which somebody last named the chunk, put it or
	// learned that it is here: see collect.go.
	round uint32
	state state
	// named: something has named the chunk, so that no upload is under way of which it is a part.
	named bool
}

func (c *cell) end() int64 { return c.offset + c.bytes() }

// bytes is the room the chunk takes.
func (c *cell) bytes() int64 { return chunkBytes(c.length, c.sliceBytes, c.unit) }

func (c *cell) ref() Ref { return Ref{ID: c.id, Length: c.length, CRC: c.crc} }

// entry is a copy of a cell, with its file.
type entry struct {
	file *file
	cell
}

// samePlace reports whether two entries are the same copy of a chunk.
func (en *entry) samePlace(as *entry) bool { return en.file == as.file && en.offset == as.offset }

// cellRef says where a chunk's cell is.
type cellRef struct{ file, slot uint64 }

// blockCells is how many cells are allocated at once: a file may hold few, or a million, and
// to copy them as a slice grows would take too long under mu.
const blockCells = 64

// cells are those of a file, by slot.
type cells struct {
	blocks []*[blockCells]cell
	// slots is how many there are.
	slots uint64
	// states counts them by state.
	states [stateCount]int
}

func (c *cells) at(slot uint64) *cell { return &c.blocks[slot/blockCells][slot%blockCells] }

func (c *cells) add(one cell) (slot uint64) {
	slot = c.slots
	if slot%blockCells == 0 {
		c.blocks = append(c.blocks, new([blockCells]cell))
	}
	c.slots++
	c.states[one.state]++
	*c.at(slot) = one
	return slot
}

// live counts the chunks that are in the index.
func (c *cells) live() int { return int(c.slots) - c.states[dead] }

// find returns a chunk's file and cell; nil where it is not held. The caller holds mu.
func (s *Store) find(id ChunkID) (*file, *cell) {
	s.mu.steps++
	p, ok := s.index[id]
	if !ok {
		return nil, nil
	}
	e := s.files[p.file]
	return e, e.cells.at(p.slot)
}

// list enters a chunk that is not in the index. The caller holds mu.
func (s *Store) list(en entry) {
	s.mu.steps++
	s.index[en.id] = cellRef{en.file.number, en.file.cells.add(en.cell)}
	en.file.liveBytes += en.bytes()
	s.bytes += int64(en.length)
	if en.state == damaged {
		s.damaged++
		s.corrupted++
	}
}

// unlist takes a chunk out of the index and returns the file it was in, or nil. The
// caller holds mu.
func (s *Store) unlist(id ChunkID) *file {
	e, c := s.find(id)
	if c == nil {
		return nil
	}
	delete(s.index, id)
	e.liveBytes -= c.bytes()
	s.bytes -= int64(c.length)
	s.setState(e, c, dead)
	return e
}

// setState changes the state of a chunk. The caller holds mu.
func (s *Store) setState(e *file, c *cell, to state) {
	if c.state == damaged {
		s.damaged--
	}
	if to == damaged {
		s.damaged++
		s.corrupted++
	}
	e.cells.states[c.state]--
	e.cells.states[to]++
	c.state = to
}

// addFile enters a file. The caller holds mu.
func (s *Store) addFile(e *file) {
	s.files[e.number] = e
	i, _ := s.position(e.number)
	s.order = slices.Insert(s.order, i, e)
	s.fileBytes += e.size
}

// removeFile is the counterpart of addFile. The caller holds mu.
func (s *Store) removeFile(e *file) {
	delete(s.files, e.number)
	if i, ok := s.position(e.number); ok {
		s.order = slices.Delete(s.order, i, i+1)
	}
	s.fileBytes -= e.size
}

// setSize records how far a file is written. The caller holds mu.
func (s *Store) setSize(e *file, size int64) {
	s.fileBytes += size - e.size
	e.size = size
}

// position is where in order the first file is whose number is number at least; ok reports
// that it is that one. The caller holds mu.
func (s *Store) position(number uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(s.order, number, func(e *file, n uint64) int { return cmp.Compare(e.number, n) })
}

// cursor is where a walk over the chunks is: the next cell is that of the slot, in the first
// file from number file on.
type cursor struct{ file, slot uint64 }

// visit calls f with the chunks from a cursor on, of the files that want says, nil for all,
// and moves the cursor behind them. It ends after holdSteps steps, or when f returns
// false; end reports that there are no more. The caller holds mu.
func (s *Store) visit(at *cursor, want func(*file) bool, f func(*file, *cell) bool) (end bool) {
	i, _ := s.position(at.file)
	for ; s.mu.steps < holdSteps; s.mu.steps++ {
		if i == len(s.order) {
			return true
		}
		e := s.order[i]
		if e.number != at.file {
			*at = cursor{file: e.number}
		}
		if at.slot == e.cells.slots || want != nil && !want(e) {
			*at = cursor{file: e.number + 1}
			i++
			continue
		}
		c := e.cells.at(at.slot)
		at.slot++
		if c.state != dead && !f(e, c) {
			return false
		}
	}
	return false
}

// eachChunk calls f with every chunk, releasing mu now and then, and between two chunks if
// f returns false.
func (s *Store) eachChunk(at *cursor, want func(*file) bool, f func(*file, *cell) bool, released func() bool) {
	for end := false; !end; {
		s.mu.Lock()
		end = s.visit(at, want, f)
		s.mu.Unlock()
		if !released() {
			return
		}
	}
}

// eachFile calls f with every file in order of number, under mu, releasing mu now and then.
func (s *Store) eachFile(f func(*file)) {
	for next, end := uint64(0), false; !end; {
		s.mu.Lock()
		i, _ := s.position(next)
		some := s.order[i:min(i+holdSteps, len(s.order))]
		for _, e := range some {
			s.mu.steps++
			f(e)
			next = e.number + 1
		}
		end = i+len(some) == len(s.order)
		s.mu.Unlock()
	}
}

// sound reports whether a file has chunks that are: see visit.
func hasSound(e *file) bool { return e.cells.states[sound] > 0 }

func hasDamaged(e *file) bool { return e.cells.states[damaged] > 0 }
