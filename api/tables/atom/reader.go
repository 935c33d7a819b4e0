package atom

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// Bounds of a body. Beyond any of them it is InvalidInput, beyond textBytesMax PropertyValueTooLarge.
const (
	// depthMax bounds the depth of elements, and tagBytesMax and attributesMax a tag: a client's
	// entry has two paths with long keys in one.
	depthMax      = 32
	tagBytesMax   = 32 << 10
	attributesMax = 64
	// textBytesMax bounds a text or a comment: the largest value is 64 KiB, in UTF-8 or Base64, and
	// may be written by references.
	textBytesMax = 1 << 20
	tokensMax    = 16 << 10
)

// reader takes the tokens of a body.
type reader struct {
	body *boundedBody
	xml  *xml.Decoder
	// depth is that of open elements, and left the tokens that may come.
	depth, left int
	// text is that of the open element, where keep says so.
	text []byte
	keep bool
}

func newReader(body []byte) *reader {
	b := &boundedBody{b: body}
	return &reader{body: b, xml: xml.NewDecoder(b), left: tokensMax}
}

// boundedBody is the body up to the limit of the token that is read: the parser holds all of one.
type boundedBody struct {
	b         []byte
	at, limit int
	err       error // what is beyond the limit
}

// ReadByte implements io.ByteReader.
func (r *boundedBody) ReadByte() (byte, error) {
	switch {
	case r.at == len(r.b):
		return 0, io.EOF
	case r.at >= r.limit:
		return 0, r.err
	}
	r.at++
	return r.b[r.at-1], nil
}

// Read is never called: the parser reads bytes where it can.
func (r *boundedBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// children calls take with each element in the open one, up to its end. take reads up to the end
// of that one.
func (r *reader) children(take func(*xml.StartElement) error) error {
	for {
		e, err := r.element()
		if err != nil || e == nil {
			return err
		}
		if err := take(e); err != nil {
			return err
		}
	}
}

// skip reads up to the end of the open element.
func (r *reader) skip() error {
	return r.children(func(*xml.StartElement) error { return r.skip() })
}

// only returns the text of the open element, which has no other in it. It is valid up to the next call.
func (r *reader) only() ([]byte, error) {
	r.text, r.keep = r.text[:0], true
	err := r.children(func(*xml.StartElement) error { return storageerr.InvalidInput })
	r.keep = false
	return r.text, err
}

// start returns the next element outside of any, nil at the end of the body. There is no text before it.
func (r *reader) start() (*xml.StartElement, error) {
	r.text, r.keep = r.text[:0], true
	e, err := r.element()
	r.keep = false
	if err == nil && len(bytes.Trim(r.text, white)) > 0 {
		err = storageerr.InvalidInput
	}
	return e, err
}

// element reads up to the start of the next element, or the end of the open one or of the body: nil.
func (r *reader) element() (*xml.StartElement, error) {
	for {
		at := r.xml.InputOffset()
		token, err := r.token()
		if errors.Is(err, io.EOF) && r.depth == 0 {
			return nil, nil
		}
		if err != nil {
			if _, ours := storageerr.Of(err); !ours {
				err = storageerr.InvalidInput
			}
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if r.depth++; r.depth > depthMax || len(t.Attr) > attributesMax || twice(t.Attr) {
				return nil, storageerr.InvalidInput
			}
			return &t, nil
		case xml.EndElement:
			r.depth--
			return nil, nil
		case xml.CharData:
			if r.keep && bytes.ContainsRune(t, utf8.RuneError) && halvesPair(r.body.b[at:r.xml.InputOffset()]) {
				return nil, storageerr.InvalidInput
			}
			if r.keep {
				r.text = append(r.text, t...)
			}
		case xml.Directive: // A DTD, which could declare entities.
			return nil, storageerr.InvalidInput
		}
	}
}

// twice reports whether a tag names an attribute twice, which the parser lets pass.
func twice(attributes []xml.Attr) bool {
	for i, a := range attributes {
		if slices.ContainsFunc(attributes[:i], func(b xml.Attr) bool { return a.Name == b.Name }) {
			return true
		}
	}
	return false
}

// halvesPair reports whether a text refers to one half of a surrogate pair, which is no character. The parser makes
// U+FFFD of it: to store something else than was sent would hide that.
func halvesPair(text []byte) bool {
	if bytes.HasPrefix(text, []byte("<![CDATA[")) {
		return false
	}
	for {
		_, after, found := bytes.Cut(text, []byte("&#"))
		if !found {
			return false
		}
		var digits []byte
		digits, text, _ = bytes.Cut(after, []byte(";"))
		base := 10
		if hex, is := bytes.CutPrefix(digits, []byte("x")); is {
			digits, base = hex, 16
		}
		if n, err := strconv.ParseUint(string(digits), base, 32); err == nil && utf16.IsSurrogate(rune(n)) {
			return true
		}
	}
}

// token reads one token.
func (r *reader) token() (xml.Token, error) {
	if r.left--; r.left < 0 {
		return nil, storageerr.InvalidInput
	}
	at, n := int(r.xml.InputOffset()), textBytesMax
	r.body.err = storageerr.PropertyValueTooLarge
	if rest := r.body.b[at:]; len(rest) > 1 && rest[0] == '<' {
		r.body.err = storageerr.InvalidInput
		if rest[1] != '!' && rest[1] != '?' {
			n = tagBytesMax
		}
	}
	r.body.limit = min(len(r.body.b), at+n)
	return r.xml.Token()
}
