package tables

import (
	"context"
	"errors"
	"net/http"
	"time"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/services/tables"
	"antipode/stamp/ranges"
)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Reader
	ranges.Routed
}

// Handler answers table calls.
type Handler struct {
	// Stamp reads this location's ranges.
	Stamp  Stamp
	Writer services.Writer
	// Scans shares the processors among the pages of the process. Nil shares nothing.
	Scans *services.Scans
	// NameRest is how long a table's name rests after a deletion.
	NameRest time.Duration
	Names    *catalog.Containers
	// InFlight bounds the bodies that are held at once, Answers the answers.
	InFlight *protocol.InFlight
	Answers  *protocol.InFlight

	windows protocol.Windows
}

// call is one request on its way, or the query of a batch.
type call struct {
	*Handler
	r   *protocol.Request
	ctx context.Context // The request's own; a call lives no longer.
	in  input
	// hold is what the request's body holds; nil before it is opened.
	hold *protocol.Hold

	// write, batch or policies is the decoded body of an operation that has one.
	write    *tables.Write
	batch    *batch
	policies []catalog.Policy
	// container is the table whose entities the operation is about.
	container *catalog.Container
	// late: a failure from here on is no early one (protocol/table.md 3).
	late bool

	// set is what the documents of the answer show.
	set odata.Set
	// document is that of the answer, or nil.
	document *protocol.Document
	// copies is how often a document is held: that of a batch's query as its part and in the
	// answer too.
	copies int
}

// Serve answers a request for the operation that Lookup found.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	c := &call{Handler: h, r: r, ctx: r.HTTP.Context(), in: input{row: m.Operation}, copies: 1}
	defer c.close()
	a, err := c.serve(m)
	a.version, a.noCache, a.prefer = r.Version, c.late, c.in.applied()
	if r.Version < jsonSince {
		a.dataVersion = dataVersion1
	}
	if err != nil {
		a.contentType = c.in.contentType()
		a.setHeaders(w.Header())
		return err
	}
	a.send(w)
	return nil
}

// serve takes a request through the steps that all operations have, in the order of checks of
// protocol/table.md 8.2: path and verb, headers and query, body, table, and the operation.
func (c *call) serve(m operation.Match) (answer, error) {
	from := source{header: c.r.HTTP.Header, query: c.r.Query}
	if a, err := c.find(m, from); err != nil {
		return a, err
	}
	if err := c.in.parse(c.r.Version, from); err != nil {
		return answer{}, err
	}
	if err := c.reachedByPath(); err != nil {
		return answer{}, err
	}
	if err := c.decode(); err != nil {
		return answer{}, err
	}
	return c.execute()
}

// find finds the handler of the request by its path and verb.
func (c *call) find(m operation.Match, from source) (a answer, err error) {
	if err := protocol.CheckRepeated(from.header); err != nil {
		return a, err
	}
	if c.in.res, err = odata.ParsePath(c.r.Resource); err != nil {
		return a, err
	}
	if c.in.verb, err = verbOf(c.r.HTTP.Method, from.header); err != nil {
		c.in.typeError(c.r.Version, from)
		return a, err
	}
	if c.in.handler = handlers[m.Name]; c.in.handler == nil {
		return c.unfit(m, from)
	}
	return a, nil
}

// decode reads the body of an operation that writes.
func (c *call) decode() (err error) {
	var body []byte
	switch c.in.row.Body.Kind {
	case operation.Multipart:
		return c.decodeBatch()
	case operation.JSON, operation.XML:
		if body, err = c.readBody(); err != nil {
			return err
		}
	}
	if c.in.handler.decode == nil {
		return nil
	}
	return c.in.handler.decode(c, body)
}

// execute resolves the table of an operation on entities, and runs the operation.
func (c *call) execute() (a answer, err error) {
	if on := c.in.row.On; on == operation.Entities || on == operation.Entity {
		if c.container, err = c.table(); err != nil {
			return a, err
		}
	}
	c.late = true
	return c.in.handler.run(c)
}

// close gives back what the call holds.
func (c *call) close() {
	c.hold.Release()
	if c.document != nil {
		c.document.Close()
	}
	if c.batch != nil && c.batch.query != nil {
		c.batch.query.close()
	}
}

// reader reads what the ranges of this location have of the account.
func (c *call) reader() ranges.Reader {
	return ranges.OfAccount(c.Stamp, c.r.Account.Name, c.r.Account.GeoEpoch(), c.r.Secondary)
}

// table resolves the table to its generation.
func (c *call) table() (*catalog.Container, error) {
	t, err := c.lookup()
	if errors.Is(err, storageerr.ResourceNotFound) {
		err = storageerr.TableNotFound
	}
	return t, err
}

// lookup reads the table's row, unless that came with the request. The table of a batch is
// in its body, so it did only with a signature for that one table.
func (c *call) lookup() (t *catalog.Container, err error) {
	if found := c.r.Container; found != nil {
		return found.Container, found.Err
	}
	err = c.reader().Read(c.ctx, c.Stamp.Route().Catalog(), func(s ranges.State) error {
		t, err = c.Names.Get(s, geo.Table, c.r.Account.Name, c.in.res.Table)
		return err
	})
	return t, err
}
