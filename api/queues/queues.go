// Package queues is the front end of the queue service. Its range exists and is
// shipped; its calls are not built yet and say so. Which operation a request asks for is
// known, since front ends ask before they hand it on.
package queues

import (
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// Serve answers a queue call with 501 in the service's body format, and returns the name
// of its operation for metrics.
func Serve(_ http.ResponseWriter, r *protocol.Request) (name string, err error) {
	return Classify(r), storageerr.NotImplemented
}

// Classify names the operation that a request asks for (protocol/queue.md 5), or
// operation.Unknown. The calls of the service itself are package accounts'.
func Classify(r *protocol.Request) string {
	method, comp := r.HTTP.Method, strings.ToLower(r.Query.Get("comp"))
	queue, rest, _ := strings.Cut(strings.TrimPrefix(r.Resource, "/"), "/")
	messages, id, one := strings.Cut(rest, "/")
	switch {
	case queue == "":
		return named(comp == "list" && method == http.MethodGet, "ListQueues")
	case rest == "":
		return ofQueue(method, comp)
	case !strings.EqualFold(messages, "messages"):
		return operation.Unknown
	case one && id != "":
		switch method {
		case http.MethodPut:
			return "UpdateMessage"
		case http.MethodDelete:
			return "DeleteMessage"
		}
		return operation.Unknown
	}
	switch method {
	case http.MethodGet:
		if strings.EqualFold(r.Query.Get("peekonly"), "true") {
			return "PeekMessages"
		}
		return "GetMessages"
	case http.MethodPost:
		return "PutMessage"
	case http.MethodDelete:
		return "ClearMessages"
	}
	return operation.Unknown
}

// ofQueue names the operation on a queue as such.
func ofQueue(method, comp string) string {
	reads := method == http.MethodGet || method == http.MethodHead
	writes := method == http.MethodPut
	switch {
	case comp == "" && method == http.MethodDelete:
		return "DeleteQueue"
	case comp == "":
		return named(writes, "CreateQueue")
	case comp == "metadata" && reads:
		return "GetQueueMetadata"
	case comp == "metadata":
		return named(writes, "SetQueueMetadata")
	case comp == "acl" && reads:
		return "GetQueueACL"
	case comp == "acl":
		return named(writes, "SetQueueACL")
	}
	return operation.Unknown
}

// named returns name where the request fits the operation.
func named(fits bool, name string) string {
	if fits {
		return name
	}
	return operation.Unknown
}
