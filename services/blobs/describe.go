package blobs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"antipode/geo"
	"antipode/stamp/extent"
)

// RowInfo describes a row of a blob's partition, for people.
type RowInfo struct {
	// Kind is blob, staging, block, list or snapshot.
	Kind string
	// Detail is one line.
	Detail string
	// Bytes of payload that the row stands for, and the chunks it names.
	Bytes  uint64
	Chunks []extent.Ref
}

// DescribeRow decodes a row by its key within the partition. It returns ErrMalformed if the key
// or the value was not written by this package; Kind is set if the key was understood.
func DescribeRow(row, value []byte) (i RowInfo, err error) {
	if len(row) == 0 {
		return i, ErrMalformed
	}
	switch row[0] {
	case rowBlob:
		i.Kind = "blob"
		b, err := parseRow(value)
		if err != nil {
			return i, err
		}
		i.Bytes, i.Chunks = b.Length, b.Chunks
		i.Detail = fmt.Sprintf("modified %s, %s", b.Modified, b.where())
		if l := b.Lease.Describe(); l != "" {
			i.Detail += ", " + l
		}
		i.Detail += b.Tiering.describe(b.Tier)
		if n := len(b.Tags); n > 0 {
			i.Detail += fmt.Sprintf(", %d tags", n)
		}
		if c := b.Copied; c != nil {
			i.Detail += fmt.Sprintf(", copied from %s", c.Source)
		}
	case rowSnapshot:
		i.Kind = "snapshot"
		b, err := parseRow(value)
		if err != nil || len(row) != snapshotRowLen {
			return i, ErrMalformed
		}
		i.Bytes, i.Chunks = b.Length, b.Chunks
		i.Detail = fmt.Sprintf("time %s, modified %s, %s", geo.Timestamp(binary.BigEndian.Uint64(row[9:])), b.Modified, b.where())
	case rowStaging:
		i.Kind = "staging"
		s, err := parseStaging(value)
		if err != nil {
			return i, err
		}
		i.Detail = fmt.Sprintf("session %s, %d blocks, last %s", s.Session, s.Count, s.Last)
		if c := s.Copying; c.Session != 0 {
			i.Detail += fmt.Sprintf(", copy %x of session %s", c.ID, c.Session)
		}
	case rowBlock:
		i.Kind = "block"
		b, err := parseBlock(value)
		if err != nil || len(row) < 9 {
			return i, ErrMalformed
		}
		i.Bytes, i.Chunks = uint64(b.Length), b.Chunks
		i.Detail = fmt.Sprintf("session %s, id %s", geo.Timestamp(binary.BigEndian.Uint64(row[1:])), hex.EncodeToString(row[9:]))
	case rowList:
		i.Kind = "list"
		entries, err := parseSegment(value)
		if err != nil || len(row) != 13 {
			return i, ErrMalformed
		}
		for _, e := range entries {
			i.Bytes += uint64(e.length)
		}
		i.Detail = fmt.Sprintf("list %s, part %d, %d blocks",
			geo.Timestamp(binary.BigEndian.Uint64(row[1:])), binary.BigEndian.Uint32(row[9:]), len(entries))
	default:
		return i, ErrMalformed
	}
	return i, nil
}

// describe describes a tier that keeps clients from the content; nothing of another one.
func (t Tiering) describe(tier Tier) string {
	switch {
	case tier != TierArchive:
		return ""
	case t.To != TierDefault:
		return fmt.Sprintf(", archived, tier %d at %s", t.To, t.Until)
	}
	return ", archived"
}

// where describes where the payload is.
func (b *Blob) where() string {
	switch {
	case len(b.Chunks) > 0:
		return fmt.Sprintf("%d bytes in %d chunks", b.Length, len(b.Chunks))
	case b.List != nil:
		return fmt.Sprintf("%d bytes in block list %s", b.Length, b.List.ID)
	case b.Appended != nil && b.Appended.Sealed:
		return fmt.Sprintf("%d bytes in %d appended blocks of session %s, sealed", b.Length, b.Appended.Blocks, b.Appended.Session)
	case b.Appended != nil:
		return fmt.Sprintf("%d bytes in %d appended blocks of session %s", b.Length, b.Appended.Blocks, b.Appended.Session)
	}
	return fmt.Sprintf("%d bytes inline", b.Length)
}
