package blobs

import (
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

const (
	// readBytes is how much payload is read and sent at once.
	readBytes = 256 << 10
	// readBytesMin is so where the answers hold all they may: what net/http holds for a
	// connection is of that order.
	readBytesMin = 32 << 10
)

// source is a blob whose payload is read: one committed state of it. The chunks and
// blocks that its row leads to never change, so whatever happens to the blob
// meanwhile, what is sent is this state, or breaks off.
type source struct {
	*blobs.Blob
	name blobs.Name
	// first is the first window of the span that is sent.
	first blobs.Window
	// buf takes a part of a chunk.
	buf []byte
}

// lookup reads the addressed blob under the request's guard. first reads of its
// payload on the same state, where the row does not hold it; it may be nil.
func (c *call) lookup(first func(r kv.Reader, b *source) error) (*source, error) {
	name, err := c.name()
	if err != nil {
		return nil, err
	}
	b := source{name: name}
	if err := c.read(&b, first); err != nil {
		return nil, err
	}
	if err := c.in.guard.Knows(b.Blob); err != nil {
		return nil, err
	}
	now := c.now()
	b.SettleTier(now)
	if err := c.in.guard.Check(blobs.State{Modified: b.Modified, Lease: b.Lease, Tags: b.Tags}, now, lease.OfBlob()); err != nil {
		if errors.Is(err, storageerr.NotModified) {
			c.keepTag(b.Modified)
		}
		return nil, err
	}
	return &b, nil
}

// read reads the row, and what first reads. A payload in blocks is in many rows: those
// and the blob's are read from one snapshot, which may take longer than a lease.
func (c *call) read(b *source, first func(r kv.Reader, b *source) error) error {
	if err := c.ctx.Err(); err != nil {
		return err // As snapshot.
	}
	inRows := false
	err := c.ask(c.rangeOf(b.name), func(s ranges.State) error {
		found, err := c.find(s, b.name)
		b.Blob, inRows = &found, found.InRows()
		if err != nil || first == nil || inRows {
			return err
		}
		return first(nil, b)
	})
	if err != nil || first == nil || !inRows {
		return err
	}
	snap, err := c.snapshot(c.rangeOf(b.name))
	if err != nil {
		return err
	}
	found, err := c.find(snap, b.name)
	if b.Blob = &found; err == nil {
		err = first(snap, b)
	}
	return errors.Join(err, snap.Close())
}

// blobProperties is Get Blob Properties (protocol/blob.md B2).
func (c *call) blobProperties() error {
	b, err := c.lookup(nil)
	if err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, blob: b.Blob, length: b.Length})
	return nil
}

// download is what a Get Blob asks for.
type download struct {
	bytes byteRange
	hash  rangeHash
}

// parseDownload reads the headers of ranges.
func (c *call) parseDownload() (d download, err error) {
	d.bytes = parseRange(c.r.HTTP.Header, c.r.Version)
	d.hash, err = parseRangeHash(c.r.HTTP.Header, d.bytes)
	return d, err
}

// getBlob is Get Blob (protocol/blob.md B1).
func (c *call) getBlob(asked download) error {
	b, err := c.lookup(func(r kv.Reader, b *source) error {
		s, err := asked.bytes.of(b.Length)
		if err != nil || s.off == s.end {
			return nil // Answered below, after the conditions.
		}
		b.first, err = blobs.WindowAt(r, b.name, b.Blob, s.off, s.end)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.Online(); err != nil {
		return err
	}
	s, err := asked.bytes.of(b.Length)
	if err != nil {
		c.keepSize(b.Length)
		return err
	}
	if err := asked.hash.check(s); err != nil {
		return err
	}
	defer c.takeBuffer(b)()
	a := &head{status: http.StatusOK, blob: b.Blob, length: s.end - s.off}
	if s.ranged {
		a.status, a.contentRange = http.StatusPartialContent, fmt.Sprintf("bytes %d-%d/%d", s.off, s.end-1, b.Length)
	}
	if err := c.hashSpan(b, s, asked.hash, a); err != nil {
		return err
	}
	return c.send(b, s, a)
}

// takeBuffer gives a download the buffer that it reads chunks into, until done is called.
func (c *call) takeBuffer(b *source) (done func()) {
	if !b.InRows() && len(b.Chunks) == 0 {
		return func() {} // It is all in the row.
	}
	drop, ok := c.hold(readBytes)
	if !ok {
		b.buf = make([]byte, readBytesMin)
		return func() {}
	}
	buf, _ := c.getBufs.Get().(*[]byte)
	b.buf = *buf
	return func() {
		c.getBufs.Put(buf)
		drop()
	}
}

// hashSpan computes the hash that is asked for, which goes out ahead of the bytes: so
// the span, 4 MiB at most, is read twice.
func (c *call) hashSpan(b *source, s span, asked rangeHash, a *head) error {
	if !asked.md5 && !asked.crc64 {
		return nil
	}
	sums := &digests{withCRC: asked.crc64, answersCRC: asked.crc64}
	if asked.md5 {
		sums.sum = md5.New()
	}
	err := c.eachPart(b, s, func(p []byte) error {
		sums.write(p)
		return nil
	})
	a.md5, a.crc64 = sums.md5Text(), sums.crcText()
	return err
}

// errClientGone: the answer cannot be sent on.
var errClientGone = errors.New("client is gone")

// send streams a span. The head is written once its first bytes are read, so that
// payload which cannot be read answers an error. After that a failure ends the answer
// short of its Content-Length: net/http closes the connection, and the client sees it.
func (c *call) send(b *source, s span, a *head) error {
	began := false
	begin := func() {
		if !began {
			began = true
			c.writeHead(a)
		}
	}
	out := io.Writer(c.w)
	if s.end-s.off > readBytes {
		out = &protocol.PatientWriter{W: c.w}
	}
	err := c.eachPart(b, s, func(p []byte) error {
		begin()
		if _, err := out.Write(p); err != nil {
			return errClientGone
		}
		return nil
	})
	switch {
	case err == nil:
		begin() // An empty blob.
	case errors.Is(err, errClientGone):
		return nil
	case began && !errors.Is(err, storageerr.BlobOverwritten):
		c.o.Logger.Error("blob breaks off: its payload cannot be read", "container", c.res.container, "blob", c.res.blob,
			"error", err, "request_id", c.r.ID)
	}
	return err
}

// eachPart calls f with the bytes of a span, in order. A part is valid during the call.
// Of a payload in blocks one window of rows is held at a time. BlobOverwritten where
// the rest is gone since the blob was replaced.
func (c *call) eachPart(b *source, s span, f func(p []byte) error) error {
	win := b.first
	release := c.keep(&win)
	defer func() { release() }()
	for off := s.off; off < s.end; {
		if off >= win.End {
			release()
			var err error
			if win, err = c.window(b, off, s.end); err != nil {
				return err
			}
			release = c.keep(&win)
		}
		at := win.Start
		for i := range win.Parts {
			p := &win.Parts[i]
			from, to := max(off, at)-at, min(at+p.Len(), s.end)-at
			if p.Inline != nil {
				if err := f(p.Inline[from:to]); err != nil {
					return err
				}
			} else if err := c.eachOfChunk(p.Chunk, from, to, b.buf, f); err != nil {
				return err
			}
			off = at + to
			at += p.Len()
		}
	}
	return nil
}

// keep holds the chunks of a window, which a slow client may take long to take.
func (c *call) keep(win *blobs.Window) (release func()) {
	var refs []extent.Ref
	for i := range win.Parts {
		if win.Parts[i].Inline == nil {
			refs = append(refs, win.Parts[i].Chunk)
		}
	}
	if len(refs) == 0 {
		return func() {}
	}
	return c.o.Payload.HoldChunks(refs)
}

// window reads the window at off.
func (c *call) window(b *source, off, end uint64) (win blobs.Window, err error) {
	if !b.InRows() {
		return blobs.WindowAt(nil, b.name, b.Blob, off, end) // It is all in the row.
	}
	snap, err := c.snapshot(c.rangeOf(b.name))
	if err != nil {
		return win, err
	}
	win, err = blobs.WindowAt(snap, b.name, b.Blob, off, end)
	err = errors.Join(err, snap.Close())
	if errors.Is(err, blobs.ErrReplaced) {
		err = storageerr.BlobOverwritten
	}
	return win, err
}

// eachOfChunk calls f with bytes [off, end) of a chunk, through buf.
func (c *call) eachOfChunk(ref extent.Ref, off, end uint64, buf []byte, f func(p []byte) error) error {
	for off < end {
		part := buf[:min(end-off, uint64(len(buf)))]
		n, err := c.o.Payload.ReadChunk(ref, int64(off), part)
		if err == nil && n < len(part) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("read chunk %s at %d: %w", ref, off, err)
		}
		if err := f(part); err != nil {
			return err
		}
		off += uint64(len(part))
	}
	return nil
}
