package extent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"antipode/internal/plantedbugs"
)

// runBytesMax is the payload that one read call takes from a file at most.
const runBytesMax = 256 << 10

// Read fills p from offset off of the chunk, as io.ReaderAt does: fewer bytes than
// len(p) come with an error, io.EOF at the chunk's end. Each slice touched is checked
// before a byte of it is returned; whole ones are read straight into p. ErrNotFound:
// nothing is held under the id. ErrMismatch: another chunk is. ErrCorrupt: this copy is
// damaged, from now on for every read, until a Put repairs it. Reads go on after a
// failed write.
func (s *Store) Read(ref Ref, off int64, p []byte) (int, error) {
	run, scratch, err := s.beginRead(ref, off)
	if errors.Is(err, ErrNotFound) && s.opts.Base != nil {
		return s.opts.Base.Read(ref, off, p)
	}
	if err != nil {
		return 0, err
	}
	defer s.endRead(run, scratch)
	size, end := int64(run.sliceBytes), min(off+int64(len(p)), int64(ref.Length))
	n := 0
	for at := off; at < end; at = off + int64(n) {
		whole := (end - at) / size * size
		if end == int64(ref.Length) {
			whole = end - at
		}
		var got int64
		if at%size == 0 && whole > 0 {
			got, err = run.read(p[n:int64(n)+min(whole, run.bytesMax())], *scratch, at/size)
		} else {
			slice := (*scratch)[run.sumsMax():][:run.sliceLength(at/size)]
			if got, err = run.read(slice, *scratch, at/size); err == nil {
				got = int64(copy(p[n:], slice[at%size:min(end-at/size*size, got)]))
			}
		}
		n += int(got)
		if err != nil {
			s.setDamaged(run.entry)
			clear(p[n:]) // what failed its CRC leaves no trace
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// each passes the checked bytes [off, end) of a chunk to fn, part by part. A part is
// valid during the call only.
func (s *Store) each(ref Ref, off, end int64, fn func(part []byte) error) error {
	run, scratch, err := s.beginRead(ref, off)
	if err != nil {
		return err
	}
	defer s.endRead(run, scratch)
	size := int64(run.sliceBytes)
	for off < end {
		first := off / size
		stop := min(first*size+run.bytesMax(), roundUp(end, size), int64(ref.Length))
		part := (*scratch)[run.sumsMax():][:stop-first*size]
		got, err := run.read(part, *scratch, first)
		if err != nil {
			s.setDamaged(run.entry)
		}
		if part = part[min(off-first*size, got):min(end-first*size, got)]; len(part) > 0 {
			off += int64(len(part))
			if err := fn(part); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// beginRead looks a chunk up and lends what reading it takes: room for the CRCs of a run
// of slices and for the run.
func (s *Store) beginRead(ref Ref, off int64) (sliceRun, *[]byte, error) {
	if off < 0 || off > int64(ref.Length) {
		return sliceRun{}, nil, fmt.Errorf("read chunk %s: offset %d is outside its %d bytes", ref.ID, off, ref.Length)
	}
	en, err := s.acquire(ref)
	if err != nil {
		return sliceRun{}, nil, err
	}
	run := sliceRun{en}
	return run, takeBuf(&s.readBufs, int(run.sumsMax()+run.bytesMax())), nil
}

func (s *Store) endRead(run sliceRun, scratch *[]byte) {
	s.readBufs.Put(scratch)
	s.unref(run.file)
	s.ops.Done()
}

// acquire looks a chunk up and takes a use of its file, and enters the call.
func (s *Store) acquire(ref Ref) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return entry{}, ErrClosed
	}
	e, c := s.find(ref.ID)
	switch {
	case c == nil:
		return entry{}, fmt.Errorf("%w: %s", ErrNotFound, ref.ID)
	case c.ref() != ref:
		return entry{}, fmt.Errorf("%w: %s: the id holds %s", ErrMismatch, ref, c.ref())
	case c.state == damaged:
		return entry{}, fmt.Errorf("%w: %s in %s at %d", ErrCorrupt, ref.ID, e.path, c.offset)
	}
	e.refs++
	s.ops.Add(1)
	return entry{e, *c}, nil
}

// setDamaged records that the copy described by en is no good, unless another has
// taken its place.
func (s *Store) setDamaged(en entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, c := s.find(en.id); c != nil && en.samePlace(&entry{e, *c}) && c.state != damaged {
		s.setState(e, c, damaged)
	}
}

// sliceRun reads neighbouring slices of one chunk.
type sliceRun struct{ entry }

// bytesMax is the payload of one read call, whole slices; sumsMax the size of their CRCs.
func (r sliceRun) bytesMax() int64 { return runBytesMax / int64(r.sliceBytes) * int64(r.sliceBytes) }
func (r sliceRun) sumsMax() int64  { return crcBytes * (runBytesMax / int64(r.sliceBytes)) }

func (r sliceRun) headBytes() int64 { return headBytes(r.length, r.sliceBytes, r.unit) }

// sliceLength is the size of a slice; the last one is shorter.
func (r sliceRun) sliceLength(number int64) int64 {
	return min(int64(r.sliceBytes), int64(r.length)-number*int64(r.sliceBytes))
}

// read fills p with whole slices from number first on, at most bytesMax bytes, and checks
// them; their CRCs go through sums. It returns how many bytes are good; fewer than all
// come with ErrCorrupt. A slice that cannot be read is as lost as one that fails its CRC.
func (r sliceRun) read(p, sums []byte, first int64) (int64, error) {
	sums = sums[:crcBytes*sliceCount(uint32(len(p)), r.sliceBytes)]
	err := readFull(r.file.r, sums, r.offset+recordBytes+crcBytes*first)
	if err == nil {
		err = readFull(r.file.r, p, r.offset+r.headBytes()+first*int64(r.sliceBytes))
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s: read %s: %w", ErrCorrupt, r.id, r.file.path, err)
	}
	sum := summer{id: r.id, number: uint32(first)}
	return r.check(p, sums, &sum)
}

// check sums slices and compares with what the head says.
func (r sliceRun) check(p, sums []byte, sum *summer) (good int64, err error) {
	for len(p) > 0 {
		n := min(int(r.sliceBytes), len(p))
		number := sum.number
		if sum.add(p[:n]) != binary.LittleEndian.Uint32(sums) && !plantedbugs.Planted(plantedbugs.ReadUnverified) {
			return good, fmt.Errorf("%w: %s in %s at %d: slice %d fails its CRC",
				ErrCorrupt, r.id, r.file.path, r.offset, number)
		}
		good += int64(n)
		p, sums = p[n:], sums[crcBytes:]
	}
	return good, nil
}

// checkAll checks all bytes of a chunk that mean something: header, slices, the payload
// as a whole, and trailer.
func (r sliceRun) checkAll(b []byte) error {
	header, ok := decodeRecord(b[:recordBytes], r.offset)
	ok = ok && header.magic == magicChunk && header.inc == r.file.inc && header.ref == r.ref()
	tail := r.end() - recordBytes
	trailer, ok2 := decodeRecord(b[tail-r.offset:r.end()-r.offset], tail)
	header.magic = magicTrailer
	if !ok || !ok2 || trailer != header {
		return fmt.Errorf("%w: %s in %s at %d: header or trailer is lost", ErrCorrupt, r.id, r.file.path, r.offset)
	}
	sum := summer{id: r.id}
	if _, err := r.check(b[r.headBytes():][:r.length], b[recordBytes:], &sum); err != nil {
		return err
	}
	if sum.total != r.crc {
		return fmt.Errorf("%w: %s in %s at %d: the payload fails its CRC", ErrCorrupt, r.id, r.file.path, r.offset)
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
	err = r.s.each(r.ref, r.off, r.end, func(part []byte) error {
		n, err := w.Write(part)
		total += int64(n)
		r.off += int64(n)
		return err
	})
	return total, err
}
