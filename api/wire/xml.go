package wire

import (
	"time"
	"unicode/utf8"
)

// XMLStart begins every XML body. The real service writes a byte order mark, which
// protocol/blob.md 2.4 says to leave out.
const XMLStart = `<?xml version="1.0" encoding="utf-8"?>`

// AppendElement appends <name>text</name>.
func AppendElement(b []byte, name, text string) []byte {
	b = append(append(append(b, '<'), name...), '>')
	b = AppendXML(b, text)
	return append(append(append(b, "</"...), name...), '>')
}

// AppendTimeElement appends an element whose text is t as AppendHTTPTime has it.
func AppendTimeElement(b []byte, name string, t time.Time) []byte {
	b = append(append(append(b, '<'), name...), '>')
	b = AppendHTTPTime(b, t)
	return append(append(append(b, "</"...), name...), '>')
}

// AppendXML appends s as XML text, or as the inside of an attribute in double quotes. Line feeds stay as they are, which
// encoding/xml would escape; what XML cannot carry becomes U+FFFD.
func AppendXML(b []byte, s string) []byte {
	if isPlainXML(s) {
		return append(b, s...)
	}
	for _, c := range s {
		switch {
		case c == '&':
			b = append(b, "&amp;"...)
		case c == '<':
			b = append(b, "&lt;"...)
		case c == '>':
			b = append(b, "&gt;"...)
		case c == '"':
			b = append(b, "&quot;"...)
		case c == '\r':
			b = append(b, "&#xD;"...)
		case c < ' ' && c != '\n' && c != '\t', c == 0xfffe, c == 0xffff:
			b = append(b, "\uFFFD"...)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return b
}

// isPlainXML reports whether s is ASCII that XML carries as it is, which most of a
// listing is.
func isPlainXML(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '&' || c == '<' || c == '>' || c == '"' {
			return false
		}
	}
	return true
}
