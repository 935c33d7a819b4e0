package extent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/internal/plantedbugs"
)

// scrubRound is how far a round of Scrub has come.
type scrubRound struct {
	// at is the chunk to be looked at next.
	at  cursor
	buf []byte
}

// Scrub reads and checks the next chunk, header and trailer included, past the page cache where the
// file system lets us: what is in memory says nothing about the disk. It returns the chunk, and
// ErrCorrupt if it is damaged, from now on for every read: the caller fetches it from a peer and
// puts it again. io.EOF ends a round, in which every chunk was looked at that was held all the time
// in one place; the next call begins another. Compact checks a chunk that it copies meanwhile, and
// the copy may be left to the next round. One call reads 4 MiB at most; the caller sees to the
// pace. It starts no goroutine, and calls of Scrub and Compact wait for each other.
func (s *Store) Scrub(ctx context.Context) (Ref, error) {
	if err := s.begin(); err != nil {
		return Ref{}, err
	}
	defer s.ops.Done()
	s.stepping.Lock()
	defer s.stepping.Unlock()
	round := &s.scrubbing
	if err := ctx.Err(); err != nil {
		return Ref{}, err
	}
	var next entry
	s.eachChunk(&round.at, nil, func(e *file, c *cell) bool {
		e.refs++
		next = entry{e, *c}
		return false
	}, func() bool { return next.file == nil })
	if next.file == nil {
		*round = scrubRound{}
		return Ref{}, io.EOF
	}
	defer s.unref(next.file)
	if next.state == damaged {
		return next.ref(), fmt.Errorf("%w: %s in %s at %d", ErrCorrupt, next.id, next.file.path, next.offset)
	}
	return next.ref(), s.scrub(next, &round.buf)
}

func (s *Store) scrub(en entry, buf *[]byte) error {
	b, err := s.fromDisk(en, buf)
	if err == nil && !plantedbugs.Planted(plantedbugs.ScrubBlind) {
		err = sliceRun{en}.checkAll(b)
	}
	if err != nil {
		s.setDamaged(en)
	}
	return err
}

// fromDisk reads the whole room of a chunk. The bytes are in *buf.
func (s *Store) fromDisk(en entry, buf *[]byte) ([]byte, error) {
	from, to := en.offset/pageBytes*pageBytes, roundUp(en.end(), pageBytes)
	if int64(len(*buf)) < to-from {
		*buf = alignedBytes(int(to - from))
	}
	b := (*buf)[:to-from]
	if s.fs == vfs.Default && osReader {
		// The pages at both ends may be longer than the file. A failure to open means that
		// O_DIRECT is refused, or that the file was unlinked meanwhile; then r has it.
		n, err := readDirect(en.file.path, b, from)
		if int64(n) >= en.end()-from && (err == nil || errors.Is(err, io.EOF)) {
			return b[en.offset-from : en.end()-from], nil
		}
	}
	b = b[:en.bytes()]
	if err := readFull(en.file.r, b, en.offset); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, en.file.path, err)
	}
	return b, nil
}
