package blobs

import (
	"net/http"
	"strconv"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// putBlob is Put Blob of a block blob (protocol/blob.md B8).
func (c *call) putBlob() error {
	w, sums, err := c.parsePut()
	if err != nil {
		return err
	}
	if w.Name, err = c.name(); err != nil {
		return err
	}
	length := c.r.HTTP.ContentLength
	if length > blobs.InlineBytesMax && (w.LeaseSent || w.Conditions != nil) {
		// A large body that would be refused is not taken: its chunks would stay. The
		// commit asks again.
		err := c.ask(geo.FirstRange(geo.Blob), func(s ranges.State) error { return w.Admit(s) })
		if err != nil {
			return err
		}
	}
	defer func() { c.bodyHold.Release() }()
	w.Blob.Length = uint64(length)
	if w.Blob.Inline, w.Blob.Chunks, err = c.takeBody(sums); err != nil {
		return err
	}
	if err := sums.check(); err != nil {
		return err
	}
	if sums.wantMD5 != "" || c.r.Version >= protocol.Version20120212 {
		w.Blob.MD5 = sums.md5()
	}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	h := c.w.Header()
	setTag(h, w.Modified)
	h["Content-Md5"] = []string{encodeMD5(sums.md5())}
	if sums.withCRC && c.r.Version >= version20240804 {
		h["X-Ms-Content-Crc64"] = []string{encodeCRC64(sums.crc)}
	}
	c.answerEncrypted()
	c.answerEmpty(http.StatusCreated)
	return nil
}

// parsePut reads everything but the body.
func (c *call) parsePut() (*blobs.PutBlob, *digests, error) {
	h := c.r.HTTP.Header
	switch kind := h.Get("X-Ms-Blob-Type"); kind {
	case "BlockBlob":
	case "PageBlob", "AppendBlob":
		return nil, nil, storageerr.NotImplemented
	case "":
		return nil, nil, storageerr.MissingRequiredHeader.With("HeaderName", "x-ms-blob-type")
	default:
		return nil, nil, badHeader("X-Ms-Blob-Type", kind)
	}
	if err := c.unbuiltVersions(); err != nil {
		return nil, nil, err
	}
	if err := refuse(h, unbuiltOnWrite); err != nil {
		return nil, nil, err
	}
	if v := h.Get("X-Ms-Blob-Content-Length"); v != "" {
		return nil, nil, badHeader("X-Ms-Blob-Content-Length", v)
	}
	w := &blobs.PutBlob{}
	var err error
	if w.Guard, err = parseNewBlob(h, c.r.Version, &w.Blob); err != nil {
		return nil, nil, err
	}
	w.Blob.Properties = parseProperties(h)
	sums, err := c.parsePutDigests()
	if err != nil {
		return nil, nil, err
	}
	if err := requireLength(c.r.HTTP); err != nil {
		return nil, nil, err
	}
	return w, sums, c.boundBody()
}

// boundBody refuses a body that is longer than the operation takes.
func (c *call) boundBody() error {
	limit := c.asked.BodyMax(c.r.Version)
	if c.o.BodyBytesMax > 0 && c.asked.Body.Kind == operation.Stream {
		limit = min(limit, c.o.BodyBytesMax)
	}
	if c.r.HTTP.ContentLength > limit {
		return storageerr.RequestBodyTooLarge.With("MaxLimit", strconv.FormatInt(limit, 10))
	}
	return nil
}
