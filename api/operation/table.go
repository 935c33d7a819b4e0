package operation

import (
	"slices"

	"antipode/api/protocol"
)

// tableBodyMax is the longest body of a table request, in bytes (protocol/table.md 4.6,
// 13.1).
const tableBodyMax = 4 << 20

// tableRows are the operations of protocol/table.md 9.1. The upserts are UpdateEntity and
// MergeEntity without If-Match. PATCH is another name of MERGE.
//
//nolint:gochecknoglobals // A table, never written.
var tableRows = slices.Concat(serviceRows("Table"), []Operation{
	{
		Name: "QueryTables", Built: true, On: Tables, Verbs: GET,
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "c", Account: "l"},
	},
	{
		Name: "CreateTable", Built: true, On: Tables, Verbs: POST,
		Leads: Catalog, SAS: SAS{Type: "c", Account: "cw"}, Body: body(JSON, tableBodyMax),
	},
	{
		Name: "QueryTable", Built: true, On: Table, Verbs: GET,
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "c", Account: "l"},
	},
	{Name: "DeleteTable", Built: true, On: Table, Verbs: DELETE, Leads: Catalog, SAS: SAS{Type: "c", Account: "d"}},
	{
		Name: "GetTableACL", Built: true, On: Entities, Verbs: GET | HEAD, Comp: "acl", Since: protocol.Version20120212,
		Effect: Reads, Secondary: Yes, Leads: Catalog,
	},
	{
		Name: "SetTableACL", Built: true, On: Entities, Verbs: PUT, Comp: "acl", Since: protocol.Version20120212,
		Leads: Catalog, Body: body(XML, xmlMax),
	},
	{
		Name: "QueryEntities", Built: true, On: Entities, Verbs: GET,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "o", Account: "r", Service: "r"},
	},
	{
		Name: "InsertEntity", Built: true, On: Entities, Verbs: POST, Leads: OfService,
		SAS: SAS{Type: "o", Account: "a", Service: "a"}, Body: body(JSON, tableBodyMax),
	},
	{
		Name: "QueryEntity", Built: true, On: Entity, Verbs: GET, Effect: Reads, Secondary: Yes, Leads: OfService,
		SAS: SAS{Type: "o", Account: "r", Service: "r"}, Takes: IfNoneMatch,
	},
	{
		Name: "UpdateEntity", Built: true, On: Entity, Verbs: PUT, Leads: OfService,
		SAS: SAS{Type: "o", Account: "u", Service: "u", Upsert: "a"}, Body: body(JSON, tableBodyMax), Takes: IfMatch,
	},
	{
		Name: "MergeEntity", Built: true, On: Entity, Verbs: MERGE | PATCH, Leads: OfService,
		SAS: SAS{Type: "o", Account: "u", Service: "u", Upsert: "a"}, Body: body(JSON, tableBodyMax), Takes: IfMatch,
	},
	{
		Name: "DeleteEntity", Built: true, On: Entity, Verbs: DELETE, Leads: OfService,
		SAS: SAS{Type: "o", Account: "d", Service: "d"}, Takes: IfMatch,
	},
	// Its requests are authorized one by one. A batch with one query is served through
	// -secondary: the service refuses the others there, once it has read them.
	{
		Name: "EntityGroupTransaction", Built: true, On: Batch, Verbs: POST, Since: protocol.Version20090414,
		Effect: ByContent, Secondary: Yes, Leads: OfService, Body: body(Multipart, tableBodyMax), Takes: Integrity,
	},
})
