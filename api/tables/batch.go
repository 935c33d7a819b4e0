package tables

import (
	"errors"
	"io"
	"net/http"

	"antipode/api/protocol"
	"antipode/api/tables/filter"
	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/services/storageerr"
	"antipode/services/tables"
)

// IsBatch reports whether a path after the account, as sent, is $batch.
func IsBatch(resource string) bool {
	r, err := odata.ParsePath(resource)
	return err == nil && r.Kind == odata.KindBatch
}

// batch is one POST $batch under way (protocol/table.md 13): the writes of one change set,
// or one query.
type batch struct {
	*call
	// requests counts the requests read, all change sets included, and sets the latter.
	requests, sets int
	writes         tables.Batch
	// operations say how the writes are answered, in the same order.
	operations []opAnswer
	query      *call
	queryAs    opAnswer
	failed     *failure
}

// opAnswer is what the answer of one write needs beside the write.
type opAnswer struct {
	contentID string
	prefer    string
	codec     codec
	// atom: an error of the operation is answered in Atom's XML.
	atom bool
}

// failure is the first error of an operation: the answer then holds nothing else.
type failure struct {
	opAnswer
	index int
	err   *storageerr.Error
	// query: the failed operation was not in a change set.
	query bool
}

// batch reads the whole request before anything is written: a batch that breaks off, or
// of which a later part is none, has no effect.
func (c *call) batch() error {
	if c.r.Version < c.asked.Since {
		return storageerr.InvalidInput
	}
	sum, err := newBodyMD5(c.r.Header("Content-MD5"))
	if err != nil {
		return err
	}
	body, err := c.open(sum)
	if err != nil {
		return err
	}
	boundary, err := wire.BatchBoundary(c.r.Header("Content-Type"))
	if err != nil {
		return err
	}
	in := wire.NewBatchReader(body, boundary)
	b := &batch{call: c}
	if err := b.read(in); err != nil {
		return err
	}
	if err := sum.check(); err != nil {
		return err
	}
	switch {
	case b.failed != nil:
	case b.query != nil:
		return b.answerQuery()
	default:
		if err := b.commit(); err != nil {
			return err
		}
	}
	return b.answerWrites()
}

// read takes all requests of the batch. An error is one of the batch as a whole.
func (b *batch) read(in *wire.BatchReader) error {
	for ; ; b.requests++ {
		r, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b.sets = max(b.sets, r.ChangeSet)
		write := r.ChangeSet > 0 || r.Method != http.MethodGet
		switch {
		case b.r.Secondary && write:
			return storageerr.WriteOnSecondary
		case r.ChangeSet > 1 || b.failed != nil:
			continue // Of several change sets the first is processed.
		}
		op := opAnswer{contentID: r.ContentID, codec: json.MinimalMetadata, atom: b.r.Version < protocol.Version20130815}
		if err := b.take(r, &op); err != nil {
			e, own := operationError(err)
			if !own {
				return err
			}
			b.failed = &failure{opAnswer: op, index: b.requests, err: e, query: r.ChangeSet == 0 && len(b.operations) == 0}
			if errors.Is(err, storageerr.BatchTooLong) {
				b.failed.index = tables.BatchMax - 1
			}
		}
	}
}

// take decodes one request. Its error is that of the operation.
func (b *batch) take(r *wire.BatchRequest, op *opAnswer) error {
	if r.ChangeSet == 0 && (b.requests > 0 || r.Method != http.MethodGet) || b.query != nil {
		return storageerr.InvalidInput // Either one change set or one query.
	}
	inner := *b.call
	path, rawQuery := wire.CutBatchURI(r.URI, string(b.r.Account.Name), b.r.PathStyle)
	query, err := protocol.ParseQuery(rawQuery)
	if err != nil {
		return err
	}
	if inner.res, err = odata.ParsePath(path); err != nil {
		return err
	}
	op.atom = AtomErrors(b.r.Version, true, r.Header.Get("Accept"), query.Get("$format"))
	verb, err := verbOf(r.Method, r.Header)
	if err != nil {
		return err
	}
	insert := verb == http.MethodPost
	if insert {
		op.prefer = b.preference(r.Header.Get("Prefer"))
		if r.Header.Get("Prefer") == "" {
			op.prefer = b.preference(b.r.Header("Prefer"))
		}
	}
	if verb == http.MethodGet || insert && op.prefer != preferNoContent { // Nothing else answers a document.
		if inner.codec, err = negotiate(b.r.Version, r.Header.Get("Accept"), query.Get("$format")); err != nil {
			return err
		}
		op.codec = inner.codec
	}
	if query.Has("comp") {
		return storageerr.InvalidInput
	}
	if r.ChangeSet == 0 {
		b.queryAs = *op
		return b.takeQuery(r, &inner, query)
	}
	w, err := inner.batchWrite(r, verb)
	if err != nil {
		return err
	}
	w.Account, w.Table = b.r.Account.Name, inner.res.Table
	if err := b.writes.Add(w); err != nil {
		return err
	}
	b.operations = append(b.operations, *op)
	return nil
}

// batchWrite makes the write of an operation of a change set.
func (c *call) batchWrite(r *wire.BatchRequest, verb string) (*tables.Write, error) {
	switch {
	case c.res.Kind == odata.KindEntities && verb == http.MethodPost:
		w := &tables.Write{Op: tables.Insert}
		return w, c.decodeBatch(w, r)
	case c.res.Kind != odata.KindEntity:
		return nil, storageerr.InvalidInput
	}
	switch verb {
	case http.MethodPut, methodMerge, http.MethodDelete:
	case http.MethodGet:
		return nil, storageerr.InvalidInput
	default:
		return nil, storageerr.TableMethodNotAllowed
	}
	w, err := c.conditional(verb, r.Header, true)
	if err != nil || w.Op == tables.Delete {
		return w, err
	}
	return w, c.decodeBatch(w, r)
}

func (c *call) decodeBatch(w *tables.Write, r *wire.BatchRequest) error {
	form, err := bodyCodec(c.r.Version, r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	return decode(form, w, r.Body)
}

// takeQuery takes the query of a batch, which must be certain to find one entity at
// most: a key, or a filter that names both (protocol/table.md 13.1).
func (b *batch) takeQuery(r *wire.BatchRequest, inner *call, query protocol.Query) error {
	switch inner.res.Kind {
	case odata.KindEntity:
	case odata.KindEntities:
		wanted, err := filter.Parse(query.Get("$filter"))
		if err != nil {
			return err
		}
		keys, _ := wanted.Bounds()
		_, onePartition := keys.PK.Key()
		if _, oneRow := keys.RK.Key(); !onePartition || !oneRow {
			return storageerr.InvalidInput
		}
	default:
		return storageerr.InvalidInput
	}
	request := *b.r
	request.HTTP = b.r.HTTP.WithContext(b.ctx)
	request.HTTP.Method, request.HTTP.Header = r.Method, r.Header
	request.Query = query
	inner.r = &request
	b.query = inner
	return nil
}

// commit commits the writes as one. What one of them fails with becomes the batch's
// failure; an error is one of the whole.
func (b *batch) commit() error {
	writes := b.writes.Writes()
	b.res.Table = writes[0].Table
	t, err := b.table()
	if err == nil {
		for _, w := range writes {
			w.Generation = t.Generation()
		}
		err = b.Writer.Write(b.ctx, &b.writes)
	} else if errors.Is(err, storageerr.TableNotFound) {
		err = &tables.BatchError{Err: err}
	}
	var of *tables.BatchError
	if !errors.As(err, &of) {
		return err
	}
	e, own := operationError(err)
	if !own {
		return err
	}
	b.failed = &failure{opAnswer: b.operations[of.Index], index: of.Index, err: e}
	return nil
}

// operationError is err as the answer of an operation. own is false where the whole
// request fails: overload, an unknown outcome, a bug.
func operationError(err error) (e *storageerr.Error, own bool) {
	e, own = storageerr.Of(err)
	return e, own && (e.Status < http.StatusInternalServerError || e.Status == http.StatusNotImplemented)
}
