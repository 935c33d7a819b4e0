package tables

import (
	"net/http"
	"strconv"
)

// Field is one header of a part. Parsers of batch answers match names as text, so they
// stand as written here, in the order given.
type Field struct{ Name, Value string }

// BatchAnswer writes the multipart answer to a batch, byte for byte as protocol/table.md
// 13.5 has it: no preamble, CRLF, and boundaries that a client finds by their prefixes.
type BatchAnswer struct {
	buf []byte
	id  string
	set bool
}

// NewBatchAnswer returns an empty answer. id makes its boundaries, and is a Guid that
// no other answer has.
func NewBatchAnswer(id string) *BatchAnswer { return &BatchAnswer{id: id} }

// ContentType is the Content-Type of the answer.
func (a *BatchAnswer) ContentType() string { return "multipart/mixed; boundary=" + a.outer() }

func (a *BatchAnswer) outer() string { return "batchresponse_" + a.id }

func (a *BatchAnswer) inner() string { return "changesetresponse_" + a.id }

// OpenSet begins a change set, to which parts belong until CloseSet.
func (a *BatchAnswer) OpenSet() {
	a.line("--", a.outer())
	a.line("Content-Type: multipart/mixed; boundary=", a.inner())
	a.line()
	a.set = true
}

// CloseSet ends the change set.
func (a *BatchAnswer) CloseSet() {
	a.line("--", a.inner(), "--")
	a.set = false
}

// Part appends one answer. contentID is left out when empty.
func (a *BatchAnswer) Part(status int, contentID string, fields []Field, body []byte) {
	if a.set {
		a.line("--", a.inner())
	} else {
		a.line("--", a.outer())
	}
	a.line("Content-Type: application/http")
	a.line("Content-Transfer-Encoding: binary")
	a.line()
	a.line("HTTP/1.1 ", strconv.Itoa(status), " ", http.StatusText(status))
	if contentID != "" {
		a.line("Content-ID: ", contentID)
	}
	for _, f := range fields {
		a.line(f.Name, ": ", f.Value)
	}
	a.line()
	a.buf = append(a.buf, body...)
	a.line()
}

// Close ends the answer and returns it.
func (a *BatchAnswer) Close() []byte {
	a.line("--", a.outer(), "--")
	return a.buf
}

// line appends a line that consists of texts.
func (a *BatchAnswer) line(texts ...string) {
	for _, t := range texts {
		a.buf = append(a.buf, t...)
	}
	a.buf = append(a.buf, "\r\n"...)
}
