package extent

import (
	"context"
	"fmt"
)

// Sync returns nil when everything whose Put returned before this call is durable.
// Callers that come while an fdatasync runs wait for the next one and share it; one
// of them carries it out. If ctx ends first the caller gets ctx's error and knows
// nothing about its chunks; but the one that carries out the fdatasync sees it through.
// After the first failed write or fsync every Sync returns that failure.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.ops.Done()
	if s.readOnly {
		return ErrReadOnly
	}
	s.mu.Lock()
	target := s.written
	for s.failed == nil && s.synced < target {
		if err := ctx.Err(); err != nil {
			s.mu.Unlock()
			return err
		}
		if running := s.syncing; running != nil {
			s.mu.Unlock()
			select {
			case <-running:
			case <-ctx.Done():
				return ctx.Err()
			}
			s.mu.Lock()
			continue
		}
		files := s.flush()
		s.mu.Unlock()
		if err := s.releaseFlushed(files); err != nil {
			_ = s.fail(err) // the loop's end returns it
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return s.failed
}

// flush carries out one fdatasync of every dirty file. The caller holds mu, which
// is released meanwhile. The files returned carry a use each, which releaseFlushed gives back; it
// also does what must follow but nobody has to wait for.
func (s *Store) flush() []*file {
	done := make(chan struct{})
	s.syncing = done
	files, upto := s.dirty, s.written
	s.dirty = nil
	ends := make([]int64, len(files))
	for i, e := range files {
		ends[i] = e.size
		e.dirty = false
		e.refs++
	}
	s.mu.Unlock()

	began := s.opts.Clock.Mono()
	var err error
	for _, e := range files {
		if err = e.r.SyncData(); err != nil {
			err = fmt.Errorf("sync %s: %w", e.path, err)
			break
		}
	}
	s.metrics.observeSync(s.opts.Clock.Mono() - began)

	s.mu.Lock()
	s.syncing = nil
	close(done)
	if err != nil {
		_ = s.failLocked(err) // every caller looks at failed
		return files
	}
	s.synced = upto
	for i, e := range files {
		e.synced = max(e.synced, ends[i])
	}
	return files
}

// releaseFlushed gives back the files of a flush and drops those whose last chunks it replaced. The
// header of a file's next chunk, or its seal, records how far the file is durable. A separate write
// after each fdatasync would cost as much as a small chunk. Until the record reaches the disk, a
// restart only copies more than it has to.
func (s *Store) releaseFlushed(files []*file) error {
	for _, e := range files {
		s.unref(e)
	}
	s.mu.Lock()
	ready := 0
	for ready < len(s.replaced) && s.replaced[ready].until <= s.synced {
		ready++
	}
	replaced := s.replaced[:ready]
	s.replaced = s.replaced[ready:]
	s.mu.Unlock()
	var first error
	for _, r := range replaced {
		if first == nil {
			first = s.reap(r.file)
		}
	}
	return first
}
