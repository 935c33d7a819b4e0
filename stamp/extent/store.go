package extent

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// replacement is a file that must stay until synced reaches until.
type replacement struct {
	file  *file
	until uint64
}

// Store is the chunk store in one folder. All methods may be called concurrently.
// Two stores must not be open for writing on one folder.
type Store struct {
	fs       vfs.FS
	dir      string
	opts     Options
	readOnly bool
	metrics  *metrics

	// readBufs holds *[]byte, a run of slices behind their CRCs.
	readBufs sync.Pool

	small, paged appender

	// drawing guards opts.Rand.
	drawing sync.Mutex

	// stepping is held by Compact and Scrub, which take turns and may do I/O under it.
	// It comes before every other lock.
	stepping   sync.Mutex
	scrubbing  scrubRound
	compacting compaction

	// mu guards everything below, for memory work only. Order: an appender's turn, then mu.
	// What is done under one hold is bounded: see index.go.
	mu stepMutex
	// index is where each chunk's cell is, files are the extents, and order the same in
	// order of number.
	index map[ChunkID]cellRef
	files map[uint64]*file
	order []*file
	// nextNumber is above the number of every file seen.
	nextNumber uint64
	// spares are the paths of blank files to be used again; blanking counts those that
	// are becoming one.
	spares   []string
	blanking int
	// dirty are the files with chunks that no fdatasync has covered.
	dirty []*file
	// replaced are the files of copies that a later Put replaced. One may be unlinked
	// when the new copy is durable.
	replaced []replacement
	// written counts the chunks appended; synced is the count up to which they are
	// durable. Invariant: synced <= written.
	written, synced uint64
	// syncing is closed at the end of the fdatasync that runs; nil if none does.
	syncing chan struct{}
	// failed is the first failure, wrapped in ErrFailed; never unset.
	failed error
	closed bool
	// bytes is the payload of all live chunks, fileBytes the sum of the files' sizes; damaged
	// counts the chunks of which bytes are lost.
	bytes, fileBytes int64
	damaged          int
	// corrupted counts the copies found damaged since Open, those found by it included.
	corrupted uint64
	// freed counts the bytes of the files dropped since Open.
	freed uint64
	// round is the round of collection that was begun last; ended is set when every name was
	// marked in it, and complete counts such rounds in a row.
	round, complete uint32
	ended           bool
	// full is the round that was the last full one, and aged the full one before it.
	full, aged uint32
	// swept is how far the sweep after that round has come.
	swept cursor
	// pins counts the pins that are held: see Pin.
	pins int
	// held counts the reads under way of a chunk: see Hold. deferred: a sweep left a chunk for a pin or a hold that
	// has not ended since, and releases counts the ends of such.
	held     map[ChunkID]int
	deferred bool
	releases uint64
	// lost is the sum of what scans found lost and unnamed.
	lost int64

	// ops counts calls in progress. Add is called under mu while closed is false.
	ops       sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Put appends a chunk. It is in the file when Put returns and durable once a later
// Sync has. A chunk that is held already under an equal ref is not written again,
// unless the copy here is damaged: then Put repairs it. ErrMismatch means that data
// does not fit ref or that the id holds another chunk; nothing was written. Any
// other error takes the store out of service. data is not kept, and must not change
// until Put returns. A large one that begins on a page, as those of Buffers do, goes to
// the file without being copied.
func (s *Store) Put(ref Ref, data []byte) error {
	c, err := sumChunk(ref, data, s.opts.SliceBytes)
	if err != nil {
		return err
	}
	return s.PutChunk(c)
}

// PutChunk is Put of a chunk that was summed before.
func (s *Store) PutChunk(c Chunk) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.ops.Done()
	if s.readOnly {
		return ErrReadOnly
	}
	a := s.appenderOf(c.ref.Length)
	a.turn.Lock()
	defer a.turn.Unlock()
	if held, err := s.holds(c.ref); held || err != nil {
		return err
	}
	en, err := s.append(a, c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.unlist(c.ref.ID); old != nil {
		s.replaced = append(s.replaced, replacement{file: old, until: s.written})
	}
	en.round = s.round
	s.list(en)
	return nil
}

// holds reports whether ref needs no write, or the error that forbids it.
func (s *Store) holds(ref Ref) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return false, s.failed
	}
	_, c := s.find(ref.ID)
	if c == nil {
		return false, nil
	}
	if c.ref() != ref {
		return false, fmt.Errorf("%w: %s: the id holds %s", ErrMismatch, ref, c.ref())
	}
	c.round = s.round // See collect.go.
	return c.state == sound, nil
}

// Durable reports whether the chunk is held, whole as far as is known, and covered
// by a Sync. What Open found is durable when Open returns; in a store opened by
// OpenReadOnly only what lies below a mark is. The answer pins the chunk: Sweep leaves it
// for this round and the next, since the caller may be about to name it.
func (s *Store) Durable(id ChunkID) bool {
	return s.touch(id, false) || s.opts.Base != nil && s.opts.Base.Durable(id)
}

// Name is Durable for a caller that is about to name the chunk in an entry of its log, unless its change is refused.
func (s *Store) Name(id ChunkID) bool {
	return s.touch(id, true) || s.opts.Base != nil && s.opts.Base.Durable(id)
}

// touch pins a chunk and reports whether it is durable here.
func (s *Store) touch(id ChunkID, names bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, c := s.find(id)
	if c == nil {
		return false
	}
	c.round, c.named = s.round, c.named || names // See collect.go.
	return c.state == sound && c.end() <= e.synced
}

// Failed returns why the store is out of service, nil while it serves.
func (s *Store) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Delete drops a chunk from memory; that nothing names it any more is the caller's
// to know (R9). Its space is freed when all chunks of its extent are dead and the
// extent is sealed. Deleting what is not held is no error. An error means that an
// extent could not be dropped; the chunk is dead all the same, and the store is
// out of service.
func (s *Store) Delete(id ChunkID) error {
	_, err := s.drop(id, func(*cell) bool { return true })
	return err
}

// drop deletes a chunk if it is held and may, and reports whether it did. The store's mu
// is held while may is asked.
func (s *Store) drop(id ChunkID, may func(*cell) bool) (dropped bool, err error) {
	if err := s.begin(); err != nil {
		return false, err
	}
	defer s.ops.Done()
	if s.readOnly {
		return false, ErrReadOnly
	}
	s.mu.Lock()
	_, c := s.find(id)
	if c == nil || !may(c) {
		s.mu.Unlock()
		return false, nil
	}
	e := s.unlist(id)
	empty := e.sealed && e.cells.live() == 0
	s.mu.Unlock()
	if empty {
		if err := s.reap(e); err != nil {
			return true, s.fail(err)
		}
	}
	return true, nil
}

// Refs returns what the store holds, in order of id, damaged chunks included: all that it
// held from the call to the return, in one place, and some of the others.
func (s *Store) Refs() []Ref {
	var refs []Ref
	some := make([]Ref, 0, holdSteps)
	s.eachChunk(&cursor{}, nil, func(_ *file, c *cell) bool {
		some = append(some, c.ref())
		return true
	}, func() bool {
		refs, some = append(refs, some...), some[:0]
		return true
	})
	sortRefs(refs)
	return refs
}

// Damaged returns some of the chunks that answer ErrCorrupt, at most limit, in order of id,
// for a caller that fetches them from a peer and puts them again.
func (s *Store) Damaged(limit int) []Ref {
	var refs []Ref
	s.eachChunk(&cursor{}, hasDamaged, func(_ *file, c *cell) bool {
		if c.state == damaged && len(refs) < limit {
			refs = append(refs, c.ref())
		}
		return len(refs) < limit
	}, func() bool { return len(refs) < limit })
	sortRefs(refs)
	return refs
}

func sortRefs(refs []Ref) {
	slices.SortFunc(refs, func(a, b Ref) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

// Stats is a count of what the store holds at one moment.
type Stats struct {
	// Chunks and Bytes count what is held, and its payload.
	Chunks int
	Bytes  int64
	// Extents and FileBytes count the files and all that is in them, dead chunks,
	// headers and CRCs included, room taken ahead not.
	Extents   int
	FileBytes int64
	// Spares counts the files that wait to be used again.
	Spares int
	// FreedBytes counts what was in the files dropped since Open, because nothing lived in
	// them any more: unlinked, or made spares.
	FreedBytes uint64
	// Releases counts the pins and holds that ended since Open after a sweep had left something for them.
	Releases uint64
	// Damaged counts the chunks, among Chunks, that answer ErrCorrupt, and Corrupted all
	// that were found damaged since Open.
	Damaged   int
	Corrupted uint64
	// LostBytes counts durable bytes that Open could not recognize: chunks were in
	// there whose names are lost.
	LostBytes int64
}

// Stats returns the present counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Chunks: len(s.index), Bytes: s.bytes, Extents: len(s.files), FileBytes: s.fileBytes, Damaged: s.damaged, Corrupted: s.corrupted,
		LostBytes: s.lost, Spares: len(s.spares), FreedBytes: s.freed, Releases: s.releases,
	}
}

// Close waits for the calls in progress, makes durable what was put, and closes
// the files. A second Close returns what the first did. An error means that some of
// what was put since the last Sync may be lost.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.ops.Wait()
		s.closeErr = s.shut()
	})
	return s.closeErr
}

func (s *Store) shut() error {
	s.metrics.unregister()
	errs := []error{s.finish()}
	s.mu.Lock()
	files := s.files
	s.files, s.order, s.index = map[uint64]*file{}, nil, map[ChunkID]cellRef{}
	s.mu.Unlock()
	for _, e := range files {
		if e.w != nil {
			errs = append(errs, e.w.Close())
		}
		s.unref(e)
	}
	return errors.Join(errs...)
}

// finish syncs what is dirty and seals the active files, so that the next Open has
// nothing to prove. No call is in progress.
func (s *Store) finish() error {
	s.mu.Lock()
	var files []*file
	if s.failed == nil && s.synced < s.written {
		files = s.flush()
	}
	err := s.failed
	s.mu.Unlock()
	err = errors.Join(err, s.releaseFlushed(files))
	for _, a := range []*appender{&s.small, &s.paged} {
		if err == nil && a.active != nil {
			err = s.seal(a, true)
		}
	}
	if err != nil {
		return s.fail(err)
	}
	return nil
}

// begin enters a call, unless the store is closed.
func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.ops.Add(1)
	return nil
}

// fail takes the store out of service, if it is not yet, and returns the first
// failure.
func (s *Store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failLocked(err)
}

func (s *Store) failLocked(err error) error {
	if s.failed == nil {
		s.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return s.failed
}

// takeBuf returns a buffer of n bytes from the pool.
func takeBuf(pool *sync.Pool, n int) *[]byte {
	buf, ok := pool.Get().(*[]byte)
	if !ok || cap(*buf) < n {
		b := make([]byte, n)
		return &b
	}
	*buf = (*buf)[:n]
	return buf
}
