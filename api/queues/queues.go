// Package queues is the front end of the queue service. Its range exists and is
// shipped; its calls are not built yet and answer 501. The operation that a request asks
// for is known all the same, since routing depends on it.
package queues

import (
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Serve answers a queue call with 501 in the service's body format.
func Serve(http.ResponseWriter, *protocol.Request) error { return storageerr.NotImplemented }

// Lookup finds the operation that a request asks for (protocol/queue.md 5). The calls of the
// service itself are package accounts'.
func Lookup(r *protocol.Request) operation.Match {
	queue, rest, _ := strings.Cut(strings.TrimPrefix(r.Resource, "/"), "/")
	messages, id, _ := strings.Cut(rest, "/")
	on := operation.Messages
	switch {
	case queue == "":
		on = operation.QueueAccount
	case rest == "":
		on = operation.Queue
	case !strings.EqualFold(messages, "messages"):
		return operation.Nothing()
	case id != "":
		on = operation.Message
	}
	return operation.Find(r, on, r.HTTP.Method)
}
