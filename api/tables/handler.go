package tables

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"antipode/api/protocol"
	"antipode/api/tables/json"
	"antipode/api/tables/odata"
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// Stamp reads this location's ranges.
type Stamp interface {
	Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error
}

// Writer is the write role.
type Writer interface {
	Write(ctx context.Context, w services.Write) error
	CloseGeneration(ctx context.Context, s geo.Service, a geo.Account, container string, g keys.Generation) error
}

// Handler answers table calls.
type Handler struct {
	Stamp  Stamp
	Writer Writer
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
	ctx context.Context //nolint:containedctx // The request's own; a call lives no longer.
	res odata.Resource
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

// Serve answers one request and returns the name of its operation for metrics.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request) (operation string, err error) {
	c := &call{Handler: h, w: w, r: r, ctx: r.HTTP.Context(), documents: &documents{copies: 1}}
	defer c.documents.close()
	if c.sniffs() {
		w.Header()["X-Content-Type-Options"] = noSniff
	}
	if err := protocol.CheckRepeated(r.HTTP.Header); err != nil {
		return "Unknown", err
	}
	if c.res, err = odata.ParsePath(r.Resource); err != nil {
		return "Unknown", err
	}
	operation, run := c.route()
	if run == nil {
		c.w.Header()["Allow"] = []string{allowed(c.res.Kind)}
		return operation, storageerr.TableMethodNotAllowed
	}
	if operation == "InsertEntity" || operation == "CreateTable" { // Errors say it, too.
		if prefer := c.preference(c.r.Header("Prefer")); prefer != "" {
			c.w.Header()["Preference-Applied"] = []string{prefer}
		}
	}
	if c.codec = json.MinimalMetadata; c.answersDocument(operation) {
		if c.codec, err = negotiate(r.Version, r.Header("Accept"), r.Query.Get("$format")); err != nil {
			return operation, err
		}
		c.w.Header()["Content-Type"] = []string{c.codec.ContentType()} // Of an error, too.
	}
	defer func() { c.hold.Release() }()
	return operation, run()
}

// route names the operation and what runs it; nil where the verb does not fit.
func (c *call) route() (operation string, run func() error) {
	if comp := c.r.Query.Get("comp"); comp != "" {
		return c.routeComp(strings.ToLower(comp))
	}
	method, err := verbOf(c.r.HTTP.Method, c.r.HTTP.Header)
	if err != nil {
		return "Unknown", func() error { return err }
	}
	switch c.res.Kind {
	case odata.KindTables:
		switch method {
		case http.MethodGet:
			return "QueryTables", c.queryTables
		case http.MethodPost:
			return "CreateTable", c.createTable
		}
		return "QueryTables", nil
	case odata.KindTable:
		switch method {
		case http.MethodGet:
			return "QueryTable", c.getTable
		case http.MethodDelete:
			return "DeleteTable", c.deleteTable
		}
		return "QueryTable", nil
	case odata.KindEntities:
		switch method {
		case http.MethodGet:
			return "QueryEntities", c.queryEntities
		case http.MethodPost:
			return "InsertEntity", c.insert
		}
		return "QueryEntities", nil
	case odata.KindEntity:
		return c.routeEntity(method)
	case odata.KindBatch:
		if method == http.MethodPost {
			return "EntityGroupTransaction", c.batch
		}
		return "EntityGroupTransaction", nil
	}
	return "Unknown", func() error { return storageerr.InvalidURI }
}

// allowed lists the verbs of a resource, for the answer to any other.
func allowed(k odata.ResourceKind) string {
	switch k {
	case odata.KindTable:
		return "GET, DELETE"
	case odata.KindEntity:
		return "GET, PUT, MERGE, PATCH, DELETE"
	case odata.KindBatch:
		return "POST"
	}
	return "GET, POST"
}

func (c *call) routeComp(comp string) (string, func() error) {
	if comp == "acl" && c.res.Kind == odata.KindEntities {
		operation := "SetTableACL"
		if c.r.HTTP.Method == http.MethodGet {
			operation = "GetTableACL"
		}
		return operation, func() error { return storageerr.NotImplemented }
	}
	return "Unknown", func() error {
		return storageerr.InvalidQueryParameter.With("QueryParameterName", "comp", "QueryParameterValue", comp)
	}
}

func (c *call) routeEntity(method string) (string, func() error) {
	switch method {
	case http.MethodGet:
		return "QueryEntity", c.getEntity
	case http.MethodPut:
		return "UpdateEntity", func() error { return c.update(http.MethodPut) }
	case methodMerge:
		return "MergeEntity", func() error { return c.update(methodMerge) }
	case http.MethodDelete:
		return "DeleteEntity", c.deleteEntity
	}
	return "QueryEntity", nil
}

// table resolves the table to its generation.
func (c *call) table() (*catalog.Container, error) {
	var t *catalog.Container
	err := c.Stamp.Read(c.ctx, geo.FirstRange(geo.Catalog), func(s ranges.State) error {
		var err error
		t, err = c.Names.Get(s, geo.Table, c.r.Account.Name, c.res.Table)
		return err
	})
	if errors.Is(err, storageerr.ResourceNotFound) {
		err = storageerr.TableNotFound
	}
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
