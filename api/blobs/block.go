package blobs

import (
	"net/http"
	"strings"

	"antipode/api/wire"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// putBlock is Put Block (protocol/blob.md B10).
func (c *call) putBlock(id string) error {
	if c.in.length == 0 {
		return badHeader("Content-Length", "0")
	}
	of, err := c.command()
	if err != nil {
		return err
	}
	w, sums := &blobs.PutBlock{Command: of, ID: id}, c.in.digests.ofBlocks(c.r.Version, true)
	if c.in.length > blobs.InlineBytesMax {
		// As with Put Blob: a large body that would be refused is not taken.
		err := c.ask(c.rangeOf(w.Name), func(s ranges.State) error { return w.Admit(s, c.now()) })
		if err != nil {
			return err
		}
	}
	defer func() { c.bodyHold.Release() }()
	w.Block.Length = uint32(c.in.length) // At most blobs.BlockBytesMax.
	if w.Block.Inline, w.Block.Chunks, err = c.takeBody(sums); err != nil {
		return err
	}
	if err := sums.check(); err != nil {
		return err
	}
	if err := c.commit(w, &w.Command); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusCreated, md5: sums.md5Text(), crc64: sums.crcText(), written: true})
	return nil
}

// parseBlockID reads the blockid parameter. A plus sign that a client left raw came as a
// space (protocol/blob.md 1.4).
func (c *call) parseBlockID() (string, error) {
	text, sent := c.r.Query.Lookup("blockid")
	if !sent || text == "" {
		return "", storageerr.MissingQueryParameter.With("QueryParameterName", "blockid")
	}
	id, ok := decodeBlockID(strings.ReplaceAll(text, " ", "+"))
	if !ok {
		return "", wire.BadParameter("blockid", text, "The value is not the Base64 form of 1 to 64 bytes.")
	}
	return id, nil
}

// decodeBlockID reads an id of 1 to 64 bytes (protocol/blob.md 10.2).
func decodeBlockID(text string) (id string, ok bool) {
	b, ok := wire.DecodeBase64(text)
	return string(b), ok && len(b) > 0 && len(b) <= blobs.BlockIDMax
}

// commit submits a command on a blob, and drops what it left dead.
func (c *call) commit(w services.Write, of *blobs.Command) error {
	write := c.o.Writer.Write
	if c.turn != nil {
		write = c.turn.write
	}
	if err := write(c.ctx, w); err != nil {
		return err
	}
	if of.Left {
		c.dropDead(of.Name)
	}
	return nil
}

// dropDead deletes rows of blocks that a write has left dead: after it, and before its
// answer, so that a client that goes on writing does not outrun it. What it cannot
// delete stays unread until the next write of the blob that leaves some.
func (c *call) dropDead(n blobs.Name) {
	for from := []byte(nil); ; {
		drop := &blobs.DropDead{Command: blobs.Command{Name: n}}
		var err error
		from, err = scan(c, c.rangeOf(n), func(r kv.Reader, budget *services.Budget) (next []byte, err error) {
			drop.Rows, next, err = blobs.Dead(c.ctx, r, n, from, budget)
			return next, err
		})
		if err == nil && len(drop.Rows) > 0 {
			err = c.o.Writer.Write(c.ctx, drop)
		}
		if err != nil {
			c.o.Logger.Info("rows of dropped blocks stay for now", "container", n.Container, "blob", n.Blob,
				"error", err, "request_id", c.r.ID)
		}
		if err != nil || from == nil {
			return
		}
	}
}
