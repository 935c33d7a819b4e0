package blobs

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// putBlockList is Put Block List (protocol/blob.md B12).
func (c *call) putBlockList() error {
	sums := c.in.digests.ofBlocks(c.r.Version, false)
	c.bodyHold = c.inFlight.Hold(c.r)
	defer c.bodyHold.Release()
	body := &listBody{c: c, sums: sums}
	blocks, err := parseBlockList(body)
	switch {
	case body.failed != nil:
		return body.failed
	case err != nil:
		return err
	}
	if err := sums.check(); err != nil {
		return err
	}
	of, err := c.command()
	if err != nil {
		return err
	}
	w := &blobs.PutBlockList{Command: of, Blob: c.in.newBlob(), Blocks: blocks}
	if err := c.commitBlocks(w); err != nil {
		return err
	}
	c.writeHead(&head{status: http.StatusCreated, modified: w.Modified, md5: sums.md5Text(), crc64: sums.crcText(), written: true})
	return nil
}

// commitTries is how often a long list is prepared that other writes overtake.
const commitTries = 5

// commitBlocks prepares and commits a list. Nothing happened where it is overtaken by
// another write of the blob every time.
func (c *call) commitBlocks(w *blobs.PutBlockList) error {
	for range commitTries {
		snap, err := c.snapshot(c.rangeOf(w.Name))
		if err != nil {
			return err
		}
		if err := errors.Join(w.Prepare(c.ctx, snap, c.now()), snap.Close()); err != nil {
			return err
		}
		if err := c.commit(w, &w.Command); !errors.Is(err, blobs.ErrOvertaken) {
			return err
		}
	}
	return storageerr.ServerBusy
}

// listBody is the body of a Put Block List: hashed on its way, and with the answer to
// one that breaks off.
type listBody struct {
	c      *call
	sums   *digests
	failed error
	// length is what was read, charged what the request's hold was charged for.
	length, charged int64
}

// listStep is what is charged of a block list at a time, in bytes.
const listStep = 64 << 10

func (b *listBody) Read(p []byte) (int, error) {
	if p = p[:min(len(p), listStep)]; b.length+int64(len(p)) > b.charged {
		if b.failed = b.c.bodyHold.Grow(b.c.ctx, listStep); b.failed != nil {
			return 0, b.failed
		}
		b.charged += listStep
	}
	n, err := b.c.r.HTTP.Body.Read(p)
	b.length += int64(n)
	b.sums.write(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = b.c.broken(err)
	}
	return n, err
}

// parseBlockList reads the body of Put Block List to its end. The order of the blocks
// is that of the document, whatever their elements. Errors: InvalidXmlDocument for
// what is no such document, BlockListTooLong, and InvalidBlockList for an id that no
// block can have.
func parseBlockList(r io.Reader) ([]blobs.Named, error) {
	dec := xml.NewDecoder(r)
	var out []blobs.Named
	var text []byte
	depth, roots := 0, 0
	which := map[string]blobs.Which{"Committed": blobs.Committed, "Uncommitted": blobs.Uncommitted, "Latest": blobs.Latest}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) && roots == 1 {
			return out, nil
		}
		if err != nil {
			return nil, storageerr.InvalidXMLDocument
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			switch {
			case depth == 1 && t.Name.Local == "BlockList" && roots == 0:
				roots++
			case depth == 2 && which[t.Name.Local] != 0:
				text = text[:0]
			default:
				return nil, storageerr.InvalidXMLDocument
			}
		case xml.CharData:
			if depth == 2 {
				text = append(text, t...)
			} else if strings.Trim(string(t), "\ufeff \t\r\n") != "" {
				return nil, storageerr.InvalidXMLDocument
			}
		case xml.EndElement:
			if depth--; depth == 0 {
				continue
			}
			if len(out) == blobs.CommittedMax {
				return nil, storageerr.BlockListTooLong
			}
			id, ok := decodeBlockID(strings.TrimSpace(string(text)))
			if !ok {
				return nil, storageerr.InvalidBlockList
			}
			out = append(out, blobs.Named{Which: which[t.Name.Local], ID: id})
		case xml.Directive:
			return nil, storageerr.InvalidXMLDocument // A document type has no place here.
		}
	}
}

// blockLister writes an answer of Get Block List, a window of the document at a time:
// the two lists may have 150,000 entries. Windows are of one committed list, or the
// answer breaks off; the uncommitted blocks are those of the moment a window is read.
type blockLister struct {
	*call
	name    blobs.Name
	guard   blobs.Guard
	blob    *blobs.Blob
	staging blobs.Staging
	live    bool
	lists

	part  int    // of the committed list, next
	after string // the last uncommitted id
	state listerState
}

// listerState is where a blockLister is.
type listerState int

const (
	atStart listerState = iota
	inCommitted
	beforePending
	inPending
	atEnd
	done
)

// pendingWindow is how many uncommitted blocks are read at once: their rows may hold
// 16 KiB each.
const pendingWindow = 256

const (
	// windowDocBytes is where a window of the document ends: what is shorter is read from
	// one snapshot.
	windowDocBytes = 64 << 10
	// windowHeldBytes is what a window may hold: its last step adds up to 256 blocks to it,
	// of 140 bytes each.
	windowHeldBytes = 2 * windowDocBytes
)

// lists are those that a Get Block List asks for.
type lists struct{ committed, pending bool }

// parseLists reads the blocklisttype parameter.
func (c *call) parseLists() (lists, error) {
	switch kind := c.r.Query.Get("blocklisttype"); lower(kind) {
	case "", "committed":
		return lists{committed: true}, nil
	case "uncommitted":
		return lists{pending: true}, nil
	case "all":
		return lists{true, true}, nil
	default:
		return lists{}, wire.BadParameter("blocklisttype", kind, "The value is committed, uncommitted or all.")
	}
}

// blockList is Get Block List (protocol/blob.md 10.5).
func (c *call) blockList(asked lists) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	l := &blockLister{call: c, name: name, guard: c.in.guard, lists: asked}
	ctx, cancel := context.WithTimeout(c.ctx, lookupMax)
	defer cancel()
	end, err := c.begin(ctx, windowHeldBytes)
	if err != nil {
		return err
	}
	defer end()
	held, err := c.room().Admit(ctx, windowHeldBytes)
	if err != nil {
		return err
	}
	defer c.room().Release(held)
	doc := make([]byte, 0, windowHeldBytes)
	for l.state != done {
		begins := l.state == atStart
		doc, err = c.blockListWindow(l, doc[:0])
		if err != nil && !begins {
			panic(http.ErrAbortHandler) // The answer has begun; its client is to see that it broke off.
		}
		if err != nil {
			return err
		}
		if begins {
			c.blockListHeaders(l)
		}
		if _, err := c.w.Write(doc); err != nil {
			return nil // The client is gone.
		}
	}
	return nil
}

// blockListWindow moves l on by one window and appends its text.
func (c *call) blockListWindow(l *blockLister, doc []byte) (_ []byte, err error) {
	snap, err := c.snapshot(c.rangeOf(l.name))
	if err != nil {
		return nil, err
	}
	for err == nil && l.state != done && len(doc) < windowDocBytes {
		doc, err = l.step(doc, snap, c.now())
	}
	return doc, errors.Join(err, snap.Close())
}

func (c *call) blockListHeaders(l *blockLister) {
	a := head{status: http.StatusOK, listed: "0", contentType: "application/xml", streamed: true}
	if l.blob != nil {
		a.modified, a.listed = l.blob.Modified, strconv.FormatUint(l.blob.Length, 10)
	}
	c.writeHead(&a)
}

// step appends the next part of the document.
func (l *blockLister) step(doc []byte, r kv.Reader, now geo.Timestamp) (_ []byte, err error) {
	switch l.state {
	case atStart:
		if err := l.start(r, now); err != nil {
			return nil, err
		}
		doc = append(doc, wire.XMLStart+"<BlockList>"...)
		if l.state = beforePending; l.committed {
			l.state = inCommitted
			doc = append(doc, "<CommittedBlocks>"...)
		}
	case inCommitted:
		if l.blob != nil && l.blob.List != nil && l.part < len(l.blob.List.Segments) {
			infos, err := blobs.CommittedBlocks(r, l.name, l.blob, l.part)
			l.part++
			return appendBlocks(doc, infos), err
		}
		doc = append(doc, "</CommittedBlocks>"...)
		l.state = beforePending
	case beforePending:
		if l.state = atEnd; l.pending {
			l.state = inPending
			doc = append(doc, "<UncommittedBlocks>"...)
		}
	case inPending:
		var infos []blobs.BlockInfo
		if l.live {
			if infos, err = blobs.StagedBlocks(r, l.name, l.staging, l.after, pendingWindow); err != nil {
				return nil, err
			}
		}
		doc = appendBlocks(doc, infos)
		if len(infos) < pendingWindow {
			l.state = atEnd
			return append(doc, "</UncommittedBlocks>"...), nil
		}
		l.after = infos[len(infos)-1].ID
	case atEnd:
		doc = append(doc, "</BlockList>"...)
		l.state = done
	}
	return doc, nil
}

// start reads the blob and its staging, under the guard.
func (l *blockLister) start(r kv.Reader, now geo.Timestamp) (err error) {
	if l.in.snapshot == 0 { // A snapshot has no uncommitted blocks.
		if l.staging, l.live, _, err = blobs.GetStaging(r, l.name, now); err != nil {
			return err
		}
	}
	b, err := l.find(r, l.name)
	switch {
	case b.Appended != nil:
		return storageerr.InvalidBlobType
	case err == nil:
		l.blob = &b
	case errors.Is(err, storageerr.BlobNotFound) && l.live:
	default:
		return err
	}
	b.SettleTier(now)
	if err := l.guard.Check(blobs.State{Modified: b.Modified, Lease: b.Lease, Tags: b.Tags}, now, lease.OfBlob()); err != nil {
		return err
	}
	return b.Online()
}

func appendBlocks(doc []byte, infos []blobs.BlockInfo) []byte {
	for _, i := range infos {
		doc = append(doc, "<Block>"...)
		doc = wire.AppendElement(doc, "Name", base64.StdEncoding.EncodeToString([]byte(i.ID)))
		doc = wire.AppendElement(doc, "Size", strconv.FormatUint(i.Size, 10))
		doc = append(doc, "</Block>"...)
	}
	return doc
}
