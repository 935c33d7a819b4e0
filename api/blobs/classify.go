package blobs

import (
	"antipode/api/operation"
	"antipode/api/protocol"
)

// Lookup finds the operation that a request asks for (protocol/blob.md 4). The calls of
// the service itself are package accounts'.
func Lookup(r *protocol.Request) operation.Match {
	restype := lower(r.Query.Get("restype"))
	res, err := parseResource(r.Resource, restype)
	if err != nil {
		return operation.Nothing()
	}
	return operation.Find(r, res.kind(restype), r.HTTP.Method)
}

// kind is what the resource is to the table of operations. Information of the account is
// asked for by the path of anything in it.
func (r *resource) kind(restype string) operation.Resource {
	switch {
	case r.container == "" || restype == restypeAccount:
		return operation.BlobAccount
	case r.blob == "":
		return operation.Container
	}
	return operation.Blob
}
