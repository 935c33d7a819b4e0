package tables

import (
	"net/http"

	"antipode/api/protocol"
	"antipode/services/storageerr"
)

// methodMerge is the verb of ADO.NET Data Services; PATCH means the same.
const methodMerge = "MERGE"

// verbOf is the verb of a request, or of an operation in a batch: its method, or what
// X-HTTP-Method on a POST says in its place (protocol/table.md 9.9). It counts for every
// resource: a POST that stands for another verb must never insert.
func verbOf(method string, h http.Header) (string, error) {
	if err := protocol.CheckVerb(method); err != nil {
		return "", err
	}
	values := h.Values("X-HTTP-Method")
	switch {
	case len(values) == 0:
	case method != http.MethodPost:
		return "", storageerr.XMethodNotUsingPost
	case len(values) != 1:
		return "", storageerr.XMethodIncorrectCount
	default:
		switch method = values[0]; method {
		case methodMerge, http.MethodPatch, http.MethodPut, http.MethodDelete:
		default:
			return "", storageerr.XMethodIncorrectValue
		}
	}
	if method == http.MethodPatch {
		method = methodMerge
	}
	return method, nil
}
