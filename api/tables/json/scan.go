package json

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"antipode/api/wire"
)

// kind is the kind of a JSON value.
type kind byte

const (
	kindNone kind = iota
	kindNull
	kindTrue
	kindFalse
	kindInteger // a number without fraction and exponent
	kindNumber
	kindString
	kindNested // an object or array
)

// value is one JSON value as it stands in the body.
type value struct {
	kind kind
	// escaped: raw, the text between the quotes, has escapes.
	escaped bool
	raw     []byte
}

// nestedMax bounds the depth of values that are skipped.
const nestedMax = 32

// scanner reads strict JSON from a body. Its methods report failure by false and are
// not called again after one.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// next skips white space and takes c when it comes next.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// end reports whether only white space is left.
func (s *scanner) end() bool {
	s.space()
	return s.i == len(s.b)
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special has a high bit set for the first of eight bytes that is a quote, a backslash
// or a control character, and zero when there is none; higher bits mean nothing.
func special(w uint64) uint64 {
	quote, slash := w^(lowBits*'"'), w^(lowBits*'\\')
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*0x20)&^w) & highBits
}

// plain returns the offset of the first special byte of b at or after i, or len(b),
// and the high bits of what it passed, which are zero for ASCII.
func plain(b []byte, i int) (at int, high uint64) {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := special(w); m != 0 {
			n := bits.TrailingZeros64(m) / 8
			return i + n, high | w&(highBits>>(64-8*n))
		}
		high |= w & highBits
	}
	for ; i < len(b); i++ {
		c := b[i]
		if c == '"' || c == '\\' || c < 0x20 {
			break
		}
		high |= uint64(c & 0x80)
	}
	return i, high
}

// text reads a string and returns what stands between its quotes. Invalid UTF-8 and
// unpaired surrogates fail: storing something else than was sent would hide it.
func (s *scanner) text() (raw []byte, escaped, ok bool) {
	if !s.next('"') {
		return nil, false, false
	}
	start, high := s.i, uint64(0)
	for {
		at, h := plain(s.b, s.i)
		s.i, high = at, high|h
		if at == len(s.b) {
			return nil, false, false
		}
		switch s.b[at] {
		case '"':
			s.i++
			raw = s.b[start:at]
			return raw, escaped, high == 0 || utf8.Valid(raw)
		case '\\':
			escaped = true
			_, n := unescape(s.b[at:])
			if n == 0 {
				return nil, false, false
			}
			s.i += n
		default:
			return nil, false, false
		}
	}
}

// unescape reads the escape at the front of b and returns its length, 0 if it is none.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnit(b)
	}
	return 0, 0
}

// unescapeUnit reads \uXXXX, or a surrogate pair of two of them.
func unescapeUnit(b []byte) (r rune, n int) {
	high, ok := unit(b)
	switch {
	case !ok || high >= 0xdc00 && high <= 0xdfff:
		return 0, 0
	case high < 0xd800 || high > 0xdfff:
		return high, 6
	}
	low, ok := unit(b[6:])
	if !ok || low < 0xdc00 || low > 0xdfff {
		return 0, 0
	}
	return 0x10000 + (high-0xd800)<<10 + (low - 0xdc00), 12
}

func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		d, ok := wire.HexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// appendText appends the text that raw stands for.
func appendText(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		at, _ := plain(raw, i)
		dst = append(dst, raw[i:at]...)
		if i = at; i < len(raw) {
			r, n := unescape(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// value reads any value; objects and arrays are checked and skipped.
func (s *scanner) value(depth int) (v value, ok bool) {
	s.space()
	if s.i == len(s.b) {
		return v, false
	}
	switch c := s.b[s.i]; c {
	case '"':
		v.kind = kindString
		v.raw, v.escaped, ok = s.text()
		return v, ok
	case 'n':
		return value{kind: kindNull}, s.word("null")
	case 't':
		return value{kind: kindTrue}, s.word("true")
	case 'f':
		return value{kind: kindFalse}, s.word("false")
	case '{', '[':
		return value{kind: kindNested}, depth < nestedMax && s.nested(c, depth+1)
	}
	return s.number()
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scanner) nested(open byte, depth int) bool {
	end := open + 2 // In ASCII ']' and '}' stand two after their partners.
	s.i++
	if s.next(end) {
		return true
	}
	for {
		if open == '{' {
			if _, _, ok := s.text(); !ok || !s.next(':') {
				return false
			}
		}
		if _, ok := s.value(depth); !ok {
			return false
		}
		if !s.next(',') {
			return s.next(end)
		}
	}
}

// number reads a number by the grammar of JSON, which has no leading zeros or plus.
func (s *scanner) number() (v value, ok bool) {
	start := s.i
	s.skip('-')
	if !s.skip('0') && s.digits() == 0 {
		return v, false
	}
	v.kind = kindInteger
	if s.skip('.') {
		v.kind = kindNumber
		if s.digits() == 0 {
			return v, false
		}
	}
	if s.skip('e') || s.skip('E') {
		v.kind = kindNumber
		if !s.skip('-') {
			s.skip('+')
		}
		if s.digits() == 0 {
			return v, false
		}
	}
	v.raw = s.b[start:s.i]
	return v, true
}

func (s *scanner) skip(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() (n int) {
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
		n++
	}
	return n
}
