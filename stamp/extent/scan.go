package extent

import (
	"fmt"
	"io"
)

// found is one chunk that the scan of an extent file came upon.
type found struct {
	record
	// headerLost is set when only the trailer names the chunk.
	headerLost bool
}

// scanned is what an extent file holds, by its records alone; payloads are not read.
type scanned struct {
	// headerLost is set when the file header is unreadable. The incarnation is then
	// that of the first record, if there is one.
	headerLost bool
	inc        incarnation
	// chunks are in order of offset and do not overlap.
	chunks []found
	// synced is the greatest offset up to which a record calls the file durable.
	synced int64
	// end is the offset behind the last record and all it names; it may lie above the
	// end of a torn file.
	end int64
	// sealed: the last record is a seal.
	sealed bool
	// lost counts bytes below synced in which nothing could be recognized.
	lost int64
}

// searchBytes is how far the scan goes on without recognizing anything, in a file that has no seal:
// room taken ahead or what an earlier life left follows there, up to the size of a whole extent.
// The scan misses records behind so many lost bytes, if they are above all that is known to be
// durable. For that, three chunks in a row of the greatest size would have to be lost, header and
// trailer.
const searchBytes = 16 << 20

// hole is a stretch in which no record was recognized.
type hole struct{ from, to int64 }

// scan reads the records of a file of size bytes. It returns an error if the file
// cannot be read or is of another format; any content gives a result.
func scan(r io.ReaderAt, size int64) (scanned, error) {
	var out scanned
	w := window{r: r, size: size}
	out.end = pageBytes
	if size < recordBytes {
		out.headerLost = true
		return out, nil
	}
	head, err := w.at(0)
	if err != nil {
		return scanned{}, err
	}
	inc, ok, err := decodeFileHeader(head)
	if err != nil {
		return scanned{}, err
	}
	if size < pageBytes { // The header's page is durable before anything is written behind it.
		out.headerLost = true
		return out, nil
	}
	if !ok {
		out.headerLost = true
		if inc, ok, err = firstIncarnation(&w); err != nil {
			return scanned{}, err
		}
		if !ok {
			out.lost = size - pageBytes
			return out, nil
		}
	}
	out.inc = inc
	holes, err := out.walk(&w)
	if err != nil {
		return scanned{}, err
	}
	for _, h := range holes {
		out.lost += max(0, min(h.to, out.synced)-h.from)
	}
	return out, nil
}

// walk steps from record to record; without one it tries every multiple of
// recordBytes until it finds the next. A trailer met on the way names the chunk
// that was passed over.
func (out *scanned) walk(w *window) ([]hole, error) {
	var holes []hole
	for at := out.end; at+recordBytes <= w.size && at < max(out.end, out.synced)+searchBytes; {
		b, err := w.at(at)
		if err != nil {
			return nil, err
		}
		rec, ok := decodeRecord(b, at)
		if !ok || rec.inc != out.inc || rec.offset < out.end {
			if err := laterRecord(b, out.inc); err != nil {
				return nil, fmt.Errorf("at %d: %w", at, err)
			}
			at += recordBytes
			continue
		}
		if rec.offset > out.end {
			holes = append(holes, hole{out.end, rec.offset})
		}
		out.synced = max(out.synced, rec.synced)
		out.end = rec.end()
		at = out.end
		if rec.magic == magicSeal {
			out.sealed = true
			return holes, nil
		}
		out.chunks = append(out.chunks, found{record: rec, headerLost: rec.magic == magicTrailer})
	}
	return append(holes, hole{out.end, w.size}), nil
}

// firstIncarnation returns what the first whole record says, for a file whose own
// header is unreadable.
func firstIncarnation(w *window) (incarnation, bool, error) {
	for at := int64(pageBytes); at+recordBytes <= w.size; at += recordBytes {
		b, err := w.at(at)
		if err != nil {
			return incarnation{}, false, err
		}
		if rec, ok := decodeRecord(b, at); ok {
			return rec.inc, true, nil
		}
	}
	return incarnation{}, false, nil
}

// window reads single records out of a file. Far apart it reads a page for each;
// one after the other, as when the scanner lost its place, it reads ahead.
type window struct {
	r     io.ReaderAt
	size  int64
	buf   []byte
	start int64 // offset of buf in the file
	ahead int   // bytes to read at the next miss
}

const (
	windowBytesMin = 4 << 10
	windowBytesMax = 256 << 10
)

// at returns the recordBytes at offset off, which lies within the file. The bytes
// are valid until the next call.
func (w *window) at(off int64) ([]byte, error) {
	if off < w.start || off+recordBytes > w.start+int64(len(w.buf)) {
		w.ahead = max(windowBytesMin, min(2*w.ahead, windowBytesMax))
		if off != w.start+int64(len(w.buf)) {
			w.ahead = windowBytesMin
		}
		if cap(w.buf) < w.ahead {
			w.buf = make([]byte, w.ahead)
		}
		w.buf = w.buf[:min(int64(w.ahead), w.size-off)]
		w.start = off
		if err := readFull(w.r, w.buf, off); err != nil {
			n := len(w.buf)
			w.buf = w.buf[:0]
			return nil, fmt.Errorf("read %d bytes at %d: %w", n, off, err)
		}
	}
	b := w.buf[off-w.start:]
	return b[:recordBytes:recordBytes], nil
}

// readFull fills p from offset off. The end of the file before that is an error.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
