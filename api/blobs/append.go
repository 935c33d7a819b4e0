package blobs

import (
	"net/http"
	"strconv"

	"antipode/api/operation"
	"antipode/services/blobs"
	"antipode/stamp/ranges"
)

const (
	headerAppendPosition = "X-Ms-Blob-Condition-Appendpos"
	headerSizeMax        = "X-Ms-Blob-Condition-Maxsize"
	headerBlockCount     = "X-Ms-Blob-Committed-Block-Count"
	headerSealed         = "X-Ms-Blob-Sealed"
)

// blobType is the type of a blob as it is answered.
func blobType(b *blobs.Blob) string {
	if b.Appended != nil {
		return "AppendBlob"
	}
	return "BlockBlob"
}

// readAppendPosition reads the conditions on the length of an append blob (protocol/blob.md 12). Only what appends takes
// the one on the length afterwards.
func (c *call) readAppendPosition() (err error) {
	appends := c.asked.Body.Kind == operation.Stream || c.asked.Takes&operation.Source != 0
	if c.in.appendAt, err = c.parseLength(headerAppendPosition); err == nil && appends {
		c.in.sizeMax, err = c.parseLength(headerSizeMax)
	}
	return err
}

// parseLength reads a header that is a length in bytes; nil if it was not sent.
func (c *call) parseLength(header string) (*uint64, error) {
	text := c.r.Header(header)
	if text == "" {
		return nil, nil //nolint:nilnil // It asks for none.
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, badHeader(header, text)
	}
	return &n, nil
}

// putAppendBlob is Put Blob of an append blob (protocol/blob.md B8), which has no content yet.
func (c *call) putAppendBlob() error {
	if c.in.length > 0 {
		return badHeader("Content-Length", strconv.FormatInt(c.in.length, 10))
	}
	of, err := c.command()
	if err != nil {
		return err
	}
	w := &blobs.PutBlob{Command: of, Blob: c.in.newBlob(), Append: true}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusCreated, modified: w.Modified, written: true})
	return nil
}

// appendBlock is Append Block (protocol/blob.md B17).
func (c *call) appendBlock() error {
	if c.in.length == 0 {
		return badHeader("Content-Length", "0")
	}
	of, err := c.command()
	if err != nil {
		return err
	}
	w, sums := &blobs.AppendBlock{Command: of, Position: c.in.appendAt, SizeMax: c.in.sizeMax}, c.in.digests.ofBlocks(c.r.Version, true)
	w.Block.Length = uint32(c.in.length) // At most 100 MiB.
	if c.in.length > blobs.InlineBytesMax {
		// As with Put Blob: a large body that would be refused is not taken.
		err := c.ask(c.rangeOf(w.Name), func(s ranges.State) error { return w.Admit(s, c.now()) })
		if err != nil {
			return err
		}
	}
	defer func() { c.bodyHold.Release() }()
	if w.Block.Inline, w.Block.Chunks, err = c.takeBody(sums); err != nil {
		return err
	}
	if err := sums.check(); err != nil {
		return err
	}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	c.writeHead(&head{
		status: http.StatusCreated, modified: w.Modified, md5: sums.md5Text(), crc64: sums.crcText(), written: true,
		appended: strconv.FormatUint(w.Offset, 10), blocks: strconv.FormatUint(uint64(w.Blocks), 10),
	})
	return nil
}

// sealBlob is Append Blob Seal (protocol/blob.md B19).
func (c *call) sealBlob() error {
	of, err := c.command()
	if err != nil {
		return err
	}
	w := &blobs.Seal{Command: of, Position: c.in.appendAt}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusOK, modified: w.Modified, sealed: true})
	return nil
}
