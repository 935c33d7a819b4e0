package blobs

import (
	"cmp"
	"context"
	"crypto/md5"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/minio/crc64nvme"

	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
)

// sharedMax is how many chunks of a source a block or a blob without blocks shares. What is in more is read and put: a row
// names each of them.
const sharedMax = 5000

// readSourceDigests reads what the bytes that are copied are to be.
func (c *call) readSourceDigests() error {
	h, d := c.r.HTTP.Header, &c.in.from.digests
	for _, hash := range [...]struct {
		header string
		size   int
		want   *string
	}{
		{"X-Ms-Source-Content-Md5", md5.Size, &d.wantMD5},
		{"X-Ms-Source-Content-Crc64", crc64nvme.Size, &d.wantCRC},
	} {
		if *hash.want = h.Get(hash.header); *hash.want != "" && !isBase64(*hash.want, hash.size) {
			return badHeader(hash.header, *hash.want)
		}
	}
	if d.wantMD5 != "" && d.wantCRC != "" {
		return storageerr.BothCRC64AndMD5
	}
	return nil
}

// newDigests are the hashes of what is copied. The answer has the CRC if no MD5 was sent, and the bytes are read
// (protocol/blob.md 18.2).
func (in *copySource) newDigests() *digests {
	d := in.digests
	if d.wantMD5 != "" {
		d.sum = md5.New()
	} else {
		d.withCRC = true
	}
	return &d
}

// checkBlockSource reads what the copy of a block has alone.
func (c *call) checkBlockSource() error {
	in := &copySource{}
	c.in.from = in
	if c.r.Version < c.asked.Since {
		return c.refuse([]string{headerCopySource})
	}
	if text := c.r.Header(headerSourceRange); text != "" {
		var err error
		if in.bytes, err = c.parseSourceRange(text); err != nil {
			return err
		}
	}
	return c.readSourceDigests()
}

// parseSourceRange reads x-ms-source-range. A last byte that no blob can have, and that decimal takes for the largest number, is
// no open end: the client asks for bytes that are not there.
func (c *call) parseSourceRange(text string) (r byteRange, err error) {
	if r.first, r.last, r.ok = cutRange(text, c.r.Version); !r.ok || !r.closed() && !strings.HasSuffix(text, "-") {
		err = badHeader(headerSourceRange, text)
	}
	return r, err
}

// parseBlockFromURL reads what Put Block From URL has alone.
func (c *call) parseBlockFromURL() (id string, err error) {
	if err := c.checkBlockSource(); err != nil {
		return "", err
	}
	return c.parseBlockID()
}

// checkPutFromURL reads what Put Blob From URL has alone.
func (c *call) checkPutFromURL() error {
	in := &copySource{}
	c.in.from = in
	if c.r.Version < c.asked.Since {
		return c.refuse([]string{headerCopySource})
	}
	const own = "X-Ms-Copy-Source-Blob-Properties"
	if c.r.Header(own) != "" {
		copied, err := parseBool(c.r.HTTP.Header, own)
		if err != nil {
			return err
		}
		in.plain = !copied
	}
	if err := c.readSourceDigests(); err != nil {
		return err
	}
	if err := c.readTagOption(); err != nil {
		return err
	}
	return c.readSourceTags()
}

// putBlobFromURL is Put Blob From URL (protocol/blob.md B9). The blob has no block list.
func (c *call) putBlobFromURL() error {
	of, err := c.copyCommand()
	if err != nil {
		return err
	}
	a := &head{status: http.StatusCreated, written: true}
	err = c.withSource(func(o *origin) error {
		w, sums := &blobs.CopyBlob{Command: of, AnyType: true}, c.in.from.newDigests()
		var err error
		if w.Blob, err = c.putOf(o); err != nil {
			return err
		}
		if err := c.ask(c.rangeOf(w.Name), func(s ranges.State) error { return w.Admit(s, c.now()) }); err != nil {
			return err
		}
		if w.Blob.Inline, w.Blob.Chunks, err = c.takeSource(o, sums); err != nil {
			return err
		}
		w.Blob.Length = o.span.end - o.span.off
		if w.Blob.MD5 == nil {
			w.Blob.MD5 = sums.md5()
		}
		if err := c.commit(w, &w.Command); err != nil {
			return err
		}
		a.modified, a.md5, a.crc64 = w.Modified, sums.md5Text(), sums.crcText()
		return nil
	})
	if err == nil {
		c.writeHead(a)
	}
	return err
}

// putOf is the blob that Put Blob From URL makes, without its payload.
func (c *call) putOf(o *origin) (blobs.Blob, error) {
	out, err := c.copyOf(o)
	if err != nil {
		return out, err
	}
	from, given := out.Properties, c.in.properties
	if c.in.from.plain {
		from, out.MD5 = blobs.Properties{}, nil
	}
	out.Properties = blobs.Properties{
		ContentType:        cmp.Or(given.ContentType, from.ContentType, "application/octet-stream"),
		ContentEncoding:    cmp.Or(given.ContentEncoding, from.ContentEncoding),
		ContentLanguage:    cmp.Or(given.ContentLanguage, from.ContentLanguage),
		ContentDisposition: cmp.Or(given.ContentDisposition, from.ContentDisposition),
		CacheControl:       cmp.Or(given.CacheControl, from.CacheControl),
	}
	if len(c.in.md5) > 0 {
		out.MD5 = c.in.md5
	}
	return out, nil
}

// putBlockFromURL is Put Block From URL (protocol/blob.md B11).
func (c *call) putBlockFromURL(id string) error {
	of, err := c.command()
	if err != nil {
		return err
	}
	a := &head{status: http.StatusCreated, written: true}
	err = c.withSource(func(o *origin) error {
		w := &blobs.PutBlock{Command: of, ID: id}
		err := c.takeBlock(o, w.Name, &w.Block, a, func(s ranges.State) error { return w.Admit(s, c.now()) })
		if err != nil {
			return err
		}
		return c.commit(w, &w.Command)
	})
	if err == nil {
		c.writeHead(a)
	}
	return err
}

// appendBlockFromURL is Append Block From URL (protocol/blob.md B18).
func (c *call) appendBlockFromURL() error {
	of, err := c.command()
	if err != nil {
		return err
	}
	a := &head{status: http.StatusCreated, written: true}
	err = c.withSource(func(o *origin) error {
		w := &blobs.AppendBlock{Command: of, Position: c.in.appendAt, SizeMax: c.in.sizeMax}
		err := c.takeBlock(o, w.Name, &w.Block, a, func(s ranges.State) error { return w.Admit(s, c.now()) })
		if err != nil {
			return err
		}
		if err := c.commit(w, &w.Command); err != nil {
			return err
		}
		a.modified, a.appended, a.blocks = w.Modified, strconv.FormatUint(w.Offset, 10), strconv.FormatUint(uint64(w.Blocks), 10)
		return nil
	})
	if err == nil {
		c.writeHead(a)
	}
	return err
}

// takeBlock takes a block from a source, under the guard that admit asks, and gives the answer its hash.
func (c *call) takeBlock(o *origin, n blobs.Name, b *blobs.Block, a *head, admit func(ranges.State) error) (err error) {
	length, limit := o.span.end-o.span.off, c.asked.CopyMax(c.r.Version)
	switch {
	case length == 0: // There is no block without content.
		return storageerr.InvalidRange
	case length > uint64(limit):
		return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.FormatInt(limit, 10))
	}
	b.Length = uint32(length) // At most blobs.BlockBytesMax.
	if err := c.ask(c.rangeOf(n), admit); err != nil {
		return err
	}
	sums := c.in.from.newDigests()
	b.Inline, b.Chunks, err = c.takeSource(o, sums)
	a.md5, a.crc64 = sums.md5Text(), sums.crcText()
	return err
}

// takeSource takes the payload of a source. Whole chunks of one that is here are shared; else the bytes are read and put.
func (c *call) takeSource(o *origin, sums *digests) (inline []byte, chunks []extent.Ref, err error) {
	if o.here != nil && o.span.end-o.span.off > blobs.InlineBytesMax {
		chunks, err := o.chunks()
		if err != nil {
			return nil, nil, err
		}
		if chunks != nil {
			return nil, chunks, o.verify(sums)
		}
	}
	in, stop := o.incoming(c)
	defer stop()
	if inline, chunks, err = c.take(in, sums); err != nil {
		return nil, nil, err
	}
	sums.answersCRC = sums.withCRC
	return inline, chunks, sums.check()
}

// verify compares the bytes that are copied with the hash that was sent, for which alone they are read.
func (o *origin) verify(sums *digests) error {
	if sums.wantMD5 == "" && sums.wantCRC == "" {
		return nil
	}
	defer o.here.takeBuffer(o.blob)()
	err := o.here.eachPart(o.blob, o.span, func(p []byte) error {
		sums.write(p)
		return nil
	})
	if err != nil {
		return err
	}
	sums.answersCRC = sums.withCRC
	return sums.check()
}

// chunks are those that the bytes which are copied are made of; nil if they are not whole chunks, or too many.
func (o *origin) chunks() (refs []extent.Ref, err error) {
	win := o.blob.first
	for off := o.span.off; off < o.span.end; off = win.End {
		if off >= win.End {
			if win, err = o.here.window(o.blob, off, o.span.end); err != nil {
				return nil, err
			}
		}
		at := win.Start
		for i := range win.Parts {
			p := &win.Parts[i]
			if p.Inline != nil || at < o.span.off || at+p.Len() > o.span.end || len(refs) == sharedMax {
				return nil, nil
			}
			refs = append(refs, p.Chunk)
			at += p.Len()
		}
	}
	return refs, nil
}

// incoming is the payload of a source as it is read, until stop is called.
func (o *origin) incoming(c *call) (in incoming, stop func()) {
	in.length = int64(o.span.end - o.span.off)
	if o.elsewhere != nil {
		in.Reader, in.source, in.broken = o.elsewhere, o.elsewhere.watched, c.brokenSource
		return in, func() {}
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer o.here.takeBuffer(o.blob)()
		_ = w.CloseWithError(o.here.eachPart(o.blob, o.span, func(p []byte) error {
			_, err := w.Write(p)
			return err
		}))
	}()
	in.Reader, in.broken = r, func(err error) error {
		if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
			return storageerr.OperationTimedOut
		}
		return err
	}
	return in, func() {
		_ = r.Close()
		<-done
	}
}
