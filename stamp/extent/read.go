package extent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// runBytesMax is the payload that one read call takes from a file at most.
const runBytesMax = 256 << 10

// Read fills p from offset off of the chunk, as io.ReaderAt does: fewer bytes than
// len(p) come with an error, io.EOF at the chunk's end. Each slice touched is
// checked before a byte of it is copied. ErrNotFound: nothing is held under the id.
// ErrMismatch: another chunk is. ErrCorrupt: this copy is damaged, from now on for
// every read, until a Put repairs it. Reads go on after a failed write.
func (s *Store) Read(ref Ref, off int64, p []byte) (int, error) {
	n := 0
	err := s.each(ref, off, int64(len(p)), func(part []byte) error {
		n += copy(p[n:], part)
		return nil
	})
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// each hands the checked bytes [off, off+n) of a chunk to fn, part by part, up to
// the chunk's end. A part is valid during the call only.
func (s *Store) each(ref Ref, off, n int64, fn func(part []byte) error) error {
	if off < 0 || off > int64(ref.Length) {
		return fmt.Errorf("read chunk %s: offset %d is outside its %d bytes", ref.ID, off, ref.Length)
	}
	en, err := s.acquire(ref)
	if err != nil {
		return err
	}
	defer s.ops.Done()
	defer s.unref(en.file)
	run := sliceRun{id: ref.ID, entry: en}
	buf := takeBuf(&s.readBufs, run.bytesMax())
	defer s.readBufs.Put(buf)
	var fnErr error // fn's own errors say nothing about the chunk
	handOut := func(part []byte) error {
		fnErr = fn(part)
		return fnErr
	}
	for end := off + min(n, int64(ref.Length)-off); off < end; {
		took, err := run.read(*buf, off, end, handOut)
		if err != nil {
			if fnErr == nil && errors.Is(err, ErrCorrupt) {
				s.setDamaged(ref.ID, en)
			}
			return err
		}
		off += took
	}
	return nil
}

// acquire looks a chunk up and takes a use of its file, and enters the call.
func (s *Store) acquire(ref Ref) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return entry{}, ErrClosed
	}
	en, ok := s.index[ref.ID]
	switch {
	case !ok:
		return entry{}, fmt.Errorf("%w: %s", ErrNotFound, ref.ID)
	case en.ref(ref.ID) != ref:
		return entry{}, fmt.Errorf("%w: %s: the id holds %s", ErrMismatch, ref, en.ref(ref.ID))
	case en.state == damaged:
		return entry{}, fmt.Errorf("%w: %s in %s at %d", ErrCorrupt, ref.ID, en.file.path, en.offset)
	}
	en.file.refs++
	s.ops.Add(1)
	return en, nil
}

// setDamaged notes that the copy described by en is no good, unless another has
// taken its place.
func (s *Store) setDamaged(id ChunkID, en entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index[id] != en || en.state == damaged {
		return
	}
	en.state = damaged
	s.index[id] = en
	s.damaged++
}

// sliceRun reads neighbouring slices of one chunk.
type sliceRun struct {
	id ChunkID
	entry
}

// slicesMax is the number of slices in one read call.
func (r sliceRun) slicesMax() int64 { return max(1, runBytesMax/int64(r.sliceBytes)) }

func (r sliceRun) bytesMax() int {
	return int(r.slicesMax() * int64(r.sliceBytes+crcBytes))
}

// read takes the slices from the one that holds off on, as many as fit in buf, and
// hands what lies in [off, end) to fn. It returns how many bytes that was. A slice
// that cannot be read is as lost as one that fails its CRC.
func (r sliceRun) read(buf []byte, off, end int64, fn func(part []byte) error) (int64, error) {
	size := int64(r.sliceBytes)
	first := off / size
	stop := min((first+r.slicesMax())*size, (end+size-1)/size*size, int64(r.length))
	count := (stop - first*size + size - 1) / size
	buf = buf[:stop-first*size+count*crcBytes]
	if err := readFull(r.file.r, buf, r.offset+recordBytes+first*(size+crcBytes)); err != nil {
		return 0, fmt.Errorf("%w: %s: read %s: %w", ErrCorrupt, r.id, r.file.path, err)
	}
	return min(stop, end) - off, r.check(buf, first, off, end, fn)
}

// check takes encoded slices, of which the first has the number first, and hands
// what lies in [off, end) of the payload to fn, slice by slice.
func (r sliceRun) check(buf []byte, first, off, end int64, fn func(part []byte) error) error {
	size := int64(r.sliceBytes)
	for number := first; len(buf) > 0; number++ {
		start := number * size
		n := min(size, int64(r.length)-start)
		slice, sum := buf[:n], binary.LittleEndian.Uint32(buf[n:])
		if sliceCRC(r.id, uint32(number), slice) != sum {
			return fmt.Errorf("%w: %s in %s at %d: slice %d fails its CRC",
				ErrCorrupt, r.id, r.file.path, r.offset, number)
		}
		buf = buf[n+crcBytes:]
		if err := fn(slice[max(0, off-start):min(n, end-start)]); err != nil {
			return err
		}
	}
	return nil
}

// NewReader streams [off, off+n) of a chunk, at most to its end; n below 0 means to
// the end. Every byte it returns is checked, and errors are those of Read. It also
// implements io.WriterTo, which copies once less. It is not for concurrent use, and
// has nothing to close. The caller sees to it that the chunk is not deleted
// meanwhile (R9). During WriteTo, Close waits.
func (s *Store) NewReader(ref Ref, off, n int64) io.Reader {
	if rest := int64(ref.Length) - off; n < 0 || n > rest {
		n = max(0, rest)
	}
	return &reader{s: s, ref: ref, off: off, end: off + n}
}

type reader struct {
	s        *Store
	ref      Ref
	off, end int64
	// ahead is checked and not yet returned: small reads would check a slice again
	// for each of them.
	ahead []byte
	buf   []byte
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(r.ahead) > 0 {
		n := copy(p, r.ahead)
		r.ahead = r.ahead[n:]
		return n, nil
	}
	if r.off == r.end {
		return 0, io.EOF
	}
	want := min(int64(len(p)), r.end-r.off)
	if want == r.end-r.off || want >= sliceBytesMax {
		n, err := r.s.Read(r.ref, r.off, p[:want])
		r.off += int64(n)
		return n, err
	}
	if r.buf == nil {
		r.buf = make([]byte, sliceBytesMax)
	}
	n, err := r.s.Read(r.ref, r.off, r.buf[:min(sliceBytesMax, r.end-r.off)])
	r.off += int64(n)
	r.ahead = r.buf[:n]
	if n == 0 && err != nil {
		return 0, err
	}
	n = copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil // an error comes again at the next Read
}

// WriteTo implements io.WriterTo.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(r.ahead)
	total := int64(n)
	r.ahead = r.ahead[n:]
	if err != nil || r.off == r.end {
		return total, err
	}
	err = r.s.each(r.ref, r.off, r.end-r.off, func(part []byte) error {
		n, err := w.Write(part)
		total += int64(n)
		r.off += int64(n)
		return err
	})
	return total, err
}
