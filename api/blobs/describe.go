package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// blobMetadata is Get Blob Metadata (protocol/blob.md B3), GET and HEAD.
func (c *call) blobMetadata() error {
	b, err := c.lookup(nil)
	if err != nil {
		return err
	}
	h := c.w.Header()
	setTag(h, b.Modified)
	setMetadata(h, b.Metadata)
	c.answerEmpty(http.StatusOK)
	return nil
}

// setBlobMetadata is Set Blob Metadata (protocol/blob.md B4).
func (c *call) setBlobMetadata() error {
	conditions, leaseSent, err := c.parseDescribe()
	if err != nil {
		return err
	}
	set := &blobs.SetMetadata{Conditions: conditions, LeaseSent: leaseSent}
	if set.Metadata, err = parseMetadata(c.r.HTTP.Header, c.r.Version); err != nil {
		return err
	}
	if set.Name, err = c.name(); err != nil {
		return err
	}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	h := c.w.Header()
	setTag(h, set.Modified)
	if c.r.Version >= protocol.Version20151211 {
		h["X-Ms-Request-Server-Encrypted"] = []string{"false"}
	}
	c.answerEmpty(http.StatusOK)
	return nil
}

// setBlobProperties is Set Blob Properties (protocol/blob.md B5) of a block blob: all six
// properties together, those that were not sent cleared.
func (c *call) setBlobProperties() error {
	conditions, leaseSent, err := c.parseDescribe()
	if err != nil {
		return err
	}
	h := c.r.HTTP.Header
	for _, name := range [...]string{"X-Ms-Blob-Content-Length", "X-Ms-Sequence-Number-Action", "X-Ms-Blob-Sequence-Number"} {
		if v := h.Get(name); v != "" {
			return badHeader(name, v) // Of page blobs.
		}
	}
	set := &blobs.SetProperties{
		Conditions: conditions, LeaseSent: leaseSent, Properties: parseBlobProperties(h),
	}
	if set.MD5, err = parseStoredMD5(h); err != nil {
		return err
	}
	if set.Name, err = c.name(); err != nil {
		return err
	}
	if err := c.o.Writer.Write(c.ctx, set); err != nil {
		return err
	}
	setTag(c.w.Header(), set.Modified)
	c.answerEmpty(http.StatusOK)
	return nil
}

// parseDescribe reads what both writes have in common: the conditions, nil where there
// are none, and whether a lease is named.
func (c *call) parseDescribe() (conditions blobs.Conditions, leaseSent bool, err error) {
	if err := requireLength(c.r.HTTP); err != nil {
		return nil, false, err
	}
	for _, name := range [...]string{"snapshot", "versionid"} {
		if v, sent := c.r.Query.Lookup(name); sent {
			return nil, false, badParameter(name, v, "A snapshot or version cannot be written.")
		}
	}
	if err := refuse(c.r.HTTP.Header, unbuiltOnWrite); err != nil {
		return nil, false, err
	}
	if leaseSent, err = parseLeaseSent(c.r.HTTP.Header); err != nil {
		return nil, false, err
	}
	sent, err := protocol.ParseWriteConditions(c.r.HTTP.Header)
	if err != nil || sent.IsZero() {
		return nil, leaseSent, err
	}
	return sent, leaseSent, nil
}

// parseBlobProperties reads the content properties where the x-ms-blob- form alone
// counts (protocol/blob.md 19.1). What was not sent is empty, the content type too.
func parseBlobProperties(h http.Header) blobs.Properties {
	p := blobs.Properties{
		ContentType: h.Get("X-Ms-Blob-Content-Type"), ContentEncoding: h.Get("X-Ms-Blob-Content-Encoding"),
		ContentLanguage: h.Get("X-Ms-Blob-Content-Language"), CacheControl: h.Get("X-Ms-Blob-Cache-Control"),
		ContentDisposition: h.Get("X-Ms-Blob-Content-Disposition"),
	}
	return p
}

// parseStoredMD5 reads an x-ms-blob-content-md5 that is stored unchecked, whatever its
// length (protocol/blob.md 18.3); nil where none was sent. Text that is not Base64 is
// refused: clients decode the value with every read of the blob, and would fail.
func parseStoredMD5(h http.Header) ([]byte, error) {
	sum, ok := protocol.DecodeBase64(h.Get(headerBlobContentMD5))
	if !ok {
		return nil, storageerr.InvalidMD5
	}
	return sum, nil
}
