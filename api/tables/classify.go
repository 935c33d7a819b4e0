package tables

import (
	operations "antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/tables/odata"
)

// Lookup finds the operation that a request asks for (protocol/table.md 9.1). The calls of
// the service itself are package accounts'.
func Lookup(r *protocol.Request) operations.Match {
	res, err := odata.ParsePath(r.Resource)
	if err != nil {
		return operations.Nothing()
	}
	verb, err := verbOf(r.HTTP.Method, r.HTTP.Header)
	if err != nil {
		return operations.Nothing()
	}
	on := operations.NoResource
	switch res.Kind {
	case odata.KindTables:
		on = operations.Tables
	case odata.KindTable:
		on = operations.Table
	case odata.KindEntities:
		on = operations.Entities
	case odata.KindEntity:
		on = operations.Entity
	case odata.KindBatch:
		on = operations.Batch
	}
	return operations.Find(r, on, verb)
}
