package tables

import (
	"context"
	"errors"
	"net/http"
	"time"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// Handler answers table calls.
type Handler struct {
	// Stamp reads this location's ranges.
	Stamp  ranges.Reader
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

// newBudget is the budget of a page that begins now. The caller ends it.
func (c *call) newBudget() *services.Budget {
	return c.Scans.Begin(c.ctx, c.r.Account.Name)
}

// call is one request on its way.
type call struct {
	*Handler
	w   http.ResponseWriter
	r   *protocol.Request
	ctx context.Context // The request's own; a call lives no longer.
	// asked is the operation that the request asks for.
	asked operation.Match
	res   odata.Resource
	// codec is that of the answer.
	codec codec
	// set is what its documents show.
	set odata.Set
	// documents are closed when the request was answered. A batch's query has those of the
	// batch.
	documents *documents
	// hold is what the request's body holds; nil before it is opened.
	hold *protocol.Hold
}

// Serve answers a request for the operation that Lookup found.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	c := &call{Handler: h, w: w, r: r, ctx: r.HTTP.Context(), asked: m, documents: &documents{copies: 1}}
	defer c.documents.close()
	if c.sniffs() {
		w.Header()["X-Content-Type-Options"] = noSniff
	}
	if err := protocol.CheckRepeated(r.HTTP.Header); err != nil {
		return err
	}
	var err error
	if c.res, err = odata.ParsePath(r.Resource); err != nil {
		return err
	}
	if _, err := verbOf(r.HTTP.Method, r.HTTP.Header); err != nil {
		c.typeError()
		return err
	}
	handle, built := handlers[m.Name]
	if !built {
		return c.unfit()
	}
	prefer := c.preference(c.r.Header("Prefer"))
	if handle.answers == unlessPreferred && prefer != "" { // Errors have it, too.
		c.w.Header()["Preference-Applied"] = []string{prefer}
	}
	if c.codec = json.MinimalMetadata; handle.answers == always || handle.answers == unlessPreferred && prefer != preferNoContent {
		if c.codec, err = negotiate(r.Version, r.Header("Accept"), r.Query.Get("$format")); err != nil {
			return err
		}
		c.w.Header()["Content-Type"] = []string{c.codec.ContentType()} // Of an error, too.
	}
	defer func() { c.hold.Release() }()
	return handle.run(c)
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
// in its body, so it never did.
func (c *call) lookup() (t *catalog.Container, err error) {
	if found := c.r.Container; found != nil {
		return found.Container, found.Err
	}
	err = c.Stamp.Read(c.ctx, geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		t, err = c.Names.Get(s, geo.Table, c.r.Account.Name, c.res.Table)
		return err
	})
	return t, err
}

// odataHeaders are on every OData answer but those to early failures: of what is wrong by
// itself, and of a table that does not exist (protocol/table.md 3).
func (c *call) odataHeaders() {
	c.w.Header()["Cache-Control"] = noCache
}

// sniffs reports whether answers forbid to guess their type, from 2013 on.
func (c *call) sniffs() bool { return c.r.Version >= protocol.Version20130815 }

// Shared header values: net/http only reads them.
var (
	noCache = []string{"no-cache"} //nolint:gochecknoglobals // A constant in the form headers take.
	noSniff = []string{"nosniff"}  //nolint:gochecknoglobals // As above.
)

// noContent sends a 204.
func (c *call) noContent() {
	c.odataHeaders()
	c.w.WriteHeader(http.StatusNoContent)
}

// preference is what Prefer asks for, from 2011-08-18 on; empty for anything unknown.
func (c *call) preference(header string) string {
	if c.r.Version < protocol.Version20110818 {
		return ""
	}
	switch header {
	case preferNoContent, preferContent:
		return header
	}
	return ""
}

const (
	preferNoContent = "return-no-content"
	preferContent   = "return-content"
)

// created answers an insert or a created table: 204 without a body when asked so.
func (c *call) created(location string, body func([]byte) ([]byte, error)) error {
	h := c.w.Header()
	h["Location"] = []string{location}
	if c.preference(c.r.Header("Prefer")) == preferNoContent {
		h.Set("DataServiceId", location)
		c.noContent()
		return nil
	}
	doc, err := body(make([]byte, 0, 1024))
	if err != nil {
		return err
	}
	c.writeBody(http.StatusCreated, doc)
	return nil
}
