package tables

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/services/tables"
)

// batch is one POST $batch under way (protocol/table.md 13): the writes of one change set,
// or one query.
type batch struct {
	*call
	// requests counts the requests read, all change sets included, and sets the latter.
	requests, sets int
	writes         tables.Batch
	// inner is the input of the request that is being read.
	inner input
	// parts say how the writes are answered, in the same order.
	parts []part
	// query is the call of the query, or nil, and queryPart how it is answered.
	query     *call
	queryPart part
	failed    *failure
}

// part is what the answer to a request of a batch needs beside its result.
type part struct {
	contentID string
	prefer    string
	// codec writes its document; nil if there is none.
	codec codec
	// atom: an error is answered in Atom's XML.
	atom bool
}

// failure is the first error of a request of the batch: the answer then holds nothing else.
type failure struct {
	part
	index int
	err   *storageerr.Error
	// query: the failed request was not in a change set.
	query bool
}

// decodeBatch reads the whole request before anything is written: a batch that breaks off, or
// of which a later part is none, has no effect.
func (c *call) decodeBatch() error {
	body, err := c.openBody()
	if err != nil {
		return err
	}
	c.batch = &batch{call: c}
	if err := c.batch.read(wire.NewBatchReader(body, c.in.boundary)); err != nil {
		return err
	}
	return body.sum.check()
}

// runBatch executes the batch. Its answer is 202 whatever its parts say.
func (c *call) runBatch() (answer, error) {
	run := c.batch.runWrites
	if c.batch.failed == nil && c.batch.query != nil {
		run = c.batch.runQuery
	}
	m := NewBatchAnswer(c.r.ID)
	if err := run(m); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusAccepted, contentType: m.ContentType(), body: m.Close()}, nil
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
		p := part{contentID: r.ContentID, atom: b.atomEra()}
		if err := b.take(r, &p); err != nil {
			e, own := operationError(err)
			if !own || e.Status == http.StatusForbidden { // One that is not permitted refuses the batch.
				return err
			}
			b.failed = &failure{part: p, index: b.requests, err: e, query: r.ChangeSet == 0 && len(b.parts) == 0}
			if errors.Is(err, storageerr.BatchTooLong) {
				b.failed.index = tables.BatchMax - 1
			}
		}
	}
}

// atomEra reports whether the batch is of a version that had Atom alone.
func (b *batch) atomEra() bool { return b.r.Version < jsonSince }

// take reads one request as the operation that it is, by the steps of call.serve. Its error is
// that of the operation.
func (b *batch) take(r *wire.BatchRequest, p *part) error {
	if r.ChangeSet == 0 && (b.requests > 0 || r.Method != http.MethodGet) || b.query != nil {
		return storageerr.InvalidInput // Either one change set or one query.
	}
	host, path, rawQuery := wire.CutBatchURI(r.URI)
	path, own := b.r.CutAccount(host, path)
	if !own || !b.r.Admits(strings.Join(r.Header["Host"], ",")) {
		return storageerr.InvalidInput // Of another account.
	}
	query, err := protocol.ParseQuery(rawQuery)
	if err != nil {
		return err
	}
	if err := protocol.CheckRepeated(r.Header); err != nil {
		return err
	}
	in := &b.inner
	*in = input{}
	if in.res, err = odata.ParsePath(path); err != nil {
		return err
	}
	p.atom = AtomErrors(b.r.Version, true, r.Header.Get("Accept"), query.Get("$format"))
	if in.verb, err = verbOf(r.Method, r.Header); err != nil {
		return err
	}
	from := source{header: r.Header, query: query, batch: &b.in}
	if err = in.findBatched(query, r.ChangeSet > 0); err != nil {
		in.typeError(b.r.Version, from)
	} else {
		err = in.parse(b.r.Version, from)
	}
	p.prefer, p.codec = in.applied(), in.codec // Of an error, too.
	if err != nil {
		return err
	}
	if err := b.permitted(in, from); err != nil {
		return err
	}
	if r.ChangeSet == 0 {
		if err := in.certain(); err != nil {
			return err
		}
		b.query = &call{Handler: b.Handler, r: b.r, ctx: b.ctx, in: *in, copies: 3}
		b.queryPart = *p
		return nil
	}
	w, err := in.write(b.r.Account.Name, r.Body)
	if err != nil {
		return err
	}
	if err := b.reached(w.PK, w.RK); err != nil {
		return err
	}
	if err := b.writes.Add(w); err != nil {
		return err
	}
	b.parts = append(b.parts, *p)
	return nil
}

// findBatched finds the handler of a part by its path and verb. Few operations may be in a
// batch (protocol/table.md 13.1, 13.3).
func (in *input) findBatched(query protocol.Query, set bool) error {
	if query.Has("comp") {
		return storageerr.InvalidInput
	}
	r := protocol.Request{Target: protocol.Target{Service: geo.Table}, Query: query}
	m := operation.Find(&r, resourceOf(in.res.Kind), in.verb)
	in.row, in.handler = m.Operation, handlers[m.Name]
	want := alone
	if set {
		want = inSet
	}
	switch {
	case in.handler != nil && in.handler.batched == want:
		return nil
	case m.Fault == operation.BadVerb && in.res.Kind == odata.KindEntity:
		return storageerr.TableMethodNotAllowed
	}
	return storageerr.InvalidInput
}

// certain refuses a query that may find more than one entity: it must have a key, or a filter
// that names both (protocol/table.md 13.1).
func (in *input) certain() error {
	if in.res.Kind == odata.KindEntity {
		return nil
	}
	if !in.filter.Plan().Keys.One() {
		return storageerr.InvalidInput
	}
	return nil
}

// commit commits the writes as one. What one of them fails with becomes the batch's
// failure; an error is one of the whole.
func (b *batch) commit() error {
	writes := b.writes.Writes()
	b.in.res.Table = writes[0].Table
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
	b.failed = &failure{part: b.parts[of.Index], index: of.Index, err: e}
	return nil
}

// operationError is err as the answer of an operation. own is false where the whole
// request fails: overload, an unknown outcome, a bug.
func operationError(err error) (e *storageerr.Error, own bool) {
	e, own = storageerr.Of(err)
	return e, own && (e.Status < http.StatusInternalServerError || e.Status == http.StatusNotImplemented)
}
