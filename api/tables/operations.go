package tables

import (
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
	m := operation.Find(r, resourceOf(res.Kind), verb)
	m.Container = res.Table
	return m
}

// resourceOf is the resource of the table of operations that a path of this kind names.
func resourceOf(kind odata.ResourceKind) operation.Resource {
	switch kind {
	case odata.KindTables:
		return operation.Tables
	case odata.KindTable:
		return operation.Table
	case odata.KindEntities:
		return operation.Entities
	case odata.KindEntity:
		return operation.Entity
	case odata.KindBatch:
		return operation.Batch
	}
	return operation.NoResource
}

// handler is how an operation is served.
type handler struct {
	// answers says whether success is a document, whose format the client then chooses.
	// An answer without a body is not negotiated, and each operation of a batch has a
	// format that its own headers choose.
	answers documentRule
	// options reads the query options; nil if the operation has none.
	options func(*options, protocol.Version, protocol.Query) error
	// decode takes the body of what is no batch, if there is one; nil if nothing is written.
	decode  func(c *call, body []byte) error
	run     func(*call) (answer, error)
	batched place
}

// documentRule says when a success is a document.
type documentRule byte

const (
	never documentRule = iota
	always
	// unlessPreferred: unless the client asks for no content by a Prefer header.
	unlessPreferred
)

// place is the place that an operation may have in a batch. Most have none.
type place byte

const (
	// inSet: in a change set.
	inSet place = iota + 1
	// alone: as the only request of the batch.
	alone
)

// handlers has the operations that are built, by their names in the table.
//
//nolint:gochecknoglobals // A table, never written.
var handlers = map[string]*handler{
	"QueryTables":            {answers: always, options: (*options).ofTables, run: (*call).queryTables},
	"CreateTable":            {answers: unlessPreferred, decode: (*call).decodeName, run: (*call).createTable},
	"QueryTable":             {answers: always, run: (*call).getTable},
	"DeleteTable":            {run: (*call).deleteTable},
	"QueryEntities":          {answers: always, options: (*options).ofEntities, run: (*call).queryEntities, batched: alone},
	"InsertEntity":           {answers: unlessPreferred, decode: (*call).decodeWrite, run: (*call).writeEntity, batched: inSet},
	"QueryEntity":            {answers: always, options: (*options).ofEntity, run: (*call).getEntity, batched: alone},
	"UpdateEntity":           {decode: (*call).decodeWrite, run: (*call).writeEntity, batched: inSet},
	"MergeEntity":            {decode: (*call).decodeWrite, run: (*call).writeEntity, batched: inSet},
	"DeleteEntity":           {decode: (*call).decodeWrite, run: (*call).writeEntity, batched: inSet},
	"GetTableACL":            {run: (*call).getACL},
	"SetTableACL":            {decode: (*call).decodeACL, run: (*call).setACL},
	"EntityGroupTransaction": {run: (*call).runBatch},
}

// unfit is the answer to a request that is none of the operations that are built.
func (c *call) unfit(m operation.Match, from source) (a answer, err error) {
	if m.Fault == operation.BadVerb {
		a.allow = m.Allow.String()
		return a, storageerr.TableMethodNotAllowed
	}
	c.in.typeError(c.r.Version, from)
	comp := strings.ToLower(from.query.Get("comp"))
	switch {
	case m.Fault == operation.NoFault:
		return a, storageerr.NotImplemented
	case comp != "":
		return a, storageerr.InvalidQueryParameter.With("QueryParameterName", "comp", "QueryParameterValue", comp)
	}
	return a, storageerr.InvalidURI
}
