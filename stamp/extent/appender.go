package extent

import (
	"fmt"
	"io"
	"sync"
)

// appender is the end of the store at which chunks of one layout are added: one for
// small chunks and one for those of whole pages, so that neither waits for the other's
// writes.
type appender struct {
	// unit is recordBytes or pageBytes; see record.unit.
	unit uint32

	// turn is the right to append: it orders the writes of the active file. It is the one lock held
	// over I/O. The file system would queue the writers of one file in any case. A place given out
	// before its write ends would leave a gap in the file if the write failed. Of two turns none is
	// taken while the other is held.
	turn sync.Mutex
	// active takes the next chunk; nil until there is one. Guarded by turn.
	active *file
	// buf is where chunks are laid out, on a page. Guarded by turn.
	buf []byte
}

// appenderOf returns where a chunk of that length goes.
func (s *Store) appenderOf(length uint32) *appender {
	if int64(length) >= int64(s.opts.PagedBytesMin) {
		return &s.paged
	}
	return &s.small
}

// room returns a.buf with n bytes at least. The caller holds turn.
func (a *appender) room(n int64) []byte {
	if int64(len(a.buf)) < n {
		a.buf = alignedBytes(int(roundUp(n, pageBytes)))
	}
	return a.buf
}

// append writes one chunk at the end of the active file and returns its place,
// without listing it. The caller holds a.turn.
func (s *Store) append(a *appender, c Chunk) (entry, error) {
	n := chunkBytes(c.ref.Length, c.sliceBytes, a.unit)
	e, err := s.writable(a, n)
	if err != nil {
		return entry{}, s.fail(err)
	}
	inPlace := a.unit == pageBytes && aligned(c.data)
	room := n
	if inPlace {
		room -= int64(len(c.data) / pageBytes * pageBytes)
	}
	s.mu.Lock()
	synced := e.synced
	s.mu.Unlock()
	parts := c.encode(a.room(room), e, synced, inPlace)
	if err := e.w.write(e.size, parts...); err != nil {
		return entry{}, s.fail(fmt.Errorf("write chunk %s to %s: %w", c.ref.ID, e.path, err))
	}
	en := entry{e, cell{id: c.ref.ID, offset: e.size, length: c.ref.Length, crc: c.ref.CRC, sliceBytes: c.sliceBytes, unit: a.unit}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setSize(e, e.size+n)
	s.written++
	if !e.dirty {
		e.dirty = true
		s.dirty = append(s.dirty, e)
	}
	return en, nil
}

// writable returns the active file with room for n bytes, sealing a full one and making
// the next. The caller holds a.turn.
func (s *Store) writable(a *appender, n int64) (*file, error) {
	if e := a.active; e != nil {
		if e.size+n+int64(a.unit) <= s.opts.ExtentBytesMax || e.size == pageBytes {
			return e, nil
		}
		if err := s.seal(a, false); err != nil {
			return nil, err
		}
	}
	e, err := s.createFile(a)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.addFile(e)
	s.mu.Unlock()
	a.active = e
	return e, nil
}

// createFile makes an extent, out of a spare if there is one, and returns when file and
// name are durable.
func (s *Store) createFile(a *appender) (*file, error) {
	s.mu.Lock()
	e := &file{number: s.nextNumber, out: a, refs: 1}
	s.nextNumber++
	spare := ""
	if last := len(s.spares) - 1; last >= 0 {
		spare = s.spares[last]
		s.spares = s.spares[:last]
	}
	s.mu.Unlock()
	e.path = s.fs.PathJoin(s.dir, fileName(e.number))
	var err error
	if e.inc, err = s.newIncarnation(e.number); err != nil {
		return nil, err
	}
	// A spare keeps its name until its header is durable: under the new, higher one its
	// old chunks would pass for later copies of theirs.
	path := e.path
	if spare != "" {
		path = spare
	}
	if e.w, err = s.openWriter(path, a.unit); err != nil {
		return nil, fmt.Errorf("create extent: %w", err)
	}
	if err := s.prepareFile(e, path); err != nil {
		_ = e.w.Close() // the error that counts is the first one
		return nil, err
	}
	e.size, e.synced = pageBytes, pageBytes
	return e, nil
}

func (s *Store) prepareFile(e *file, path string) error {
	page := e.out.room(pageBytes)[:pageBytes]
	encodeFileHeader(page, e.inc)
	err := e.w.write(0, page)
	if err != nil {
		return fmt.Errorf("write header of %s: %w", path, err)
	}
	if e.r, err = s.fs.Open(path); err != nil {
		return fmt.Errorf("open extent: %w", err)
	}
	err = e.r.Sync()
	if err == nil && path != e.path {
		err = s.fs.Rename(path, e.path)
	}
	if err == nil {
		err = syncDir(s.fs, s.dir)
	}
	if err != nil {
		_ = e.r.Close() // the error that counts is the first one
		return fmt.Errorf("make extent %s: %w", e.path, err)
	}
	return nil
}

// newIncarnation draws the incarnation of the file's next life.
func (s *Store) newIncarnation(number uint64) (inc incarnation, err error) {
	for i := range 4 {
		inc[i] = byte(number >> (8 * i))
	}
	s.drawing.Lock() // Both appenders may make a file at once.
	defer s.drawing.Unlock()
	if _, err := io.ReadFull(s.opts.Rand, inc[4:]); err != nil {
		return inc, fmt.Errorf("draw the incarnation of extent %d: %w", number, err)
	}
	return inc, nil
}

// seal ends the appending to the active file: all of it is durable when seal returns,
// and the seal behind its last chunk says so. With trim, room that was taken ahead is
// given back. The caller holds a.turn.
func (s *Store) seal(a *appender, trim bool) error {
	e := a.active
	a.active = nil
	if err := e.r.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", e.path, err)
	}
	b := a.room(int64(a.unit))[:a.unit]
	clear(b)
	record{magic: magicSeal, inc: e.inc, offset: e.size, synced: e.size}.encode(b[:recordBytes])
	err := e.w.write(e.size, b)
	end := e.size + int64(a.unit)
	if err == nil && trim {
		err = e.w.trim(end)
	}
	if err != nil {
		return fmt.Errorf("seal %s: %w", e.path, err)
	}
	if err := e.r.SyncData(); err != nil {
		return fmt.Errorf("sync the seal of %s: %w", e.path, err)
	}
	w := e.w
	e.w = nil
	if err := w.Close(); err != nil {
		return fmt.Errorf("close %s: %w", e.path, err)
	}
	s.mu.Lock()
	e.sealed = true
	s.setSize(e, end)
	e.synced = end
	s.mu.Unlock()
	return s.reap(e)
}
