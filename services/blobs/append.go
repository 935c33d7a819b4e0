package blobs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// appendedRow is the key of the row of an appended block, by where in the blob the block ends. So the first row above the
// key of an offset has the byte at that offset.
func appendedRow(session geo.Timestamp, end uint64) []byte {
	return binary.BigEndian.AppendUint64(blockRow(session, ""), end)
}

// AppendBlock is Append Block (protocol/blob.md B17). Appends are evaluated one after the other, so each begins where
// another one ended. One that is repeated appends twice, unless it has a Position.
type AppendBlock struct {
	Command
	// Position is what the length of the blob must be, and SizeMax what it may be afterwards; nil for whatever it is.
	Position, SizeMax *uint64
	// Block is not used again once the command is submitted. Its chunks are durable before (R3).
	Block Block
	// Offset is a result: where the block begins. Blocks is another: how many the blob has now.
	Offset uint64
	Blocks uint32
}

// Admit tests, on the state that get shows, what depends on the length of the block and not on its content. So a
// large body can be refused before it is read. Evaluate tests again.
func (w *AppendBlock) Admit(get kv.Getter, now geo.Timestamp) error {
	w.InTime(now)
	_, err := w.admit(get)
	return err
}

func (w *AppendBlock) admit(get kv.Getter) (Blob, error) {
	b, err := w.appendBlob(get)
	switch {
	case err != nil:
		return b, err
	case b.Appended.Sealed:
		return b, storageerr.BlobIsSealed
	case !equals(w.Position, b.Length):
		return b, storageerr.AppendPositionNotMet
	case w.SizeMax != nil && b.Length+uint64(w.Block.Length) > *w.SizeMax:
		return b, storageerr.MaxBlobSizeNotMet
	case b.Appended.Blocks >= CommittedMax:
		return b, storageerr.AppendedBlocksExceedLimit
	}
	return b, nil
}

// equals reports whether a blob has the length that a request asks for; nil asks for none.
func equals(position *uint64, length uint64) bool {
	return position == nil || *position == length || plantedbugs.Planted(plantedbugs.PositionIgnored)
}

// Evaluate implements services.Write.
func (w *AppendBlock) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	b, err := w.admit(get)
	if err != nil {
		return services.Effect{}, err
	}
	block, err := w.Block.value()
	if err != nil {
		return services.Effect{}, err
	}
	w.Offset, w.Blocks, w.Modified = b.Length, b.Appended.Blocks+1, at
	b.Length += uint64(w.Block.Length)
	b.Appended.Blocks++
	b.Modified = at
	effect, err := b.effect()
	effect.Ops = append(effect.Ops, change.Op{Row: appendedRow(b.Appended.Session, b.Length), Value: block})
	effect.Chunks = w.Block.Chunks
	return effect, err
}

// Seal is Append Blob Seal (protocol/blob.md B19): nothing can be appended any more. It leaves ETag and Last-Modified.
type Seal struct {
	Command
	// Position is as that of AppendBlock.
	Position *uint64
}

// Evaluate implements services.Write.
func (w *Seal) Evaluate(get kv.Getter, _ geo.Timestamp) (services.Effect, error) {
	b, err := w.appendBlob(get)
	switch {
	case err != nil:
		return services.Effect{}, err
	case !equals(w.Position, b.Length):
		return services.Effect{}, storageerr.AppendPositionNotMet
	}
	w.Modified = b.Modified
	if b.Appended.Sealed {
		return services.Effect{}, nil
	}
	b.Appended.Sealed = true
	return b.effect()
}

// appendBlob reads the append blob that a command writes, under its guard. Its lease is what the write leaves of it.
func (c *Command) appendBlob(get kv.Getter) (Blob, error) {
	b, err := GetBlob(get, c.Name)
	switch {
	case err != nil:
		return b, err
	case b.Appended == nil:
		return b, storageerr.InvalidBlobType
	}
	if err := c.check(false, true, &b); err != nil {
		return b, err
	}
	b.Lease = b.Lease.Written(c.now)
	return b, nil
}

// addAppended adds the blocks of an append blob from the one that holds offset off, until end or the bound of a window.
// The blob may be an earlier state of one that has grown since: blocks never change.
func (w *Window) addAppended(r kv.Reader, n Name, b *Blob, off, end uint64) error {
	session := n.keyOf(blockRow(b.Appended.Session, ""))
	it, err := r.Scan(n.keyOf(appendedRow(b.Appended.Session, off+1)), keys.PrefixEnd(session))
	if err != nil {
		return err
	}
	for at := off; err == nil && at < end && !w.full(); {
		if !it.Next() {
			err = ErrReplaced
			break
		}
		var block Block
		var start uint64
		if block, start, err = parseAppended(it.Key()[len(session):], it.Value()); err != nil {
			break
		}
		ends := start + uint64(block.Length)
		switch {
		case start > at:
			err = ErrReplaced // Rows before it are gone.
		case start < at && at != off || ends > b.Length:
			err = fmt.Errorf("%w: block of bytes %d to %d, behind %d, of %d", ErrMalformed, start, ends, at, b.Length)
		default:
			block.Inline = bytes.Clone(block.Inline)
			w.add(block, start, off, end)
		}
		at = ends
	}
	return errors.Join(err, it.Close())
}

// parseAppended decodes a row of an appended block, of which id is the key behind the session, and returns where in the blob
// the block begins. Inline aliases v.
func parseAppended(id, v []byte) (b Block, start uint64, err error) {
	if b, err = parseBlock(v); err != nil {
		return b, 0, err
	}
	if len(id) != 8 || binary.BigEndian.Uint64(id) < uint64(b.Length) {
		return b, 0, fmt.Errorf("%w: block of %d bytes that ends at %x", ErrMalformed, b.Length, id)
	}
	return b, binary.BigEndian.Uint64(id) - uint64(b.Length), nil
}
