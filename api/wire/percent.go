package wire

import "strings"

// UnescapeQuery decodes a name or a value of a query, where + is a space. ok is false
// for bad percent-encoding.
func UnescapeQuery(s string) (decoded string, ok bool) {
	i := strings.IndexAny(s, "%+")
	if i < 0 {
		return s, true
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	for ; i < len(s); i++ {
		switch s[i] {
		case '+':
			b = append(b, ' ')
		case '%':
			c, ok := hexPair(s, i+1)
			if !ok {
				return "", false
			}
			b = append(b, c)
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b), true
}

// UnescapePath percent-decodes a part of a path, where + is a plus sign. The
// caller cuts the raw path first: a decoded slash is data. ok is false for bad
// percent-encoding; whether the bytes are UTF-8 is not looked at.
func UnescapePath(s string) (decoded string, ok bool) {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s, true
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	for ; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		c, ok := hexPair(s, i+1)
		if !ok {
			return "", false
		}
		b = append(b, c)
		i += 2
	}
	return string(b), true
}

// hexPair reads the two hexadecimal digits of s at i.
func hexPair(s string, i int) (byte, bool) {
	if i+1 >= len(s) {
		return 0, false
	}
	high, ok1 := HexDigit(s[i])
	low, ok2 := HexDigit(s[i+1])
	return high<<4 | low, ok1 && ok2
}

// HexDigit is the value of a hexadecimal digit of either case.
func HexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
