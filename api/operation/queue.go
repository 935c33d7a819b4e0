package operation

import (
	"slices"

	"antipode/api/protocol"
)

// messageBodyMax is the longest body of a message, in bytes: its text has 64 KiB at most, and up to six times as
// much where all of it is escaped.
const messageBodyMax = 512 << 10

// queueRows are the operations of protocol/queue.md 5.
//
//nolint:gochecknoglobals // A table, never written.
var queueRows = slices.Concat(serviceRows("Queue"), []Operation{
	userDelegationKey(),
	{
		Name: "ListQueues", Built: true, On: QueueAccount, Verbs: GET, Comp: "list",
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "s", Account: "l"},
	},
	{Name: "CreateQueue", Built: true, On: Queue, Verbs: PUT, Leads: Catalog, SAS: SAS{Type: "c", Account: "cw"}, Takes: Metadata},
	{Name: "DeleteQueue", Built: true, On: Queue, Verbs: DELETE, Leads: Catalog, SAS: SAS{Type: "c", Account: "d"}},
	{
		Name: "GetQueueMetadata", Built: true, On: Queue, Verbs: GET | HEAD, Comp: "metadata",
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "c", Account: "r", Service: "r"},
	},
	{Name: "SetQueueMetadata", Built: true, On: Queue, Verbs: PUT, Comp: "metadata", Leads: Catalog, SAS: SAS{Type: "c", Account: "w"}, Takes: Metadata},
	{
		Name: "GetQueueACL", Built: true, On: Queue, Verbs: GET | HEAD, Comp: "acl", Since: protocol.Version20120212,
		Effect: Reads, Secondary: Yes, Leads: Catalog,
	},
	{Name: "SetQueueACL", Built: true, On: Queue, Verbs: PUT, Comp: "acl", Since: protocol.Version20120212, Leads: Catalog, Body: body(XML, xmlMax)},
	{
		Name: "PutMessage", Built: true, On: Messages, Verbs: POST,
		Leads: OfService, SAS: SAS{Type: "o", Account: "a", Service: "a"}, Body: body(XML, messageBodyMax),
	},
	{
		Name: "PeekMessages", Built: true, On: Messages, Verbs: GET, With: []Field{{Query: "peekonly", Value: "true"}},
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "o", Account: "r", Service: "r"},
	},
	// Get Messages hides what it returns.
	{Name: "GetMessages", Built: true, On: Messages, Verbs: GET, Leads: OfService, SAS: SAS{Type: "o", Account: "p", Service: "p"}},
	// Some emulators take what deletes, updates and clears messages for calls of the queue (protocol/auth.md 20).
	{Name: "ClearMessages", Built: true, On: Messages, Verbs: DELETE, Leads: OfService, SAS: SAS{Type: "oc", Account: "d"}},
	{
		Name: "UpdateMessage", Built: true, On: Message, Verbs: PUT, Since: protocol.Version20110818,
		Leads: OfService, SAS: SAS{Type: "oc", Account: "u", Service: "u"}, Body: body(XML, messageBodyMax),
	},
	{Name: "DeleteMessage", Built: true, On: Message, Verbs: DELETE, Leads: OfService, SAS: SAS{Type: "oc", Account: "p", Service: "p"}},
})
