package tables

import (
	"net/http"
	"strconv"

	"antipode/api/protocol"
)

// answer is what a request, or a part of a batch, is answered. Beside an error it has the
// headers that the answer to the error has besides those of every error.
type answer struct {
	status  int
	version protocol.Version
	// noCache: the answer is no early failure, of what is wrong by itself or of a table that
	// does not exist (protocol/table.md 3).
	noCache bool
	// prefer is the preference that was applied; empty for none.
	prefer string
	// dataVersion is the DataServiceVersion; empty for a request since 2013-08-15.
	dataVersion string
	// dataFirst: the part is that of a query, which begins with dataVersion and contentType.
	dataFirst bool
	// atom: the body is Atom or an error of its time, which in a part changes the order.
	atom bool
	// contentType is that of the document, or of an error's body.
	contentType string
	// location is the URI of what was created, etag the tag of an entity.
	location, etag string
	// next is where the next page starts; allow has the verbs that would fit.
	next  []Field
	allow string

	// document or body is the document; a body is bounded by the size of the request.
	document *protocol.Document
	body     []byte
}

// fieldsMax is above the number of fields of any answer.
const fieldsMax = 12

// fields appends the headers of the answer in the order of a part (protocol/table.md 13.5).
func (a *answer) fields(to []Field) []Field {
	add := func(name, value string) {
		if value != "" {
			to = append(to, Field{Name: name, Value: value})
		}
	}
	if a.dataFirst {
		add("DataServiceVersion", a.dataVersion)
		add("Content-Type", a.contentType)
	}
	if a.version >= protocol.Version20130815 {
		add("X-Content-Type-Options", "nosniff")
	}
	inAtom := a.atom && !a.dataFirst // The order of 2009.
	if inAtom {
		add("Content-Type", a.contentType)
	}
	if a.noCache {
		add("Cache-Control", "no-cache")
	}
	add("Preference-Applied", a.prefer)
	switch {
	case inAtom:
		add("ETag", a.etag)
	case !a.dataFirst:
		add("DataServiceVersion", a.dataVersion)
		add("Content-Type", a.contentType)
	}
	add("Location", a.location)
	if a.status == http.StatusNoContent {
		add("DataServiceId", a.location)
	}
	if inAtom {
		add("DataServiceVersion", a.dataVersion)
	} else {
		add("ETag", a.etag)
	}
	add("Allow", a.allow)
	return append(to, a.next...)
}

// setHeaders sets the headers of a request's answer.
func (a *answer) setHeaders(h http.Header) {
	var buf [fieldsMax]Field
	fields := a.fields(buf[:0])
	values := make([]string, len(fields)) // Of all fields: one allocation.
	for i, f := range fields {
		name := f.Name
		if name != "ETag" { // It is sent as the protocol spells it.
			name = http.CanonicalHeaderKey(name)
		}
		values[i] = f.Value
		h[name] = values[i : i+1 : i+1]
	}
}

// send answers a request.
func (a *answer) send(w http.ResponseWriter) {
	h := w.Header()
	a.setHeaders(h)
	length := len(a.body)
	if a.document != nil {
		length = a.document.Len()
	}
	if a.contentType != "" {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	w.WriteHeader(a.status)
	switch {
	case a.document != nil:
		a.document.WriteTo(w)
	case a.body != nil:
		_, _ = w.Write(a.body) // The client is gone when this fails.
	}
}

// appendTo appends the answer to that of a batch.
func (a *answer) appendTo(m *BatchAnswer, contentID string) {
	var buf [fieldsMax]Field
	body := a.body
	if a.document != nil {
		body = a.document.AppendTo(nil)
	}
	m.Part(a.status, contentID, a.fields(buf[:0]), body)
}
