package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"antipode/services/storageerr"
)

// Limits of the frame of a batch. Bodies have none, nor has the number of
// requests: the caller bounds both.
const (
	// batchLineMax bounds a header or request line in bytes. Two keys of 512
	// characters, all percent-encoded, make about 10 KiB.
	batchLineMax = 16 << 10
	// batchHeadersMax bounds the headers of one part, and of one request.
	batchHeadersMax = 64
	// boundaryMax bounds a boundary in bytes; MIME allows 70.
	boundaryMax = 200
)

// BatchRequest is one request of a batch. The caller treats it as a separate request:
// it verifies and dispatches each.
type BatchRequest struct {
	// ChangeSet counts the change sets from 1; zero is a request outside of them. A batch
	// of blobs has none.
	ChangeSet int
	Method    string
	// URI is as sent: see CutBatchURI.
	URI    string
	Header http.Header
	// ContentID is what the answer echoes; empty for none.
	ContentID string
	// Body is valid until the next call of Next.
	Body []byte
}

// BatchReader reads the requests of the body of a batch, of tables (protocol/table.md 13.2)
// or blobs (protocol/blob.md S8), one after the other: it holds one request and one line,
// never the whole. Boundaries decide where a body ends, Content-Length does not. A body that
// is not a batch is InvalidInput; errors of the source are returned as they are.
type BatchReader struct {
	in *bufio.Reader
	// outer is the boundary of the batch; inner that of the change set under way,
	// empty outside of one.
	outer, inner string

	// line is the current line with its end, or a part of a line longer than batchLineMax.
	// mark says what it is.
	line []byte
	mark mark
	// within reports that line continues a longer one, and cut that line has no end: the
	// next one continues it.
	within, cut bool

	sets int
	// requests is how many were read, and inSet how many of them in the change set
	// under way.
	requests, inSet int
	body            []byte
}

// mark is what a line means to the frame.
type mark byte

const (
	markText mark = iota
	markOuter
	markOuterFinal
	markInner
	markInnerFinal
	markEnd
)

// BatchBoundary returns the boundary in the Content-Type of a batch, which must be
// multipart/mixed with a boundary.
func BatchBoundary(contentType string) (string, error) {
	boundary, ok := multipartBoundary(contentType)
	if !ok || boundary == "" {
		return "", storageerr.InvalidInput
	}
	return boundary, nil
}

// NewBatchReader returns a reader of a body with the boundary that BatchBoundary returned.
func NewBatchReader(r io.Reader, boundary string) *BatchReader {
	return &BatchReader{in: bufio.NewReaderSize(r, batchLineMax), outer: boundary}
}

// multipartBoundary returns the boundary of multipart/mixed: quoted or not, among other
// parameters, of any characters, since clients of 2009 put it in parentheses. ok is
// false for another type; a boundary that cannot be used is empty.
func multipartBoundary(contentType string) (boundary string, ok bool) {
	media, params, _ := strings.Cut(contentType, ";")
	if !strings.EqualFold(strings.TrimSpace(media), "multipart/mixed") {
		return "", false
	}
	for param := range strings.SplitSeq(params, ";") {
		key, val, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(key), "boundary") {
			boundary = strings.Trim(strings.TrimSpace(val), `"`)
		}
	}
	if len(boundary) > boundaryMax || strings.TrimSpace(boundary) != boundary {
		return "", true
	}
	return boundary, true
}

// Next returns the next request, or io.EOF after the last one, when the source has been
// read to its end.
func (b *BatchReader) Next() (*BatchRequest, error) {
	if b.mark == markText {
		if err := b.skipTo(markOuter); err != nil {
			return nil, err
		}
	}
	for {
		var r *BatchRequest
		var err error
		switch b.mark {
		case markOuter:
			r, err = b.part()
		case markInner:
			r, err = b.operation()
		case markInnerFinal:
			err = b.closeSet()
		case markOuterFinal:
			for b.mark != markEnd && err == nil {
				err = b.next()
			}
		case markEnd:
			if b.requests == 0 {
				return nil, storageerr.InvalidInput
			}
			return nil, io.EOF
		}
		if r != nil || err != nil {
			return r, err
		}
	}
}

// part reads what follows a delimiter of the batch: a request, or the head of a change
// set, for which the request is nil.
func (b *BatchReader) part() (*BatchRequest, error) {
	b.inner = ""
	h, err := b.headers()
	if err != nil {
		return nil, err
	}
	inner, set := multipartBoundary(h.Get("Content-Type"))
	if !set {
		return b.request(h, 0)
	}
	if inner == "" || inner == b.outer || b.mark != markText {
		return nil, storageerr.InvalidInput
	}
	b.inner = inner
	b.sets++
	b.inSet = 0
	return nil, b.skipTo(markInner)
}

// operation reads what follows a delimiter of a change set. The request is nil where
// the delimiter was the last one and lacks its dashes.
func (b *BatchReader) operation() (*BatchRequest, error) {
	h, err := b.headers()
	if err != nil {
		return nil, err
	}
	r, err := b.request(h, b.sets)
	if r != nil {
		b.inSet++
	} else if err == nil && b.inSet == 0 {
		err = storageerr.InvalidInput
	}
	return r, err
}

// closeSet goes on behind a change set.
func (b *BatchReader) closeSet() error {
	if b.inSet == 0 {
		return storageerr.InvalidInput
	}
	b.inner = ""
	for {
		if err := b.next(); err != nil || b.mark != markText {
			return err
		}
	}
}

// skipTo skips lines up to a mark, which must be the next one.
func (b *BatchReader) skipTo(want mark) error {
	for {
		if err := b.next(); err != nil {
			return err
		}
		switch b.mark {
		case want:
			return nil
		case markText:
		default:
			return storageerr.InvalidInput
		}
	}
}

// request reads the request of a part whose headers were read. It is nil where nothing
// stands between this delimiter and the end of what it divides.
func (b *BatchReader) request(part http.Header, set int) (*BatchRequest, error) {
	for b.mark == markText {
		if err := b.next(); err != nil {
			return nil, err
		}
		if b.mark == markText && !b.blank() {
			return b.read(part, set)
		}
	}
	switch {
	case len(part) > 0, b.mark == markInner, b.mark == markInnerFinal, set == 0 && b.mark != markEnd:
		return nil, storageerr.InvalidInput
	}
	return nil, nil
}

// read reads a request from its first line on.
func (b *BatchReader) read(part http.Header, set int) (*BatchRequest, error) {
	text, ok := b.text()
	method, uri, two := strings.Cut(text, " ")
	if i := strings.LastIndex(uri, " HTTP/"); i >= 0 {
		uri = uri[:i]
	}
	if uri = strings.TrimSpace(uri); !ok || !two || method == "" || uri == "" {
		return nil, storageerr.InvalidInput
	}
	r := &BatchRequest{ChangeSet: set, Method: method, URI: uri}
	var err error
	if r.Header, err = b.headers(); err != nil {
		return nil, err
	}
	if r.ContentID = r.Header.Get("Content-Id"); r.ContentID == "" {
		r.ContentID = part.Get("Content-Id")
	}
	b.body = b.body[:0]
	for b.mark == markText {
		if err := b.next(); err != nil {
			return nil, err
		}
		if b.mark == markText {
			b.body = append(b.body, b.line...)
		}
	}
	// The end of the last line belongs to the delimiter.
	r.Body = b.body
	if body, ended := bytes.CutSuffix(b.body, []byte("\n")); ended {
		r.Body, _ = bytes.CutSuffix(body, []byte("\r"))
	}
	b.requests++
	return r, nil
}

// headers reads headers up to a blank line or a mark.
func (b *BatchReader) headers() (http.Header, error) {
	h := http.Header{}
	for n := 0; ; n++ {
		if err := b.next(); err != nil {
			return nil, err
		}
		if b.mark != markText || b.blank() {
			return h, nil
		}
		text, ok := b.text()
		name, value, colon := strings.Cut(text, ":")
		if !ok || !colon || !headerName(name) || n == batchHeadersMax {
			return nil, storageerr.InvalidInput
		}
		h.Add(name, strings.TrimSpace(value))
	}
}

// headerName reports whether name is a token of HTTP.
func headerName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

// next reads the next line and says what it is.
func (b *BatchReader) next() error {
	line, err := b.in.ReadSlice('\n')
	b.line, b.within, b.cut = line, b.cut, errors.Is(err, bufio.ErrBufferFull)
	b.mark = markText
	switch {
	case err == nil || b.cut:
	case !errors.Is(err, io.EOF):
		return err
	case len(line) == 0:
		b.mark = markEnd
		return nil
	}
	if !b.within && !b.cut {
		b.mark = b.delimiter()
	}
	return nil
}

// delimiter says which boundary the line is.
func (b *BatchReader) delimiter() mark {
	rest, ok := bytes.CutPrefix(b.line, []byte("--"))
	if !ok {
		return markText
	}
	rest = bytes.TrimRight(rest, " \t\r\n")
	if b.inner != "" {
		switch string(rest) {
		case b.inner:
			return markInner
		case b.inner + "--":
			return markInnerFinal
		}
	}
	switch string(rest) {
	case b.outer:
		return markOuter
	case b.outer + "--":
		return markOuterFinal
	}
	return markText
}

func (b *BatchReader) blank() bool {
	return !b.within && !b.cut && len(bytes.TrimRight(b.line, " \t\r\n")) == 0
}

// text is the line without its end. It fails for one that is too long or has control
// characters: a value of it may be echoed.
func (b *BatchReader) text() (string, bool) {
	text := strings.TrimRight(string(b.line), " \t\r\n")
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", false
		}
	}
	return text, !b.within && !b.cut
}

// CutBatchURI cuts the URI of a request in a batch into its host, empty where it is relative, the
// path without its first slash and the raw query. The scheme is not looked at, and whose the host
// and the path are is the caller's question. Blanks outside of quotes are dropped: samples have
// them after a comma.
func CutBatchURI(uri string) (host, path, query string) {
	uri = withoutBlanks(uri)
	if scheme, rest, ok := strings.Cut(uri, "://"); ok && headerName(scheme) && !strings.Contains(scheme, "'") {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return rest, "", ""
		}
		host, uri = rest[:slash], rest[slash:]
	}
	path, query, _ = strings.Cut(uri, "?")
	return host, strings.TrimPrefix(path, "/"), query
}

// withoutBlanks drops blanks outside of single quotes, raw or as %27.
func withoutBlanks(uri string) string {
	if !strings.ContainsAny(uri, " \t") {
		return uri
	}
	b := make([]byte, 0, len(uri))
	quoted := false
	for i := range len(uri) {
		switch c := uri[i]; {
		case c == '\'', strings.HasPrefix(uri[i:], "%27"):
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			continue
		}
		b = append(b, uri[i])
	}
	return string(b)
}
