package state

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/internal/malloc"
	"antipode/stamp/kv"
)

// Of the state's tables, before compression. A read that misses the cache takes a whole
// block; an index block is read once and kept.
const (
	tableBlockBytes = 16 << 10
	tableIndexBytes = 256 << 10
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// ErrClosed: the node was stopped.
var ErrClosed = errors.New("state: the state store is closed")

// Store is a node's state store. Methods may be called concurrently, also with
// Close: readers hold ranges of nodes that others stop, and Pebble panics when it is
// read after its end. They get ErrClosed.
type Store struct {
	db   *pebble.DB
	opts *pebble.Options
	fs   vfs.FS
	dir  string

	wiped    wiped         // see reclaim.go
	reads    atomic.Uint64 // see Reads
	pressure pressure      // see Pressed

	// failure is the first error that took the store out of service.
	failure atomic.Pointer[error]

	mu     sync.RWMutex // held while closed is set and users is added to; for memory work only
	closed atomic.Bool
	// users are the calls under way and the open iterators and snapshots, for which
	// Close waits. Added to under mu while not closed.
	users sync.WaitGroup
}

// enter admits a reader, or reports that there is nothing to read any more; leave must
// follow.
func (s *Store) enter() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed.Load() {
		return ErrClosed
	}
	s.users.Add(1)
	return nil
}

func (s *Store) leave() { s.users.Done() }

// Open opens or creates the state store in dir. An error that is Damaged: what is in
// the folder is not what was written.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	p := o.pebbleOptions()
	p.DisableWAL = true
	p.MemTableSize = o.StateMemTableBytes
	// While the store is smaller than LBaseMaxBytes a compaction of L0 writes all of it
	// again; filters make many tables cheap to ask.
	p.L0CompactionThreshold = 12
	for i := range p.Levels {
		p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		// Pebble's 4 KiB would make a block of every large row, and then an index of two levels.
		p.Levels[i].BlockSize = tableBlockBytes
		p.Levels[i].IndexBlockSize = tableIndexBytes
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	}
	// What a flush writes is written again by the next compaction: the processor time of
	// compressing it is lost.
	p.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	// With the WAL off a flushable ingest is not durable when it returns.
	p.Experimental.DisableIngestAsFlushable = func() bool { return true }
	s := &Store{opts: p, fs: o.FS, dir: dir, pressure: pressure{notify: o.Eased}}
	p.FS = readFS{o.FS, &s.reads}
	p.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) {
			p.Logger.Errorf("background error: %s", err)
			if pebble.IsCorruptionError(err) {
				err = fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			s.fail(err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.fail(fmt.Errorf("%w: %s: %w", ErrDamaged, info.Path, info.Details))
		},
	}
	s.pressure.listen(p.EventListener)
	if c := o.Shared; c != nil {
		p.EventListener.TableCreated = func(pebble.TableCreateInfo) { c.freed.created(c.CacheBytes()) }
		p.EventListener.TableDeleted = func(pebble.TableDeleteInfo) { c.freed.deleted(c.CacheBytes(), func() { malloc.Trim() }) }
	}
	p.EnsureDefaults()
	if err := checkFormat(o.FS, dir); err != nil {
		return nil, fmt.Errorf("open state store: %w", err)
	}
	if err := CheckDamaged(o.FS, dir); err != nil && !o.ReadOnly { // To look at it is allowed.
		return nil, fmt.Errorf("open state store %s: %w", dir, err)
	}
	err := checkManifest(o.FS, dir)
	if err == nil {
		err = dropDamagedOptions(dir, p)
	}
	if err == nil {
		s.db, err = pebble.Open(dir, p)
	}
	if err != nil {
		return nil, fmt.Errorf("open state store %s: %w", dir, err)
	}
	return s, nil
}

// fail takes the store out of service. The first reason is kept.
func (s *Store) fail(err error) { s.failure.CompareAndSwap(nil, &err) }

// Failed returns why the store is out of service, nil while it serves: a flush or a
// compaction failed, or a read came upon damage, which is ErrDamaged. Pebble tries a flush
// again for ever; the owner must close the store instead.
func (s *Store) Failed() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// tableOptions are those of tables that the store can ingest.
func (s *Store) tableOptions() sstable.WriterOptions {
	return s.opts.MakeWriterOptions(len(s.opts.Levels)-1, s.db.TableFormat())
}

// Batch collects the writes of one apply.
type Batch struct{ b *pebble.Batch }

// NewBatch returns an empty batch.
func (s *Store) NewBatch() *Batch { return &Batch{s.db.NewBatch()} }

// NewBatchOf returns an empty batch with room for so many bytes, so that it need not be copied as it grows.
func (s *Store) NewBatchOf(bytes int) *Batch { return &Batch{s.db.NewBatchWithSize(bytes)} }

// Set sets key to value; both are copied.
func (b *Batch) Set(key, value []byte) error { return b.b.Set(key, value, nil) }

// Delete deletes key.
func (b *Batch) Delete(key []byte) error { return b.b.Delete(key, nil) }

// SingleDelete deletes a key that was set exactly once since it last was absent:
// set and deletion annihilate at the next flush, which is how the outbox costs
// little (DESIGN 2.4).
func (b *Batch) SingleDelete(key []byte) error { return b.b.SingleDelete(key, nil) }

// DeleteRange deletes the keys of [lower, upper) in one operation. Reads become slower with the
// number of such operations in memory: it is for long runs of keys.
func (b *Batch) DeleteRange(lower, upper []byte) error { return b.b.DeleteRange(lower, upper, nil) }

// Close drops a batch that was not committed.
func (b *Batch) Close() error { return b.b.Close() }

// Commit applies the batch. It is not durable: the log is. It may wait for the disk: see Pressed.
func (s *Store) Commit(b *Batch) error {
	s.pressure.written.Add(int64(b.b.Len()) + int64(b.b.Count())*entryBytes)
	return s.db.Apply(b.b, pebble.NoSync)
}

// Get implements kv.Getter on the newest state.
func (s *Store) Get(key []byte) ([]byte, bool, error) {
	if err := s.enter(); err != nil {
		return nil, false, err
	}
	defer s.leave()
	return get(s.db, key)
}

func get(r pebble.Reader, key []byte) ([]byte, bool, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	out := append([]byte(nil), v...)
	return out, true, closer.Close()
}

// Scan returns an iterator over the newest state; it sees one moment.
func (s *Store) Scan(lower, upper []byte) (kv.Iterator, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	it, err := scan(s.db, lower, upper)
	if err != nil {
		s.leave()
		return nil, err
	}
	it.state, it.leave = s, s.leave
	return it, nil
}

// ScanDurable is Scan of what a crash would leave.
func (s *Store) ScanDurable(lower, upper []byte) (kv.Iterator, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper, OnlyReadGuaranteedDurable: true})
	if err != nil {
		s.leave()
		return nil, err
	}
	return &iterator{it: it, state: s, leave: s.leave}, nil
}

func scan(r pebble.Reader, lower, upper []byte) (*iterator, error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	return &iterator{it: it}, nil
}

// Snapshot is a kv.Reader of one moment.
type Snapshot struct {
	state *Store
	s     *pebble.Snapshot // nil where the store was closed before
}

// NewSnapshot returns a view of the state now. Close it. Of a closed store every
// read of the snapshot is ErrClosed.
func (s *Store) NewSnapshot() *Snapshot {
	if s.enter() != nil {
		return &Snapshot{state: s}
	}
	return &Snapshot{s, s.db.NewSnapshot()}
}

// Get implements kv.Reader.
func (s *Snapshot) Get(key []byte) ([]byte, bool, error) {
	if s.s == nil || s.state.closed.Load() {
		return nil, false, ErrClosed
	}
	return get(s.s, key)
}

// Scan implements kv.Reader.
func (s *Snapshot) Scan(lower, upper []byte) (kv.Iterator, error) {
	if s.s == nil || s.state.closed.Load() {
		return nil, ErrClosed
	}
	it, err := scan(s.s, lower, upper)
	if err != nil {
		return nil, err
	}
	it.state = s.state
	return it, nil
}

// Close releases the snapshot.
func (s *Snapshot) Close() error {
	if s.s == nil {
		return nil
	}
	defer s.state.leave()
	return s.s.Close()
}

type iterator struct {
	it      *pebble.Iterator
	state   *Store // nil for an iterator of a log
	started bool
	// ended is set when the store was closed before the iterator came to its end.
	ended bool
	// leave is called once by Close; nil where a snapshot holds the store open.
	leave func()
}

// goesOn is false once the store is being closed: Close waits for iterators, and a scan may
// be long.
func (i *iterator) goesOn() bool {
	i.ended = i.ended || i.state != nil && i.state.closed.Load()
	return !i.ended
}

func (i *iterator) Next() bool {
	if !i.goesOn() {
		return false
	}
	if !i.started {
		i.started = true
		return i.it.First()
	}
	return i.it.Next()
}

func (i *iterator) SeekGE(key []byte) bool {
	i.started = true
	return i.goesOn() && i.it.SeekGE(key)
}

func (i *iterator) Key() []byte   { return i.it.Key() }
func (i *iterator) Value() []byte { return i.it.Value() }

func (i *iterator) Close() error {
	if i.leave != nil {
		defer i.leave()
	}
	var ended error
	if i.ended {
		ended = ErrClosed
	}
	return errors.Join(ended, i.it.Error(), i.it.Close())
}

// GetDurable reads key from what a crash would leave.
func (s *Store) GetDurable(key []byte) ([]byte, bool, error) {
	if err := s.enter(); err != nil {
		return nil, false, err
	}
	defer s.leave()
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: key, UpperBound: append(append([]byte(nil), key...), 0),
		OnlyReadGuaranteedDurable: true,
	})
	if err != nil {
		return nil, false, err
	}
	var out []byte
	found := it.First()
	if found {
		out = append(out, it.Value()...)
	}
	return out, found, errors.Join(it.Error(), it.Close())
}

// Flush makes everything committed so far durable and waits for it.
func (s *Store) Flush() error { return s.db.Flush() }

// AsyncFlush starts a flush; the channel closes when it is done.
func (s *Store) AsyncFlush() (<-chan struct{}, error) { return s.db.AsyncFlush() }

// Close ends scans under way with ErrClosed, waits for readers and closes the store. What
// was not flushed is recovered from the log.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed.Store(true)
	s.mu.Unlock()
	s.users.Wait()
	return s.db.Close()
}
