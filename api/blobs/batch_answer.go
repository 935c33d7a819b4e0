package blobs

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"antipode/api/protocol"
)

// partAnswer is the answer to a part, in memory.
type partAnswer struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *partAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *partAnswer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *partAnswer) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return len(b), nil
}

// begin begins the answer with the headers of every one.
func (p *part) begin() {
	p.answer = partAnswer{header: http.Header{}}
	protocol.SetCommonHeaders(p.answer.header, p.r.HTTP, p.r.Service, p.r.Version, p.r.ID, p.r.At)
	delete(p.answer.header, "Date") // These are the batch's.
	delete(p.answer.header, "Server")
}

// fail refuses the part. How that reads is decided when it is answered: an error may repeat a lot of the request.
func (p *part) fail(err error) { p.err = err }

// appendTo appends the answer as a part of that of the batch (protocol/blob.md S8). Some parsers match names as text:
// those that the service has in lower case are.
func (p *part) appendTo(b []byte, boundary string) []byte {
	if p.err != nil {
		p.begin()
		protocol.WriteError(&p.answer, p.r.HTTP, protocol.BodyXML, p.r.ID, p.r.At, p.err)
	}
	b = append(append(append(b, "--"...), boundary...), "\r\nContent-Type: application/http\r\n"...)
	if p.contentID != "" {
		b = appendField(b, "Content-ID", p.contentID)
	}
	b = append(b, "\r\nHTTP/1.1 "...)
	b = append(append(append(strconv.AppendInt(b, int64(p.answer.status), 10), ' '), http.StatusText(p.answer.status)...), "\r\n"...)
	for _, name := range slices.Sorted(maps.Keys(p.answer.header)) {
		shown := name
		if strings.HasPrefix(name, "X-Ms-") {
			shown = lower(name)
		}
		for _, value := range p.answer.header[name] {
			b = appendField(b, shown, value)
		}
	}
	b = append(b, "\r\n"...)
	if len(p.answer.body) > 0 {
		b = append(append(b, p.answer.body...), "\r\n"...)
	}
	return b
}

// appendField appends a header.
func appendField(b []byte, name, value string) []byte {
	return append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
}

// answerStep is how much of the answer to a batch is in memory before it is sent, beside its last part.
const answerStep = 32 << 10

// answerBatch answers the parts in their order.
func (c *call) answerBatch(parts []*part) {
	boundary := "batchresponse_" + c.r.ID
	c.writeHead(&head{status: http.StatusAccepted, contentType: "multipart/mixed; boundary=" + boundary, streamed: true})
	to := protocol.PatientWriter{W: c.w}
	var b []byte
	for _, p := range parts {
		if b = p.appendTo(b, boundary); len(b) < answerStep {
			p.answer = partAnswer{}
			continue
		}
		if _, err := to.Write(b); err != nil {
			return // The client is gone.
		}
		b = b[:0]
	}
	b = append(append(append(b, "--"...), boundary...), "--\r\n"...)
	_, _ = to.Write(b) // As above.
}
