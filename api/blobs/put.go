package blobs

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// checkBlobType reads which kind of blob Put Blob makes.
func (c *call) checkBlobType() error {
	switch kind := c.r.Header("X-Ms-Blob-Type"); kind {
	case "BlockBlob":
	case "AppendBlob":
		if c.r.Version < protocol.Version20150221 {
			return badHeader("X-Ms-Blob-Type", kind)
		}
		c.in.appends = true
	case "PageBlob":
		return storageerr.NotImplemented
	case "":
		return storageerr.MissingRequiredHeader.With("HeaderName", "x-ms-blob-type")
	default:
		return badHeader("X-Ms-Blob-Type", kind)
	}
	return c.refusePages("X-Ms-Blob-Content-Length")
}

// refusePages refuses headers that only page blobs have.
func (c *call) refusePages(names ...string) error {
	for _, name := range names {
		if v := c.r.Header(name); v != "" {
			return badHeader(name, v)
		}
	}
	return nil
}

// putBlob is Put Blob (protocol/blob.md B8).
func (c *call) putBlob() error {
	if c.in.appends {
		return c.putAppendBlob()
	}
	of, err := c.command()
	if err != nil {
		return err
	}
	w, sums := &blobs.PutBlob{Command: of, Blob: c.in.newBlob()}, c.in.digests.ofBlob(c.r.Version)
	if c.in.length > blobs.InlineBytesMax {
		// A large body that would be refused is not taken: its chunks would stay. The
		// commit asks again.
		err := c.ask(c.rangeOf(w.Name), func(s ranges.State) error { return w.Admit(s, c.now()) })
		if err != nil {
			return err
		}
	}
	defer func() { c.bodyHold.Release() }()
	w.Blob.Length = uint64(c.in.length)
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
	c.writeHead(&head{status: http.StatusCreated, modified: w.Modified, md5: sums.md5Text(), crc64: sums.crcText(), written: true})
	return nil
}
