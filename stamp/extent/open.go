package extent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const folderMode os.FileMode = 0o755

// Open opens the store in dir, which it makes if need be (its parent must exist and
// be durable). All that is found intact is durable when it returns. Damage is no
// error here: it is ErrCorrupt for the chunk it hit, and counted by Stats. An error
// means that the folder could not be read or written, or holds a newer format; what cannot
// be read cannot be classified, so nothing was removed.
func Open(fs vfs.FS, dir string, opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if err := fs.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	if err := syncDir(fs, fs.PathDir(dir)); err != nil {
		return nil, err
	}
	s := newStore(fs, dir, opts)
	err := s.load()
	if err == nil {
		err = s.prove()
	}
	if err == nil {
		s.metrics, err = newMetrics(s.opts.Registerer, s.Stats)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open extents in %s: %w", dir, err), s.abandon())
	}
	return s, nil
}

// OpenReadOnly opens the store in dir and changes nothing there: it writes, syncs, makes and
// removes nothing. It is for looking at the folder of a process that has ended. Chunks that Open
// would copy because no record vouches for them can be read, and Durable is false for them. Put,
// Sync and Delete return ErrReadOnly.
func OpenReadOnly(fs vfs.FS, dir string, opts Options) (*Store, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	s := newStore(fs, dir, opts)
	s.readOnly = true
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open extents in %s: %w", dir, err), s.abandon())
	}
	return s, nil
}

func newStore(fs vfs.FS, dir string, opts Options) *Store {
	return &Store{
		fs: fs, dir: dir, opts: opts.withDefaults(), nextNumber: 1,
		index: map[ChunkID]cellRef{}, held: map[ChunkID]int{}, files: map[uint64]*file{}, round: 1, full: 1, ended: true,
		small: appender{unit: recordBytes}, paged: appender{unit: pageBytes},
	}
}

// abandon closes the files of a store that did not open.
func (s *Store) abandon() error {
	s.mu.Lock()
	_ = s.failLocked(errors.New("open failed")) // so that Close writes nothing
	s.mu.Unlock()
	if err := s.Close(); !errors.Is(err, ErrFailed) {
		return err
	}
	return nil
}

// load builds the index from the files.
func (s *Store) load() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return fmt.Errorf("list folder: %w", err)
	}
	var numbers []uint64
	for _, name := range names {
		if number, ok := parseFileName(name); ok {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		s.nextNumber = number + 1
		if err := s.loadFile(number); err != nil {
			return fmt.Errorf("%s: %w", fileName(number), err)
		}
	}
	return nil
}

func (s *Store) loadFile(number uint64) error {
	e := &file{number: number, path: s.fs.PathJoin(s.dir, fileName(number)), sealed: true, refs: 1}
	var err error
	if e.r, err = s.fs.Open(e.path); err != nil {
		return err
	}
	s.addFile(e)
	info, err := e.r.Stat()
	if err != nil {
		return err
	}
	content, err := scan(e.r, info.Size())
	if err != nil {
		return err
	}
	s.setSize(e, min(content.end, info.Size()))
	e.synced = e.size
	e.inc = content.inc
	e.keep, e.lost = content.lost > 0, content.lost
	e.blank = !content.headerLost && len(content.chunks) == 0 && !content.sealed
	s.lost += content.lost
	for _, f := range content.chunks {
		if err := s.adopt(e, f, content.synced); err != nil {
			return err
		}
	}
	return nil
}

// adopt enters a chunk that the scan found, if it is or was whole.
func (s *Store) adopt(e *file, f found, synced int64) error {
	en := entry{e, cell{id: f.ref.ID, offset: f.offset, length: f.ref.Length, crc: f.ref.CRC, sliceBytes: f.sliceBytes, unit: f.unit}}
	switch {
	case f.end() <= synced && f.headerLost:
		en.state = damaged
	case f.end() <= synced:
		en.state = sound
	default:
		whole, err := s.whole(f, en)
		if err != nil {
			return err
		}
		if !whole {
			return nil // torn, and never acknowledged
		}
		en.state = unproven
	}
	_, old := s.find(f.ref.ID)
	if old != nil && en.state == damaged && old.state != damaged && old.ref() == f.ref {
		return nil
	}
	// Else the later copy counts: it repaired the earlier one, or was put after that
	// was deleted.
	s.unlist(f.ref.ID)
	s.list(en)
	return nil
}

// whole reports whether every byte of a chunk is there that was found where no record
// vouches for it.
func (s *Store) whole(f found, en entry) (bool, error) {
	if f.headerLost || f.end() > en.file.size {
		return false, nil
	}
	buf := make([]byte, f.end()-f.offset) // At open only, for what a crash left.
	if err := readFull(en.file.r, buf, f.offset); err != nil {
		return false, err
	}
	return sliceRun{en}.checkAll(buf) == nil, nil
}

// prove makes durable what load found. A sync of the old files is not enough for
// what no record vouches for (see the package text), so that is copied.
func (s *Store) prove() error {
	var copies []Ref // In order of their places, as load listed them.
	s.eachChunk(&cursor{}, func(e *file) bool { return e.cells.states[unproven] > 0 }, func(_ *file, c *cell) bool {
		if c.state == unproven {
			copies = append(copies, c.ref())
		}
		return true
	}, func() bool { return true })
	olds := slices.Clone(s.order)
	for _, e := range olds {
		if err := e.r.SyncData(); err != nil {
			return fmt.Errorf("sync %s: %w", e.path, err)
		}
	}
	if err := syncDir(s.fs, s.dir); err != nil {
		return err
	}
	data := make([]byte, 0)
	for _, ref := range copies {
		data = slices.Grow(data[:0], int(ref.Length))[:ref.Length]
		if _, err := s.Read(ref, 0, data); err != nil {
			return fmt.Errorf("copy %s: %w", ref, err)
		}
		if err := s.Put(ref, data); err != nil {
			return err
		}
	}
	if err := s.Sync(context.Background()); err != nil {
		return err
	}
	for _, e := range olds {
		if err := s.reap(e); err != nil {
			return err
		}
	}
	return nil
}
