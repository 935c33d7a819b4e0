package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"antipode/services/storageerr"
)

// Bounds of a document that ParseElement reads: more than any of the protocol's has.
const (
	elementsMax = 256
	depthMax    = 8
)

// Element is an element of an XML document that a client sent.
type Element struct {
	// Name is its local name: namespaces are ignored, and so are attributes.
	Name string
	// Text is all text that stands in it directly.
	Text     string
	Children []*Element
}

// ParseElement reads an XML document from a body that is held whole: UTF-8 or UTF-16, the latter with a byte
// order mark. Errors are InvalidXMLDocument: also for a document type, which may define entities, and for more
// elements, or deeper ones, than a document of the protocol has.
func ParseElement(body []byte) (*Element, error) {
	text, ok := utf8Of(body)
	if !ok {
		return nil, storageerr.InvalidXMLDocument.With("Reason", "The text is neither UTF-8 nor UTF-16.")
	}
	p := elementParser{dec: xml.NewDecoder(bytes.NewReader(text))}
	p.dec.CharsetReader = func(charset string, r io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "utf-16") { // It is UTF-8 by now.
			return r, nil
		}
		return nil, errors.New("the encoding is neither UTF-8 nor UTF-16")
	}
	for {
		begins := p.dec.InputOffset()
		token, err := p.dec.Token()
		if errors.Is(err, io.EOF) && p.root != nil {
			return p.root, nil
		}
		if err != nil {
			return nil, p.fail(reasonOf(err))
		}
		if err := p.take(token); err != nil {
			return nil, err
		}
		if t, is := token.(xml.CharData); is && namesSurrogate(t, text[begins:p.dec.InputOffset()]) {
			return nil, p.fail("A reference is to half of a character.")
		}
	}
}

// namesSurrogate reports whether a text was written with a reference to a surrogate, which is no character. The decoder
// makes U+FFFD of it, without an error. CDATA has no references.
func namesSurrogate(text, written []byte) bool {
	if !bytes.ContainsRune(text, utf8.RuneError) || bytes.HasPrefix(written, []byte("<![CDATA[")) {
		return false
	}
	for _, reference := range bytes.Split(written, []byte("&#"))[1:] {
		digits, _, _ := bytes.Cut(reference, []byte(";"))
		digits, hex := bytes.CutPrefix(digits, []byte("x"))
		base := 10
		if hex {
			base = 16
		}
		if n, err := strconv.ParseInt(string(digits), base, 32); err == nil && utf16.IsSurrogate(rune(n)) {
			return true
		}
	}
	return false
}

// reasonOf is what a client learns of a syntax error.
func reasonOf(err error) string {
	var syntax *xml.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return "There is no element."
	case errors.As(err, &syntax):
		return syntax.Msg
	}
	return err.Error()
}

// elementParser is a document that is being read.
type elementParser struct {
	dec  *xml.Decoder
	root *Element
	// open are the elements that have not ended, and texts their text.
	open  []*Element
	texts [][]byte
	count int
}

// fail is the error of a document with its place.
func (p *elementParser) fail(reason string) error {
	line, column := p.dec.InputPos()
	return storageerr.InvalidXMLDocument.With(
		"LineNumber", strconv.Itoa(line), "LinePosition", strconv.Itoa(column), "Reason", reason)
}

func (p *elementParser) take(token xml.Token) error {
	depth := len(p.open)
	switch t := token.(type) {
	case xml.StartElement:
		p.count++
		switch e := (&Element{Name: t.Name.Local}); {
		case p.count > elementsMax || depth == depthMax:
			return p.fail("There are more elements than the document can have.")
		case depth > 0:
			p.open[depth-1].Children = append(p.open[depth-1].Children, e)
			p.push(e)
		case p.root != nil:
			return p.fail("There is a second root element.")
		default:
			p.root = e
			p.push(e)
		}
	case xml.EndElement:
		p.open[depth-1].Text = string(p.texts[depth-1])
		p.open, p.texts = p.open[:depth-1], p.texts[:depth-1]
	case xml.CharData:
		if depth > 0 {
			p.texts[depth-1] = append(p.texts[depth-1], t...)
		} else if !isXMLSpace(string(t)) {
			return p.fail("There is text outside of the root element.")
		}
	case xml.Directive:
		return p.fail("A document type has no place here.")
	}
	return nil
}

func (p *elementParser) push(e *Element) {
	p.open, p.texts = append(p.open, e), append(p.texts, nil)
}

func isXMLSpace(s string) bool { return strings.Trim(s, " \t\r\n") == "" }

// utf8Of returns a text without its byte order mark, from UTF-16 where the mark says so.
func utf8Of(b []byte) (text []byte, ok bool) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return b[3:], true
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return b, true
	}
	b = b[2:]
	if len(b)%2 != 0 {
		return nil, false
	}
	text = make([]byte, 0, len(b)*3/2)
	for ; len(b) > 0; b = b[2:] {
		r := rune(order.Uint16(b))
		if utf16.IsSurrogate(r) {
			if len(b) < 4 {
				return nil, false
			}
			b, r = b[2:], utf16.DecodeRune(r, rune(order.Uint16(b[2:])))
			if r == utf8.RuneError {
				return nil, false
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return text, true
}

// Container reports an error where an element has text beside its children, or a child other than those
// named, or one of them more than once.
func (e *Element) Container(children ...string) error {
	if !isXMLSpace(e.Text) {
		return storageerr.InvalidXMLDocument.With("Reason", "The element "+e.Name+" has text.")
	}
	seen := map[string]bool{}
	for _, name := range children {
		seen[name] = false
	}
	for _, c := range e.Children {
		twice, known := seen[c.Name]
		switch {
		case !known:
			return storageerr.InvalidXMLDocument.With("Reason", "The element "+e.Name+" has no "+c.Name+".")
		case twice:
			return storageerr.InvalidXMLDocument.With("Reason", "The element "+e.Name+" has "+c.Name+" more than once.")
		}
		seen[c.Name] = true
	}
	return nil
}

// Child returns the child of a name; nil if there is none.
func (e *Element) Child(name string) *Element {
	for _, c := range e.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Leaf returns the text of an element that may have no children.
func (e *Element) Leaf() (string, error) {
	if len(e.Children) > 0 {
		return "", storageerr.InvalidXMLDocument.With("Reason", "The element "+e.Name+" has elements in place of text.")
	}
	return e.Text, nil
}

// BadNode is the error of the text of an element.
func BadNode(name, value, reason string) error {
	return storageerr.InvalidXMLNodeValue.With("XmlNodeName", name, "XmlNodeValue", value, "Reason", reason)
}
