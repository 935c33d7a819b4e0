package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cockroachdb/pebble/v2/sstable"
)

// File is a file of a store that is in use.
type File struct {
	Path string
	// Bytes is how much of it there is to read.
	Bytes uint64
}

// Verifier is a store whose files can be read and checked while it is in use, by any
// goroutine.
type Verifier interface {
	// Files lists the files in use.
	Files() ([]File, error)
	// Verify reads a file and checks all of it that is still wanted. ErrDamaged,
	// ErrLogCorrupt: it is damaged. Nil too where the file is no longer in use.
	Verify(f File) error
}

// Files lists the files of the tables in use, each once: a file of which several virtual
// tables show parts is read whole. Those of the memtable's rows do not exist yet.
func (s *Store) Files() ([]File, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, fmt.Errorf("list tables of %s: %w", s.dir, err)
	}
	seen := map[string]struct{}{}
	var out []File
	for _, level := range levels {
		for _, t := range level {
			path := s.fs.PathJoin(s.dir, t.BackingSSTNum.String()+".sst")
			if _, twice := seen[path]; twice {
				continue
			}
			seen[path] = struct{}{}
			out = append(out, File{Path: path, Bytes: t.Size})
		}
	}
	return out, nil
}

// Verify reads every block of a table from the disk, past the store's caches, and
// checks its sum: also those of rows that are deleted or overwritten, which no read would
// come upon. It returns nil for a table that was compacted away meanwhile, and ErrDamaged
// for one that is damaged. The kernel's cache is asked to forget the file first, so that
// it is the disk that answers.
func (s *Store) Verify(t File) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.verify(t); err != nil {
		if used, listErr := s.uses(t); listErr != nil || !used {
			return listErr // It was read while it was being removed.
		}
		return fmt.Errorf("%w: table %s: %w", ErrDamaged, t.Path, err)
	}
	return nil
}

func (s *Store) verify(t File) (err error) {
	f, err := s.fs.Open(t.Path)
	if err != nil {
		return err
	}
	Forget(f)
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	// A footer whose damage passes for another format makes the reader panic.
	defer func() {
		if r := recover(); r != nil {
			// Damage, or a bug: the stack shows which.
			s.opts.Logger.Errorf("check of %s gave up: %v\n%s", t.Path, r, debug.Stack())
			err = fmt.Errorf("not readable: %v", r)
		}
	}()
	r, err := sstable.NewReader(context.Background(), readable, s.opts.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// uses reports whether a table is still in use. A file that is gone is used too, if the
// store says so: that is damage.
func (s *Store) uses(t File) (bool, error) {
	tables, err := s.Files()
	if err != nil {
		return false, err
	}
	for _, u := range tables {
		if u.Path == t.Path {
			return true, nil
		}
	}
	return false, nil
}
