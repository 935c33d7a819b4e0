package wire

import (
	"strings"

	"antipode/geo"
)

const (
	tableTagPrefix = `W/"datetime'`
	tableTagSuffix = `'"`
)

// AppendTableETag appends an entity's tag: W/"datetime'2008-10-01T15%3A27%3A34.4838174Z'",
// weak, with the digits of its Timestamp and the colons percent-encoded.
func AppendTableETag(b []byte, ts geo.Timestamp) []byte {
	b = append(b, tableTagPrefix...)
	b = appendSeconds(b, ts, "%3A")
	b = append(appendFraction(b, ts, true), 'Z')
	return append(b, tableTagSuffix...)
}

// TableETag is AppendTableETag into a string.
func TableETag(ts geo.Timestamp) string {
	var b [48]byte
	return string(AppendTableETag(b[:0], ts))
}

// ParseTableETag reads what AppendTableETag writes, and the same with any part of
// the quoted text percent-encoded or not: one client rebuilds the tag with raw
// colons. ok is false for any other tag.
func ParseTableETag(tag string) (ts geo.Timestamp, ok bool) {
	text, ok := UnescapePath(tag)
	if !ok {
		return 0, false
	}
	text, ok1 := strings.CutPrefix(text, tableTagPrefix)
	text, ok2 := strings.CutSuffix(text, tableTagSuffix)
	if !ok1 || !ok2 {
		return 0, false
	}
	return ParseISO(text)
}

// AppendBlobETag appends a blob's or container's tag as headers carry it: "0x8D…",
// the ticks since year 1 in upper-case hexadecimal, in quotes. XML listings leave
// the quotes out.
func AppendBlobETag(b []byte, ts geo.Timestamp) []byte {
	const upper = "0123456789ABCDEF"
	b = append(b, `"0x`...)
	ticks := ts.Ticks()
	shift := 60
	for shift > 0 && ticks>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		b = append(b, upper[ticks>>shift&15])
	}
	return append(b, '"')
}

// BlobETag is AppendBlobETag into a string.
func BlobETag(ts geo.Timestamp) string {
	var b [24]byte
	return string(AppendBlobETag(b[:0], ts))
}
