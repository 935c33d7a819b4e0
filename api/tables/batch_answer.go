package tables

import (
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/api/tables/atom"
	"antipode/api/tables/json"
	"antipode/services/storageerr"
	"antipode/services/tables"
)

// runWrites commits the writes and answers each in its order, or a failure alone. A change set
// beyond the first is answered by one refusal.
func (b *batch) runWrites(m *BatchAnswer) error {
	if b.failed == nil {
		if err := b.commit(); err != nil {
			return err
		}
	}
	switch f := b.failed; {
	case f == nil:
		m.OpenSet()
		for i, w := range b.writes.Writes() {
			if err := b.answerWrite(m, w, b.parts[i]); err != nil {
				return err
			}
		}
		m.CloseSet()
	case f.query:
		b.answerFailure(m, f)
	default:
		m.OpenSet()
		b.answerFailure(m, f)
		m.CloseSet()
	}
	if b.sets > 1 {
		m.OpenSet()
		b.answerError(m, part{atom: b.atomEra()}, &storageerr.Error{Row: storageerr.InvalidInput})
		m.CloseSet()
	}
	return nil
}

// answerWrite answers one write that was committed.
func (b *batch) answerWrite(m *BatchAnswer, w *tables.Write, p part) error {
	a, err := b.written(w, p.codec)
	if err != nil {
		return err
	}
	if w.Op == tables.Insert {
		a.dataVersion = dataVersion3
	}
	b.answer(m, p, a)
	return nil
}

// answerFailure answers a batch's failed operation, by its index (protocol/table.md 13.6).
func (b *batch) answerFailure(m *BatchAnswer, f *failure) {
	e := *f.err
	e.Message = strconv.Itoa(f.index) + ":" + e.Message
	b.answerError(m, f.part, &e)
}

func (b *batch) answerError(m *BatchAnswer, p part, e *storageerr.Error) {
	a := answer{status: e.Status, dataVersion: dataVersion3, atom: p.atom}
	kind, contentType := protocol.BodyTableJSON, json.MinimalMetadata.ContentType()
	switch {
	case p.atom:
		kind, contentType = protocol.BodyTableAtom, "application/xml"
	case p.codec != nil:
		contentType = p.codec.ContentType()
	}
	if e.Status != http.StatusNotModified {
		a.contentType, a.body = contentType, protocol.AppendTableError(nil, kind, b.r.ID, b.r.At, e)
	}
	b.answer(m, p, a)
}

// runQuery runs the query of a batch as the request it would be by itself.
func (b *batch) runQuery(m *BatchAnswer) error {
	a, err := b.query.execute()
	if err == nil {
		a.dataVersion, a.dataFirst = dataVersion3, true
		b.answer(m, b.queryPart, a)
		return nil
	}
	e, own := operationError(err)
	if !own {
		return err
	}
	b.answerFailure(m, &failure{part: b.queryPart, err: e})
	return nil
}

// answer appends an answer to that of the batch.
func (b *batch) answer(m *BatchAnswer, p part, a answer) {
	a.version, a.noCache, a.prefer = b.r.Version, true, p.prefer
	a.atom = a.atom || p.codec == atom.Codec{}
	if a.dataVersion == "" || a.atom || b.atomEra() {
		a.dataVersion = dataVersion1
	}
	a.appendTo(m, p.contentID)
}
