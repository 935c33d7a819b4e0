package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/api/wire"
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
	wire.SetMetadata(h, b.Metadata)
	c.answerEmpty(http.StatusOK)
	return nil
}

// setBlobMetadata is Set Blob Metadata (protocol/blob.md B4).
func (c *call) setBlobMetadata() error {
	set := &blobs.SetMetadata{}
	var err error
	if set.Guard, err = c.parseDescribe(); err != nil {
		return err
	}
	if set.Metadata, err = wire.ParseMetadata(c.r.HTTP.Header, c.r.Version >= protocol.Version20090919); err != nil {
		return err
	}
	if set.Name, err = c.name(); err != nil {
		return err
	}
	if err := c.commit(set, &set.Command); err != nil {
		return err
	}
	setTag(c.w.Header(), set.Modified)
	c.answerEncrypted()
	c.answerEmpty(http.StatusOK)
	return nil
}

// setBlobProperties is Set Blob Properties (protocol/blob.md B5) of a block blob: all six
// properties together, those that were not sent cleared.
func (c *call) setBlobProperties() error {
	set := &blobs.SetProperties{}
	var err error
	if set.Guard, err = c.parseDescribe(); err != nil {
		return err
	}
	h := c.r.HTTP.Header
	for _, name := range [...]string{"X-Ms-Blob-Content-Length", "X-Ms-Sequence-Number-Action", "X-Ms-Blob-Sequence-Number"} {
		if v := h.Get(name); v != "" {
			return badHeader(name, v) // Of page blobs.
		}
	}
	set.Properties = parseBlobProperties(h)
	if set.MD5, err = parseStoredMD5(h); err != nil {
		return err
	}
	if set.Name, err = c.name(); err != nil {
		return err
	}
	if err := c.commit(set, &set.Command); err != nil {
		return err
	}
	setTag(c.w.Header(), set.Modified)
	c.answerEmpty(http.StatusOK)
	return nil
}

// parseDescribe reads what both writes have in common: the guard.
func (c *call) parseDescribe() (blobs.Guard, error) {
	if err := requireLength(c.r.HTTP); err != nil {
		return blobs.Guard{}, err
	}
	for _, name := range [...]string{"snapshot", "versionid"} {
		if v, sent := c.r.Query.Lookup(name); sent {
			return blobs.Guard{}, wire.BadParameter(name, v, "A snapshot or version cannot be written.")
		}
	}
	if err := refuse(c.r.HTTP.Header, unbuiltOnWrite); err != nil {
		return blobs.Guard{}, err
	}
	return parseGuard(c.r.HTTP.Header)
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
	sum, ok := wire.DecodeBase64(h.Get(headerBlobContentMD5))
	if !ok {
		return nil, storageerr.InvalidMD5
	}
	return sum, nil
}
