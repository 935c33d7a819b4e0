package blobs

import "antipode/api/protocol"

// Classify names the operation that Serve would run for a request, or operation.Unknown
// where it would refuse it.
func Classify(r *protocol.Request) string {
	restype := lower(r.Query.Get("restype"))
	res, err := parseResource(r.Resource, restype)
	if err != nil {
		return operationUnknown
	}
	name, err := res.operation(r.HTTP.Method, restype, lower(r.Query.Get("comp")))
	if err != nil {
		return operationUnknown
	}
	return name
}
