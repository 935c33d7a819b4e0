package seglog

import (
	"errors"
	"fmt"

	"antipode/stamp/state"
)

// Files implements state.Verifier: the segments in use, of which something is durable.
func (l *Log) Files() ([]state.File, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []state.File
	for _, s := range l.chain {
		if s.synced > 0 {
			out = append(out, state.File{Path: s.path, Bytes: uint64(s.size)})
		}
	}
	return out, nil
}

// Verify implements state.Verifier: it reads a segment from the disk and checks it as
// Open would, up to where it is durable. The log goes on meanwhile; it takes memory of the
// size of the segment.
func (l *Log) Verify(f state.File) error {
	s, end, used := l.inUse(f.Path)
	if !used {
		return nil
	}
	if err := l.verify(s, end); err != nil {
		if _, _, used := l.inUse(f.Path); !used {
			return nil // It was read while it was being used again.
		}
		return err
	}
	return nil
}

// inUse finds a segment of the chain by its path, and up to where it is durable.
func (l *Log) inUse(path string) (s segment, end int64, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.chain {
		if s.path == path {
			return segment{number: s.number, path: s.path, inc: s.inc, size: s.size}, s.synced, true
		}
	}
	return segment{}, 0, false
}

func (l *Log) verify(s segment, end int64) (err error) {
	if s.file, err = l.fs.Open(s.path); err != nil {
		return fmt.Errorf("%w: %w", state.ErrLogCorrupt, err)
	}
	defer func() { err = errors.Join(err, s.file.Close()) }()
	state.Forget(s.file)
	sc, err := scan(&s)
	if err != nil {
		return fmt.Errorf("%w: %w", state.ErrLogCorrupt, err) // What cannot be read is as lost.
	}
	if _, ok := sc.proven(end); !ok || sc.header.inc != s.inc {
		return corrupt(&s, sc.end, "not intact up to %d, where it was durable", end)
	}
	return nil
}
