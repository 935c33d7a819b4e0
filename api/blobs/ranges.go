package blobs

import (
	"math"
	"net/http"
	"strconv"
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

// byteRange is the range that a request asks for: first and last byte. ok is false if it asks
// for none.
type byteRange struct {
	first, last uint64
	ok          bool
}

// parseRange reads the range of a Get Blob (protocol/blob.md 8.1). What is not one range
// of the form bytes=a-b or bytes=a- is as if it were not there.
func parseRange(h http.Header, v protocol.Version) (r byteRange) {
	text := h.Get("X-Ms-Range")
	if text == "" {
		text = h.Get("Range")
	}
	r.first, r.last, r.ok = cutRange(text, v)
	return r
}

// of is the span of the range in a blob of length bytes. InvalidRange where the range begins
// at the end of the blob or behind it.
func (r byteRange) of(length uint64) (span, error) {
	if !r.ok {
		return span{0, length, false}, nil
	}
	if r.first >= length {
		return span{}, storageerr.InvalidRange
	}
	return span{r.first, min(r.last, length-1) + 1, true}, nil
}

// closed reports whether the range has a last byte.
func (r byteRange) closed() bool { return r.ok && r.last != math.MaxUint64 }

// text is the range as a request has it.
func (r byteRange) text() string {
	text := "bytes=" + strconv.FormatUint(r.first, 10) + "-"
	if r.closed() {
		text += strconv.FormatUint(r.last, 10)
	}
	return text
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
type rangeHash struct {
	md5, crc64 bool
	// text is how the request asks for it.
	text string
}

// Headers that ask for the hash of a range.
const (
	headerRangeMD5   = "X-Ms-Range-Get-Content-Md5"
	headerRangeCRC64 = "X-Ms-Range-Get-Content-Crc64"
)

// parseRangeHash reads what hash of the range is asked for (protocol/blob.md 18.3).
func parseRangeHash(h http.Header, r byteRange) (asked rangeHash, err error) {
	if asked.md5, err = parseBool(h, headerRangeMD5); err != nil {
		return asked, err
	}
	if asked.crc64, err = parseBool(h, headerRangeCRC64); err != nil {
		return asked, err
	}
	if asked.text = h.Get(headerRangeMD5); asked.crc64 {
		asked.text = h.Get(headerRangeCRC64)
	}
	if asked.md5 && asked.crc64 || !r.ok {
		err = asked.refuse()
	}
	return asked, err
}

// check refuses the hash of a span that is too long.
func (asked rangeHash) check(s span) error {
	if s.end-s.off > hashBytesMax {
		return asked.refuse()
	}
	return nil
}

// refuse is the error of the header that asks for a hash; nil if none does.
func (asked rangeHash) refuse() error {
	switch {
	case asked.crc64:
		return badHeader(headerRangeCRC64, asked.text)
	case asked.md5:
		return badHeader(headerRangeMD5, asked.text)
	}
	return nil
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
