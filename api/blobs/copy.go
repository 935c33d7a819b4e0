package blobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

const (
	headerCopyID     = "X-Ms-Copy-Id"
	headerCopyStatus = "X-Ms-Copy-Status"
	headerTagOption  = "X-Ms-Copy-Source-Tag-Option"
	headerSeal       = "X-Ms-Seal-Blob"
	headerSync       = "X-Ms-Requires-Sync"

	// copySuccess is the status of every copy: none is pending.
	copySuccess = "success"
)

// checkCopyBlob reads what Copy Blob has alone.
func (c *call) checkCopyBlob() (err error) {
	in := &copySource{blocks: true}
	c.in.from = in
	if text := c.r.Header(headerSync); text != "" && lower(text) != "true" { // With true it is Copy Blob From URL, but for comp=copy.
		return badHeader(headerSync, text)
	}
	if c.r.Version >= protocol.Version20191212 {
		if in.seal, err = parseBool(c.r.HTTP.Header, headerSeal); err != nil {
			return err
		}
	}
	if _, err := c.parsePriority(); err != nil {
		return err
	}
	if c.r.Version >= protocol.Version20120212 {
		if err := c.refuse([]string{headerSourceLease}); err != nil {
			return err
		}
	} else if in.lease, err = parseLeaseID(c.r.HTTP.Header, headerSourceLease); err != nil {
		return err
	}
	return c.readSourceTags()
}

// checkCopyFromURL reads what Copy Blob From URL has alone.
func (c *call) checkCopyFromURL() error {
	c.in.from = &copySource{blocks: true}
	if c.r.Version < c.asked.Since {
		return c.refuse([]string{headerSync})
	}
	if err := c.readSourceDigests(); err != nil {
		return err
	}
	return c.readTagOption()
}

// readTagOption reads whether the tags of the source are copied, which is to write tags.
func (c *call) readTagOption() error {
	if c.r.Version < "2021-04-10" {
		return nil
	}
	switch text := c.r.Header(headerTagOption); text {
	case "", "REPLACE":
		return nil
	case "COPY":
		c.in.from.tagged = true
	default:
		return badHeader(headerTagOption, text)
	}
	if c.r.Header(headerTags) != "" {
		return storageerr.BothTagsAndSourceTags
	}
	if !c.r.Access.Tags() {
		return storageerr.PermissionMismatch
	}
	return nil
}

// targetConditions are those on the destination of a copy, which has another code for them.
type targetConditions struct{ blobs.Conditions }

// Write implements blobs.Conditions.
func (t targetConditions) Write(creates, exists bool, modified geo.Timestamp) error {
	err := t.Conditions.Write(creates, exists, modified)
	if errors.Is(err, storageerr.ConditionNotMet) {
		return storageerr.TargetConditionNotMet
	}
	return err
}

// copyCommand is command for the destination of a copy.
func (c *call) copyCommand() (blobs.Command, error) {
	of, err := c.command()
	if of.Conditions != nil {
		of.Conditions = targetConditions{of.Conditions}
	}
	return of, err
}

// copyBlob is Copy Blob (protocol/blob.md B22) and Copy Blob From URL (B23).
func (c *call) copyBlob() error {
	of, err := c.copyCommand()
	if err != nil {
		return err
	}
	a := &head{status: http.StatusAccepted}
	err = c.withSource(func(o *origin) error {
		w := &blobs.CopyBlob{Command: of}
		var id lease.ID
		err := c.drawID(&id)
		if err != nil {
			return err
		}
		w.Begin(id)
		if w.Blob, err = c.copyOf(o); err != nil {
			return err
		}
		if w.Blob.Appended, err = c.appendedOf(o); err != nil {
			return err
		}
		w.Blob.Copied = &blobs.Copied{ID: id, Source: o.Shown, Bytes: o.blob.Length}
		if err := c.ask(c.rangeOf(w.Name), func(s ranges.State) error { return w.Admit(s, c.now()) }); err != nil {
			return err
		}
		sums := c.in.from.newDigests()
		if err = c.bring(o, w, sums); err == nil {
			err = c.commit(w, &w.Command)
		}
		if err != nil {
			c.endCopy(w)
			return err
		}
		a.modified, a.copied, a.md5, a.crc64 = w.Modified, id.String(), sums.md5Text(), sums.crcText()
		return nil
	})
	if err != nil {
		return err
	}
	if c.r.Version < protocol.Version20120212 {
		a.status, a.copied = http.StatusCreated, ""
	}
	c.writeHead(a)
	return nil
}

// copyOf is the blob that a copy makes, without its payload (protocol/blob.md 13.1).
func (c *call) copyOf(o *origin) (blobs.Blob, error) {
	b, in := o.blob.Blob, c.in.from
	if limit := c.asked.CopyMax(c.r.Version); limit > 0 && b.Length > uint64(limit) {
		return blobs.Blob{}, tooLarge(limit)
	}
	if o.elsewhere != nil && b.Length > elsewhereMax {
		return blobs.Blob{}, tooLarge(elsewhereMax)
	}
	out := blobs.Blob{Tier: c.in.tier, Tags: c.in.tags, Metadata: c.in.metadata, Properties: b.Properties, MD5: b.MD5}
	if len(out.Metadata) == 0 {
		out.Metadata = b.Metadata
	}
	if in.tagged {
		if !o.Read.Access.Tags() {
			return out, refusedBy(storageerr.PermissionMismatch)
		}
		out.Tags = b.Tags
	}
	return out, nil
}

// appendedOf makes the copy of an append blob one; nil for that of a block blob.
func (c *call) appendedOf(o *origin) (*blobs.Appended, error) {
	a, seal := o.blob.Appended, c.in.from.seal
	switch {
	case a == nil && seal:
		return nil, badHeader(headerSeal, c.r.Header(headerSeal))
	case a == nil:
		return nil, nil //nolint:nilnil // It is a block blob.
	case c.asked.Name == "CopyBlobFromURL":
		return nil, storageerr.InvalidSourceBlobType
	case c.in.tier != blobs.TierDefault:
		return nil, badHeader(headerTier, c.r.Header(headerTier))
	}
	return &blobs.Appended{Sealed: seal || a.Sealed}, nil
}

func tooLarge(limit int64) error {
	return unsuitable(fmt.Sprintf("The copy source is too large and exceeds the maximum permissible limit (%d bytes).", limit))
}

// rehydrates reports whether a request copies an archived blob, of which err is the refusal, into a tier that is online
// (protocol/blob.md 13.1).
func (c *call) rehydrates(o *origin, err error) bool {
	online := o.here.r.Account.Name == c.r.Account.Name && c.in.tier != blobs.TierDefault && c.in.tier != blobs.TierArchive
	return online && c.asked.Name == "CopyBlob" && c.r.Version >= protocol.Version20190202 && errors.Is(err, storageerr.BlobArchived)
}

// bring gives a copy its payload: the rows that name it, or what a server elsewhere sends.
func (c *call) bring(o *origin, w *blobs.CopyBlob, sums *digests) (err error) {
	b := o.blob
	if o.elsewhere != nil {
		w.Blob.Length = b.Length
		w.Blob.Inline, w.Blob.Chunks, err = c.takeSource(o, sums)
		return err
	}
	if err := o.verify(sums); err != nil {
		return err
	}
	if !b.InRows() {
		w.Blob.Length, w.Blob.Inline, w.Blob.Chunks = b.Length, b.Inline, b.Chunks
		return nil
	}
	// What is read of blocks at once, what is staged next of them, and of each its name.
	const blocksHeld, nameHeld = 2 << 20, 256
	c.bodyHold.Release() // Of the try before.
	c.bodyHold = c.inFlight.Hold(c.r)
	if err := c.bodyHold.Grow(c.ctx, blocksHeld); err != nil {
		return err
	}
	for next := uint64(0); next < b.Length; {
		var blocks []blobs.CopyBlock
		if blocks, next, err = o.blocksAt(next, w); err != nil {
			return err
		}
		if err := c.bodyHold.Grow(c.ctx, int64(len(blocks)*nameHeld)); err != nil {
			return err
		}
		if !w.Add(blocks) {
			continue
		}
		for step := w.Stage(); step != nil; step = w.Stage() {
			if err := c.commit(step, &step.Command); err != nil {
				return err
			}
			w.Staged(step)
		}
	}
	return nil
}

// endCopyMax bounds the end of a copy that broke off, whose request may be over.
const endCopyMax = 10 * time.Second

// endCopy drops what was staged for a copy that was not committed. What it cannot drop stays unread until the next write of the
// blob.
func (c *call) endCopy(w *blobs.CopyBlob) {
	end := w.End()
	if end == nil {
		return
	}
	request := c.ctx
	defer func() { c.ctx = request }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request), endCopyMax)
	defer cancel()
	c.ctx = ctx
	if err := c.commit(end, &end.Command); err != nil {
		c.o.Logger.Info("rows of a copy that broke off stay for now", "container", w.Name.Container, "blob", w.Name.Blob, "error", err,
			"request_id", c.r.ID)
	}
}

// blocksAt reads blocks of a source that a copy needs.
func (o *origin) blocksAt(off uint64, w *blobs.CopyBlob) (blocks []blobs.CopyBlock, next uint64, err error) {
	snap, err := o.here.snapshot(o.here.rangeOf(o.blob.name))
	if err != nil {
		return nil, 0, err
	}
	blocks, next, err = blobs.BlocksAt(snap, o.blob.name, o.blob.Blob, off, w.Has)
	return blocks, next, errors.Join(err, snap.Close())
}

// drawID draws a random GUID (RFC 9562, 5.4).
func (c *call) drawID(id *lease.ID) error {
	if _, err := io.ReadFull(c.o.Rand, id[:]); err != nil {
		return fmt.Errorf("draw an id: %w", err)
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return nil
}

// checkAbort reads what Abort Copy Blob has alone.
func (c *call) checkAbort() error {
	if err := c.checkSince(); err != nil {
		return err
	}
	text := c.r.Query.Get("copyid")
	if text == "" {
		return storageerr.MissingQueryParameter.With("QueryParameterName", "copyid")
	}
	if _, ok := lease.ParseID(text); !ok {
		return wire.BadParameter("copyid", text, "The value is no GUID.")
	}
	return nil
}

// abortCopy is Abort Copy Blob (protocol/blob.md B24). A copy ends with the request that asks for it, so there is none to abort.
func (c *call) abortCopy() error {
	if _, err := c.lookup(nil); err != nil {
		return err
	}
	return storageerr.NoPendingCopyOperation
}

// copied writes the headers of the copy that a blob came by (protocol/blob.md 13.4).
func (w *headers) copied(b *blobs.Blob) {
	if b.Copied == nil || w.version < protocol.Version20120212 {
		return
	}
	w.set(headerCopyID, lease.ID(b.Copied.ID).String())
	w.set(headerCopyStatus, copySuccess)
	w.set(headerCopySource, b.Copied.Source)
	w.set("X-Ms-Copy-Progress", copyProgress(b.Copied))
	w.set("X-Ms-Copy-Completion-Time", wire.FormatHTTPTime(b.Copied.Ended.Time()))
}

// copyElements are those of a copy in a listing.
func copyElements(b []byte, of *blobs.Copied) []byte {
	b = wire.AppendElement(b, "CopyId", lease.ID(of.ID).String())
	b = wire.AppendElement(b, "CopyStatus", copySuccess)
	b = wire.AppendElement(b, "CopySource", of.Source)
	b = wire.AppendElement(b, "CopyProgress", copyProgress(of))
	return wire.AppendTimeElement(b, "CopyCompletionTime", of.Ended.Time())
}

func copyProgress(of *blobs.Copied) string {
	n := strconv.FormatUint(of.Bytes, 10)
	return n + "/" + n
}
