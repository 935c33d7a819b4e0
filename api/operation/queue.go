package operation

import (
	"slices"

	"antipode/api/protocol"
)

// queueRows are the operations of protocol/queue.md 5. None is built.
//
//nolint:gochecknoglobals // A table, never written.
var queueRows = slices.Concat(serviceRows("Queue"), []Operation{
	userDelegationKey(),
	{
		Name: "ListQueues", On: QueueAccount, Verbs: GET, Comp: "list",
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "s", Account: "l"},
	},
	{Name: "CreateQueue", On: Queue, Verbs: PUT, Leads: Catalog, SAS: SAS{Type: "c", Account: "cw"}, Takes: Metadata},
	{Name: "DeleteQueue", On: Queue, Verbs: DELETE, Leads: Catalog, SAS: SAS{Type: "c", Account: "d"}},
	{
		Name: "GetQueueMetadata", On: Queue, Verbs: GET | HEAD, Comp: "metadata",
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "c", Account: "r", Service: "r"},
	},
	{Name: "SetQueueMetadata", On: Queue, Verbs: PUT, Comp: "metadata", Leads: Catalog, SAS: SAS{Type: "c", Account: "w"}, Takes: Metadata},
	{
		Name: "GetQueueACL", On: Queue, Verbs: GET | HEAD, Comp: "acl", Since: protocol.Version20120212,
		Effect: Reads, Secondary: Yes, Leads: Catalog,
	},
	{Name: "SetQueueACL", On: Queue, Verbs: PUT, Comp: "acl", Since: protocol.Version20120212, Leads: Catalog, Body: body(XML, xmlMax)},
	{
		Name: "PutMessage", On: Messages, Verbs: POST,
		Leads: OfService, SAS: SAS{Type: "o", Account: "a", Service: "a"}, Body: body(XML, xmlMax),
	},
	{
		Name: "PeekMessages", On: Messages, Verbs: GET, With: []Field{{Query: "peekonly", Value: "true"}},
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "o", Account: "r", Service: "r"},
	},
	// Get Messages hides what it returns.
	{Name: "GetMessages", On: Messages, Verbs: GET, Leads: OfService, SAS: SAS{Type: "o", Account: "p", Service: "p"}},
	{Name: "ClearMessages", On: Messages, Verbs: DELETE, Leads: OfService, SAS: SAS{Type: "o", Account: "d"}},
	{
		Name: "UpdateMessage", On: Message, Verbs: PUT, Since: protocol.Version20110818,
		Leads: OfService, SAS: SAS{Type: "o", Account: "u", Service: "u"}, Body: body(XML, xmlMax),
	},
	{Name: "DeleteMessage", On: Message, Verbs: DELETE, Leads: OfService, SAS: SAS{Type: "o", Account: "p", Service: "p"}},
})
