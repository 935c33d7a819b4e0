package atom

import "strconv"

// white is the white space of XML.
const white = " \t\r\n"

// isSpace reports whether c is one of white.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// special reports whether a byte of a text may not stand for itself: what XML reads as markup, a
// carriage return, which it reads as a line feed, and what is no character of XML. Of U+FFFE and
// U+FFFF it is the first byte, that of others too.
func special(c byte) bool {
	return c == '&' || c == '<' || c == '>' || c == 0xef || c < ' ' && c != '\t' && c != '\n'
}

// notCharacter reports whether U+FFFE or U+FFFF, which are no characters of XML, stands at i.
func notCharacter[T ~string | ~[]byte](s T, i int) bool {
	return i+2 < len(s) && s[i] == 0xef && s[i+1] == 0xbf && s[i+2] >= 0xbe
}

// appendText appends the text of an element. What is no character of XML becomes a numeric
// reference: XML 1.0 has no form of it, but readers of the time take this one, and nothing is lost
// (protocol/table.md 7).
func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !special(c) || c == 0xef && !notCharacter(s, i) {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case 0xef:
			dst = appendReference(dst, 0xff00|uint64(s[i+2])|0x40)
			i += 2
			start = i + 1
		default:
			dst = appendReference(dst, uint64(c))
		}
	}
	return append(dst, s[start:]...)
}

func appendReference(dst []byte, r uint64) []byte {
	dst = append(dst, "&#"...)
	return append(strconv.AppendUint(dst, r, 10), ';')
}

// textLen is the length of s as appendText appends it, or a little more.
func textLen[T ~string | ~[]byte](s T) int {
	n := len(s)
	for i := range len(s) {
		switch {
		case s[i] == 0xef: // Of three bytes, which become eight.
			n += len("&#65535;") - 3
		case special(s[i]):
			n += textBytes - 1
		}
	}
	return n
}
