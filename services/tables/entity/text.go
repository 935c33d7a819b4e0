package entity

import "math/bits"

// text is valid UTF-8 in either form.
type text interface{ ~string | ~[]byte }

// eachByte has the lowest bit of each of eight bytes set.
const eachByte = 0x0101010101010101

// UTF16Len is the number of UTF-16 code units of s, which must be UTF-8: one for each
// character, and one more for each above U+FFFF.
func UTF16Len[T text](s T) int {
	n, i := len(s), 0
	for ; i+8 <= len(s); i += 8 {
		w := word(s, i)
		if w&(eachByte<<7) == 0 {
			continue
		}
		continuation := w >> 7 &^ (w >> 6) & eachByte
		four := (w >> 7) & (w >> 6) & (w >> 5) & (w >> 4) & eachByte
		n += bits.OnesCount64(four) - bits.OnesCount64(continuation)
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c&0xc0 == 0x80:
			n--
		case c >= 0xf0:
			n++
		}
	}
	return n
}

// word loads eight bytes at once, the first one lowest.
func word[T text](s T, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Compare orders two texts by UTF-16 code units and returns -1, 0 or +1. Bytes of
// UTF-8 give the same order but for one case: characters above U+FFFF are surrogates
// in UTF-16 and so sort below U+E000 to U+FFFF.
func Compare[A, B text](a A, b B) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if differ := word(a, i) ^ word(b, i); differ != 0 {
			i += bits.TrailingZeros64(differ) / 8
			break
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	if i < n {
		x, y := a[i], b[i]
		less := x < y
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			less = !less
		}
		if less {
			return -1
		}
		return 1
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}
