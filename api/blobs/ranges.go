package blobs

import (
	"math"
	"net/http"
	"strings"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// span is the bytes [off, end) of a blob that are answered.
type span struct {
	off, end uint64
	// ranged: the request asked for a range, so the answer is a 206.
	ranged bool
}

// hashBytesMax is the longest range whose hash is computed.
const hashBytesMax = 4 << 20

// parseSpan reads the range of a Get Blob (protocol/blob.md 8.1). What is not one range
// of the form bytes=a-b or bytes=a- is as if it were not there. InvalidRange where the
// range begins at the end of the blob or behind it.
func parseSpan(h http.Header, v protocol.Version, length uint64) (span, error) {
	text := h.Get("X-Ms-Range")
	if text == "" {
		text = h.Get("Range")
	}
	first, last, ok := cutRange(text, v)
	if !ok {
		return span{0, length, false}, nil
	}
	if first >= length {
		return span{}, storageerr.InvalidRange
	}
	return span{first, min(last, length-1) + 1, true}, nil
}

// cutRange reads bytes=a-b; last is the greatest number where there is no b.
func cutRange(text string, v protocol.Version) (first, last uint64, ok bool) {
	list, found := strings.CutPrefix(text, "bytes=")
	a, b, dash := strings.Cut(list, "-")
	if !found || !dash {
		return 0, 0, false
	}
	if first, ok = decimal(a); !ok {
		return 0, 0, false
	}
	if b == "" {
		return first, math.MaxUint64, v >= protocol.Version20110818
	}
	last, ok = decimal(b)
	return first, last, ok && first <= last
}

// decimal reads digits. A number that is too large stands for the largest: it is
// behind the end of every blob.
func decimal(s string) (uint64, bool) {
	var n uint64
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 {
			return 0, false
		}
		if n > (math.MaxUint64-d)/10 {
			n = math.MaxUint64
			continue
		}
		n = n*10 + d
	}
	return n, s != ""
}

// rangeHash is the hash of a range that a request asks for.
type rangeHash struct{ md5, crc64 bool }

// Headers that ask for the hash of a range.
const (
	headerRangeMD5   = "X-Ms-Range-Get-Content-Md5"
	headerRangeCRC64 = "X-Ms-Range-Get-Content-Crc64"
)

// parseRangeHash reads what hash of the span is asked for (protocol/blob.md 18.3).
func parseRangeHash(h http.Header, s span) (rangeHash, error) {
	var asked rangeHash
	var err error
	if asked.md5, err = parseBool(h, headerRangeMD5); err != nil {
		return rangeHash{}, err
	}
	if asked.crc64, err = parseBool(h, headerRangeCRC64); err != nil {
		return rangeHash{}, err
	}
	name := headerRangeMD5
	if asked.crc64 {
		name = headerRangeCRC64
	}
	if (asked.md5 || asked.crc64) && (!s.ranged || s.end-s.off > hashBytesMax || asked.md5 && asked.crc64) {
		return rangeHash{}, badHeader(name, h.Get(name))
	}
	return asked, nil
}

// parseBool reads a header that is true or false; false where it was not sent.
func parseBool(h http.Header, name string) (bool, error) {
	switch text := h.Get(name); lower(text) {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	default:
		return false, badHeader(name, text)
	}
}
