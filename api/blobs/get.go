package blobs

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// readBytes is how much payload is read and sent at once.
const readBytes = 256 << 10

// lookup reads the addressed blob under the request's conditions. One row is read, and
// the chunks it names never change: whatever happens to the blob meanwhile, what is
// sent is this state of it.
func (c *call) lookup() (*blobs.Blob, error) {
	h := c.r.HTTP.Header
	if err := c.unbuiltVersions(); err != nil {
		return nil, err
	}
	if err := refuse(h, unbuiltOnRead); err != nil {
		return nil, err
	}
	conditions, err := protocol.ParseReadConditions(h, c.r.Version)
	if err != nil {
		return nil, err
	}
	name, err := c.name()
	if err != nil {
		return nil, err
	}
	var b blobs.Blob
	err = c.o.Stamp.Read(c.ctx, geo.FirstRange(geo.Blob), func(s ranges.State) error {
		var err error
		b, err = blobs.GetBlob(s, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := conditions.Read(b.Modified); err != nil {
		if errors.Is(err, storageerr.NotModified) {
			setTag(c.w.Header(), b.Modified)
		}
		return nil, err
	}
	if h.Get(headerLeaseID) != "" {
		return nil, storageerr.LeaseNotPresentOnBlob
	}
	return &b, nil
}

// blobProperties is Get Blob Properties (spec/blob.md B2).
func (c *call) blobProperties() error {
	b, err := c.lookup()
	if err != nil {
		return err
	}
	h := c.setHeaders(b, c.r.Version >= protocol.Version20130815, c.r.Version >= version20170417)
	if b.MD5 != nil {
		h[headerContentMD5] = []string{encodeMD5(*b.MD5)}
	}
	h["Content-Length"] = []string{strconv.FormatUint(b.Length, 10)}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// getBlob is Get Blob (spec/blob.md B1).
func (c *call) getBlob() error {
	b, err := c.lookup()
	if err != nil {
		return err
	}
	s, err := parseSpan(c.r.HTTP.Header, c.r.Version, b.Length)
	if err != nil {
		// Downloaders look for the size here. In lower case, since WriteError removes
		// the canonical name, which describes a body that was meant to follow.
		c.w.Header()["content-range"] = []string{fmt.Sprintf("bytes */%d", b.Length)}
		return err
	}
	asked, err := parseRangeHash(c.r.HTTP.Header, s)
	if err != nil {
		return err
	}
	sums, err := c.hashSpan(b, s, asked)
	if err != nil {
		return err
	}
	return c.send(b, s, func() {
		h := c.setHeaders(b, c.r.Version >= protocol.Version20110818, c.r.Version >= version20261006)
		c.setSpan(h, b, s)
		if asked.md5 {
			h[headerContentMD5] = []string{encodeMD5(*sums.md5())}
		}
		if asked.crc64 {
			h[headerContentCRC64] = []string{encodeCRC64(sums.crc)}
		}
	})
}

// setSpan writes the headers that depend on what part of the blob is sent.
func (c *call) setSpan(h http.Header, b *blobs.Blob, s span) {
	h["Content-Length"] = []string{strconv.FormatUint(s.end-s.off, 10)}
	if !s.ranged {
		if b.MD5 != nil {
			h[headerContentMD5] = []string{encodeMD5(*b.MD5)}
		}
		return
	}
	h["Content-Range"] = []string{fmt.Sprintf("bytes %d-%d/%d", s.off, s.end-1, b.Length)}
	if b.MD5 != nil && c.r.Version >= protocol.Version20160531 {
		h[headerBlobContentMD5] = []string{encodeMD5(*b.MD5)}
	}
}

// setHeaders writes what Get Blob and Get Blob Properties have in common.
func (c *call) setHeaders(b *blobs.Blob, acceptRanges, tier bool) http.Header {
	h, v := c.w.Header(), c.r.Version
	setTag(h, b.Modified)
	setProperties(h, &b.Properties)
	setMetadata(h, b.Metadata)
	h["X-Ms-Blob-Type"] = []string{"BlockBlob"}
	h["X-Ms-Lease-Status"] = []string{"unlocked"}
	h["X-Ms-Lease-State"] = []string{"available"}
	if acceptRanges {
		h["Accept-Ranges"] = []string{"bytes"}
	}
	if v >= protocol.Version20151211 {
		h["X-Ms-Server-Encrypted"] = []string{"false"}
	}
	if v >= version20171109 {
		h["X-Ms-Creation-Time"] = []string{protocol.FormatHTTPTime(b.Created.Time())}
	}
	if tier {
		name, inferred := tierName(b.Tier)
		h["X-Ms-Access-Tier"] = []string{name}
		if inferred {
			h["X-Ms-Access-Tier-Inferred"] = []string{"true"}
		}
	}
	return h
}

// hashSpan computes the hash that is asked for, which goes out ahead of the bytes: so
// the span, 4 MiB at most, is read twice.
func (c *call) hashSpan(b *blobs.Blob, s span, asked rangeHash) (*digests, error) {
	if !asked.md5 && !asked.crc64 {
		return nil, nil
	}
	sums, err := parseDigests(http.Header{}, "")
	if err != nil {
		return nil, err
	}
	sums.withCRC = asked.crc64
	err = c.eachPart(b, s, func(p []byte) error {
		sums.write(p)
		return nil
	})
	return sums, err
}

// errClientGone: the answer cannot be sent on.
var errClientGone = errors.New("client is gone")

// send streams a span. The headers are written once its first bytes are read, so that
// payload which cannot be read answers an error. After that a failure ends the answer
// short of its Content-Length: net/http closes the connection, and the client sees it.
func (c *call) send(b *blobs.Blob, s span, setHeaders func()) error {
	status := http.StatusOK
	if s.ranged {
		status = http.StatusPartialContent
	}
	began := false
	begin := func() {
		if !began {
			began = true
			setHeaders()
			c.w.WriteHeader(status)
		}
	}
	err := c.eachPart(b, s, func(p []byte) error {
		begin()
		if _, err := c.w.Write(p); err != nil {
			return errClientGone
		}
		return nil
	})
	switch {
	case err == nil:
		begin() // An empty blob.
	case errors.Is(err, errClientGone):
		return nil
	case began:
		c.o.Logger.Error("blob breaks off: its payload cannot be read", "container", c.res.container, "blob", c.res.blob,
			"error", err, "request_id", c.r.ID)
	}
	return err
}

// eachPart hands the bytes of a span to f, in order. A part is valid during the call.
func (c *call) eachPart(b *blobs.Blob, s span, f func(p []byte) error) error {
	if s.off == s.end {
		return nil
	}
	if len(b.Chunks) == 0 {
		return f(b.Inline[s.off:s.end])
	}
	buf, _ := c.getBufs.Get().(*[]byte)
	defer c.getBufs.Put(buf)
	start := uint64(0) // of the chunk, in the blob
	for _, ref := range b.Chunks {
		stop := min(start+uint64(ref.Length), s.end)
		for off := max(s.off, start); off < stop; {
			part := (*buf)[:min(stop-off, readBytes)]
			n, err := c.o.Payload.ReadChunk(ref, int64(off-start), part)
			if err == nil && n < len(part) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return fmt.Errorf("read chunk %s at %d: %w", ref, off-start, err)
			}
			if err := f(part); err != nil {
				return err
			}
			off += uint64(len(part))
		}
		start += uint64(ref.Length)
	}
	return nil
}
