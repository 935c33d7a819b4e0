package blobs

import (
	"errors"
	"fmt"

	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// ErrReplaced: the payload of a blob cannot be read any more, since the blob was
// written or deleted after its row was read.
var ErrReplaced = errors.New("blobs: the blob was replaced while it was read")

// Bounds of one window.
const (
	windowPartsMax = 256
	windowBytesMax = 64 << 10 // of payload inline
)

// Part is a part of a blob's payload: Inline, or the whole Chunk if that is nil.
type Part struct {
	Inline []byte
	Chunk  extent.Ref
}

// Len is the number of payload bytes.
func (p *Part) Len() uint64 {
	if p.Inline != nil {
		return uint64(len(p.Inline))
	}
	return uint64(p.Chunk.Length)
}

// Window is a bounded run of parts.
type Window struct {
	// Start is where in the blob the first part begins; End is behind the last.
	Start, End uint64
	Parts      []Part
	inline     int
}

// WindowAt returns the parts of a blob from the one that holds offset off, until end or the bound
// of a window is reached; off < end <= b.Length. The rows that a blob's row names do not change
// while they exist, so windows read one after the other show one state of the blob. It returns
// ErrReplaced once they are gone.
// r may be nil where the payload is in the row: see Blob.InRows.
func WindowAt(r kv.Reader, n Name, b *Blob, off, end uint64) (Window, error) {
	var w Window
	if !b.InRows() {
		w.add(Block{Inline: b.Inline, Chunks: b.Chunks}, 0, off, end)
		return w, nil
	}
	if b.Appended != nil {
		err := w.addAppended(r, n, b, off, end)
		return w, err
	}
	at := uint64(0)
	for i, length := range b.List.Segments {
		if at >= end || w.full() {
			break
		}
		if at+length <= off {
			at += length
			continue
		}
		entries, err := getSegment(r, n, b.List.ID, i)
		if err != nil {
			return w, err
		}
		for _, e := range entries {
			if at >= end || w.full() {
				break
			}
			if at+uint64(e.length) > off {
				block, ok, err := getBlock(r, n, e.session, e.id)
				switch {
				case err != nil:
					return w, err
				case !ok:
					return w, ErrReplaced
				case block.Length != e.length:
					return w, fmt.Errorf("%w: block of %d bytes, %d in the list", ErrMalformed, block.Length, e.length)
				}
				w.add(block, at, off, end)
			}
			at += uint64(e.length)
		}
	}
	return w, nil
}

func (w *Window) full() bool { return len(w.Parts) >= windowPartsMax || w.inline >= windowBytesMax }

// add appends the part of a block that lies in [off, end); the block begins at the offset at.
func (w *Window) add(b Block, at, off, end uint64) {
	if len(b.Chunks) == 0 {
		w.put(at, Part{Inline: b.Inline})
		w.inline += len(b.Inline)
		return
	}
	for _, ref := range b.Chunks {
		if at >= end || w.full() {
			return
		}
		if at+uint64(ref.Length) > off {
			w.put(at, Part{Chunk: ref})
		}
		at += uint64(ref.Length)
	}
}

func (w *Window) put(at uint64, p Part) {
	if len(w.Parts) == 0 {
		w.Start, w.End = at, at
	}
	w.Parts = append(w.Parts, p)
	w.End += p.Len()
}

// BlockInfo is one block as Get Block List shows it.
type BlockInfo struct {
	// ID is decoded.
	ID   string
	Size uint64
}

// CommittedBlocks returns the blocks of one row of the committed list, in order; part counts from
// zero up to len(b.List.Segments). ErrReplaced if the list is gone.
func CommittedBlocks(get kv.Getter, n Name, b *Blob, part int) ([]BlockInfo, error) {
	entries, err := getSegment(get, n, b.List.ID, part)
	out := make([]BlockInfo, 0, len(entries))
	for _, e := range entries {
		out = append(out, BlockInfo{e.id, uint64(e.length)})
	}
	return out, err
}

// StagedBlocks returns at most limit blocks of a session in the order of their ids,
// those behind the id after.
func StagedBlocks(r kv.Reader, n Name, s Staging, after string, limit int) ([]BlockInfo, error) {
	session := n.keyOf(blockRow(s.Session, ""))
	lower := n.keyOf(blockRow(s.Session, after))
	if after != "" {
		lower = append(lower, 0)
	}
	it, err := r.Scan(lower, keys.PrefixEnd(session))
	if err != nil {
		return nil, err
	}
	var out []BlockInfo
	for len(out) < limit && it.Next() {
		b, err := parseBlock(it.Value())
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		out = append(out, BlockInfo{string(it.Key()[len(session):]), uint64(b.Length)})
	}
	return out, it.Close()
}
