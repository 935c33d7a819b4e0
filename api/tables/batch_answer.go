package tables

import (
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/services/storageerr"
	"antipode/services/tables"
)

// Values of DataServiceVersion in a batch (protocol/table.md 13.5): with a document or an
// insert, and without.
const (
	dataVersion3 = "3.0;"
	dataVersion1 = "1.0;"
)

// answerWrites answers a batch of writes, or a failed one: each operation in its order,
// or the failure alone. A change set beyond the first is answered by one refusal.
func (b *batch) answerWrites() error {
	a := NewBatchAnswer(b.r.ID)
	switch f := b.failed; {
	case f == nil:
		a.OpenSet()
		for i, w := range b.writes.Writes() {
			if err := b.answerWrite(a, w, b.operations[i]); err != nil {
				return err
			}
		}
		a.CloseSet()
	case f.query:
		b.answerFailure(a, f)
	default:
		a.OpenSet()
		b.answerFailure(a, f)
		a.CloseSet()
	}
	if b.sets > 1 {
		a.OpenSet()
		b.answerError(a, opAnswer{codec: json.MinimalMetadata, atom: b.r.Version < protocol.Version20130815}, &storageerr.Error{Row: storageerr.InvalidInput})
		a.CloseSet()
	}
	b.send(a)
	return nil
}

// send sends the whole answer, which is 202 whatever its parts say.
func (b *batch) send(a *BatchAnswer) {
	body := a.Close()
	h := b.w.Header()
	h["Content-Type"] = []string{a.ContentType()}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	b.odataHeaders()
	b.w.WriteHeader(http.StatusAccepted)
	_, _ = b.w.Write(body) // The client is gone when this fails.
}

// answerWrite answers one write that was committed.
func (b *batch) answerWrite(a *BatchAnswer, w *tables.Write, op opAnswer) error {
	fields := b.innerHeaders()
	if w.Op != tables.Insert {
		fields = append(fields, Field{Name: "DataServiceVersion", Value: dataVersion1})
		if w.Op != tables.Delete {
			fields = append(fields, etagField(w))
		}
		a.Part(http.StatusNoContent, op.contentID, fields, nil)
		return nil
	}
	fields = append(preferred(fields, op), Field{Name: "DataServiceVersion", Value: dataVersion3})
	location := b.location(w)
	if op.prefer == preferNoContent {
		fields = append(fields, Field{Name: "Location", Value: location},
			Field{Name: "DataServiceId", Value: location}, etagField(w))
		a.Part(http.StatusNoContent, op.contentID, fields, nil)
		return nil
	}
	doc, err := b.appendWritten(nil, op.codec, w)
	if err != nil {
		return err
	}
	fields = append(fields, Field{Name: "Content-Type", Value: op.codec.ContentType()},
		Field{Name: "Location", Value: location}, etagField(w))
	a.Part(http.StatusCreated, op.contentID, fields, doc)
	return nil
}

// answerFailure answers a batch's failed operation, by its index (protocol/table.md 13.6).
func (b *batch) answerFailure(a *BatchAnswer, f *failure) {
	e := *f.err
	e.Message = strconv.Itoa(f.index) + ":" + e.Message
	b.answerError(a, f.opAnswer, &e)
}

func (b *batch) answerError(a *BatchAnswer, op opAnswer, e *storageerr.Error) {
	version, contentType, kind := dataVersion3, op.codec.ContentType(), protocol.BodyTableJSON
	if op.atom {
		version, contentType, kind = dataVersion1, "application/xml", protocol.BodyTableAtom
	}
	fields := append(preferred(b.innerHeaders(), op), Field{Name: "DataServiceVersion", Value: version})
	if e.Status == http.StatusNotModified {
		a.Part(e.Status, op.contentID, fields, nil)
		return
	}
	fields = append(fields, Field{Name: "Content-Type", Value: contentType})
	a.Part(e.Status, op.contentID, fields, protocol.AppendTableError(nil, kind, b.r.ID, b.r.At, e))
}

// answerQuery runs the query of a batch as the request it would be by itself, and
// answers with what that gives.
func (b *batch) answerQuery() error {
	var part recorder
	b.query.w, b.query.documents.copies = &part, 3
	run := b.query.getEntity
	if b.query.res.Kind == odata.KindEntities {
		run = b.query.queryEntities
	}
	a := NewBatchAnswer(b.r.ID)
	if err := run(); err != nil {
		e, own := operationError(err)
		if !own {
			return err
		}
		b.answerFailure(a, &failure{opAnswer: b.queryAs, err: e})
		b.send(a)
		return nil
	}
	fields := []Field{
		{Name: "DataServiceVersion", Value: dataVersion3},
		{Name: "Content-Type", Value: b.query.codec.ContentType()},
	}
	fields = append(fields, b.innerHeaders()...)
	if tag := part.first("ETag"); tag != "" {
		fields = append(fields, Field{Name: "ETag", Value: tag})
	}
	a.Part(part.status, b.queryAs.contentID, fields, part.body)
	b.send(a)
	return nil
}

// innerHeaders open every part; a query has them later.
func (b *batch) innerHeaders() (fields []Field) {
	if b.sniffs() {
		fields = append(fields, Field{Name: "X-Content-Type-Options", Value: noSniff[0]})
	}
	return append(fields, Field{Name: "Cache-Control", Value: noCache[0]})
}

func preferred(fields []Field, op opAnswer) []Field {
	if op.prefer == "" {
		return fields
	}
	return append(fields, Field{Name: "Preference-Applied", Value: op.prefer})
}

func etagField(w *tables.Write) Field {
	return Field{Name: "ETag", Value: wire.TableETag(w.Timestamp)}
}

// recorder keeps an answer that becomes a part of another. A query's document is
// bounded by the size of one entity.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// first is the value of a header by the very name it was set under.
func (r *recorder) first(name string) string {
	if v := r.header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}
