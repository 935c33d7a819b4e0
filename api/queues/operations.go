package queues

import (
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// path is what the path of a request names (protocol/queue.md 1).
type path struct {
	// queue is empty for the account.
	queue string
	on    operation.Resource
	// message is the id of a message as it was sent.
	message string
}

// parsePath reads the raw path after the account. A slash at its end changes nothing.
func parsePath(raw string) (p path, err error) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(raw, "/"), "/")
	messages, id, _ := strings.Cut(rest, "/")
	id = strings.TrimSuffix(id, "/")
	var ok1, ok2 bool
	p.queue, ok1 = wire.UnescapePath(first)
	p.message, ok2 = wire.UnescapePath(id)
	switch {
	case !ok1 || !ok2 || first == "" && rest != "":
		return p, storageerr.InvalidURI
	case first == "":
		p.on = operation.QueueAccount
	case rest == "":
		p.on = operation.Queue
	case !strings.EqualFold(messages, "messages") || strings.Contains(id, "/"):
		return p, storageerr.InvalidURI
	case id == "":
		p.on = operation.Messages
	default:
		p.on = operation.Message
	}
	return p, nil
}

// Lookup finds the operation that a request asks for (protocol/queue.md 5). The calls of the
// service itself are package accounts'.
func Lookup(r *protocol.Request) operation.Match {
	p, err := parsePath(r.Resource)
	if err != nil {
		return operation.Nothing()
	}
	m := operation.Find(r, p.on, r.HTTP.Method)
	m.Container = p.queue
	return m
}

// handlers run the operations that are built, by their names in the table.
//
//nolint:gochecknoglobals // A table, never written.
var handlers = map[string]func(*call) error{
	"ListQueues":       (*call).listQueues,
	"CreateQueue":      (*call).createQueue,
	"DeleteQueue":      (*call).deleteQueue,
	"GetQueueMetadata": (*call).getMetadata,
	"SetQueueMetadata": (*call).setMetadata,
	"GetQueueACL":      (*call).getACL,
	"SetQueueACL":      (*call).setACL,
	"PutMessage":       (*call).putMessage,
	"PeekMessages":     (*call).peekMessages,
	"GetMessages":      (*call).getMessages,
	"ClearMessages":    (*call).clearMessages,
	"UpdateMessage":    (*call).updateMessage,
	"DeleteMessage":    (*call).deleteMessage,
}

// run runs the operation that the request asks for, in the order of checks of protocol/queue.md 10.
func (c *call) run() (err error) {
	if c.path, err = parsePath(c.r.Resource); err != nil {
		return err
	}
	if err := c.unfit(); err != nil {
		return err
	}
	if c.path.queue != "" {
		if err := catalog.ValidateName(c.path.queue); err != nil {
			return err
		}
	}
	handle := handlers[c.asked.Name]
	if handle == nil {
		return storageerr.NotImplemented
	}
	return handle(c)
}

// unfit is the error of a request that is no operation of its version. Of a queue itself nothing is read without a
// comp (protocol/queue.md 5).
func (c *call) unfit() error {
	comp := strings.ToLower(c.r.Query.Get("comp"))
	bare := c.asked.Resource == operation.Queue && comp == ""
	reads := c.r.HTTP.Method == http.MethodGet || c.r.HTTP.Method == http.MethodHead
	switch {
	case c.asked.Fault == operation.BadComp, c.asked.Fault == operation.BadVerb && bare && reads:
		return wire.BadParameter("comp", comp, "The value is not one of the resource's.")
	case c.asked.Fault == operation.BadVerb:
		return c.notAllowed(c.asked.Allow)
	case c.asked.Fault != operation.NoFault:
		return storageerr.InvalidURI
	case c.r.Version >= c.asked.Since:
		return nil
	case c.asked.Comp == "":
		return c.notAllowed(operation.DELETE) // Update Message came later.
	}
	return wire.BadParameter("comp", comp, "The version of the request does not have the value.")
}

func (c *call) notAllowed(allowed operation.Verbs) error {
	c.w.Header()["Allow"] = []string{allowed.String()}
	return storageerr.UnsupportedHTTPVerb
}
