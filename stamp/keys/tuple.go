package keys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"
)

// ErrMalformed is returned for bytes that no encoder of this package wrote.
var ErrMalformed = errors.New("keys: malformed key")

// A string ends with 00 01; a zero byte inside it is written 00 FF. So the end
// sorts below every continuation, and the pair of bytes is unambiguous.
const (
	terminator = 0x01
	escape     = 0xff
)

// AppendString appends s so that byte order is the order of UTF-16 code units:
// code points above U+FFFF are written as their two surrogates, three bytes each
// (CESU-8). Everything else is plain UTF-8.
func AppendString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == 0:
			dst = append(dst, 0, escape)
		case c < 0xf0:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r < 0x10000 { // Not UTF-8: callers refuse it before it gets here.
				dst = append(dst, c)
				continue
			}
			r -= 0x10000
			dst = appendUnit(dst, 0xd800+(r>>10))
			dst = appendUnit(dst, 0xdc00+(r&0x3ff))
			i += size - 1
		}
	}
	return append(dst, 0, terminator)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
}

// CutString decodes one string from the front of b and returns the rest.
func CutString(b []byte) (s string, rest []byte, err error) {
	stored, rest, err := cutStored(b)
	switch {
	case err != nil:
		return "", nil, err
	case isASCII(stored):
		return string(stored), rest, nil
	}
	s, err = decodeString(stored)
	return s, rest, err
}

// chunkMax bounds the memory that a Cutter takes at once.
const chunkMax = 4096

// Cutter decodes strings for somebody who drops most of them: they share memory, so that few are allocated one by one. A
// string that is kept keeps up to chunkMax bytes of others.
type Cutter struct{ chunk strings.Builder }

// CutString is the function of that name.
func (c *Cutter) CutString(b []byte) (s string, rest []byte, err error) {
	stored, rest, err := cutStored(b)
	if err != nil || !isASCII(stored) {
		return CutString(b)
	}
	if c.chunk.Cap()-c.chunk.Len() < len(stored) {
		next := max(len(stored), min(2*c.chunk.Cap(), chunkMax))
		c.chunk = strings.Builder{} // The strings in the old one stay.
		c.chunk.Grow(next)
	}
	start := c.chunk.Len()
	c.chunk.Write(stored)
	return c.chunk.String()[start:], rest, nil
}

// cutStored cuts the stored form of one string from the front of b, without its end.
func cutStored(b []byte) (stored, rest []byte, err error) {
	for i := 0; ; i += 2 {
		n := bytes.IndexByte(b[i:], 0)
		if n < 0 || i+n+1 >= len(b) {
			return nil, nil, ErrMalformed
		}
		switch i += n; b[i+1] {
		case terminator:
			return b[:i], b[i+2:], nil
		case escape:
		default:
			return nil, nil, ErrMalformed
		}
	}
}

// isASCII reports whether a stored string has neither a zero byte, which is written with one above U+007F, nor a
// character beyond U+007F: then its text is the same.
func isASCII(b []byte) bool {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:])&0x8080808080808080 != 0 {
			return false
		}
	}
	for ; i < len(b); i++ {
		if b[i] >= 0x80 {
			return false
		}
	}
	return true
}

// decodeString turns escaped CESU-8 back into UTF-8.
func decodeString(b []byte) (string, error) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == 0:
			out = append(out, 0)
			i++
		case isSurrogate(b, i, 0xa0):
			if !isSurrogate(b, i+3, 0xb0) {
				return "", ErrMalformed
			}
			hi := rune(b[i+1]&0x0f)<<6 | rune(b[i+2]&0x3f)
			lo := rune(b[i+4]&0x0f)<<6 | rune(b[i+5]&0x3f)
			out = utf8.AppendRune(out, 0x10000+hi<<10|lo)
			i += 5
		case isSurrogate(b, i, 0xb0):
			return "", ErrMalformed
		case b[i] >= 0xf0 && isSupplementary(b[i:]):
			return "", ErrMalformed // The encoder writes two surrogates.
		default:
			out = append(out, b[i])
		}
	}
	return string(out), nil
}

// isSurrogate reports whether b[i:] starts with a surrogate: kind 0xa0 high, 0xb0 low.
func isSurrogate(b []byte, i int, kind byte) bool {
	return i+2 < len(b) && b[i] == 0xed && b[i+1]&0xf0 == kind && b[i+2]&0xc0 == 0x80
}

func isSupplementary(b []byte) bool {
	r, _ := utf8.DecodeRune(b)
	return r >= 0x10000
}

// AppendUint64 appends v big-endian, so that byte order is numeric order.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// CutUint64 decodes one number from the front of b and returns the rest.
func CutUint64(b []byte) (v uint64, rest []byte, err error) {
	if len(b) < 8 {
		return 0, nil, ErrMalformed
	}
	return binary.BigEndian.Uint64(b), b[8:], nil
}

// PrefixEnd returns the smallest key above every key that starts with prefix; nil if
// there is none, since prefix has no byte below 0xff.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
