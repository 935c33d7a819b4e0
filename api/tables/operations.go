package tables

import (
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/odata"
	"antipode/services/storageerr"
)

// Lookup finds the operation that a request asks for (protocol/table.md 9.1). The calls of
// the service itself are package accounts'.
func Lookup(r *protocol.Request) operation.Match {
	res, err := odata.ParsePath(r.Resource)
	if err != nil {
		return operation.Nothing()
	}
	verb, err := verbOf(r.HTTP.Method, r.HTTP.Header)
	if err != nil {
		return operation.Nothing()
	}
	on := operation.NoResource
	switch res.Kind {
	case odata.KindTables:
		on = operation.Tables
	case odata.KindTable:
		on = operation.Table
	case odata.KindEntities:
		on = operation.Entities
	case odata.KindEntity:
		on = operation.Entity
	case odata.KindBatch:
		on = operation.Batch
	}
	m := operation.Find(r, on, verb)
	m.Container = res.Table
	return m
}

// handler runs an operation.
type handler struct {
	run func(*call) error
	// answers says whether success is a document, whose format the client then chooses.
	// An answer without a body is not negotiated, and each operation of a batch has a
	// format that its own headers choose.
	answers documentRule
}

// documentRule says when a success is a document.
type documentRule byte

const (
	never documentRule = iota
	always
	// unlessPreferred: unless the client asks for no content by a Prefer header.
	unlessPreferred
)

// handlers has the operations that are built, by their names in the table.
//
//nolint:gochecknoglobals // A table, never written.
var handlers = map[string]handler{
	"QueryTables":            {(*call).queryTables, always},
	"CreateTable":            {(*call).createTable, unlessPreferred},
	"QueryTable":             {(*call).getTable, always},
	"DeleteTable":            {(*call).deleteTable, never},
	"QueryEntities":          {(*call).queryEntities, always},
	"InsertEntity":           {(*call).insert, unlessPreferred},
	"QueryEntity":            {(*call).getEntity, always},
	"UpdateEntity":           {func(c *call) error { return c.update(http.MethodPut) }, never},
	"MergeEntity":            {func(c *call) error { return c.update(methodMerge) }, never},
	"DeleteEntity":           {(*call).deleteEntity, never},
	"EntityGroupTransaction": {(*call).batch, never},
}

// typeError gives the error of a request for no operation the type that the client asks for a
// document (protocol/table.md 8.1). A type that is not served is no error here: resource and
// verb are checked before the media type (8.2).
func (c *call) typeError() {
	if asked, err := negotiate(c.r.Version, c.r.Header("Accept"), c.r.Query.Get("$format")); err == nil {
		c.w.Header()["Content-Type"] = []string{asked.ContentType()}
	}
}

// unfit is the answer to a request that is none of the operations that are built.
func (c *call) unfit() error {
	if c.asked.Fault == operation.BadVerb {
		c.w.Header()["Allow"] = []string{c.asked.Allow.String()}
		return storageerr.TableMethodNotAllowed
	}
	c.typeError()
	comp := strings.ToLower(c.r.Query.Get("comp"))
	switch {
	case c.asked.Fault == operation.NoFault:
		return storageerr.NotImplemented
	case comp != "":
		return storageerr.InvalidQueryParameter.With("QueryParameterName", "comp", "QueryParameterValue", comp)
	}
	return storageerr.InvalidURI
}
