package blobs

import (
	"strings"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// Values of restype.
const (
	restypeContainer = "container"
	restypeAccount   = "account"
)

// resource is what a path names (protocol/blob.md 1.2).
type resource struct {
	// container is empty for the account, blob for a container.
	container, blob string
}

// parseResource reads the raw path after the account. It is cut at the first raw
// slash after the container, then decoded: a slash in a blob name is the same name
// raw and encoded.
func parseResource(raw, restype string) (resource, error) {
	if raw == "" || raw == "/" {
		return resource{}, nil
	}
	first, rest, cut := strings.Cut(raw[1:], "/")
	var r resource
	var ok1, ok2 bool
	r.container, ok1 = wire.UnescapePath(first)
	r.blob, ok2 = wire.UnescapePath(rest)
	if !ok1 || !ok2 || r.container == "" {
		return r, storageerr.InvalidURI
	}
	switch {
	case rest != "" || restype == restypeContainer || restype == restypeAccount:
	case cut:
		return r, storageerr.InvalidURI // A container without a blob name.
	default:
		r.container, r.blob = blobs.Root, r.container
	}
	return r, nil
}

// validate tests the names, and puts the blob's in the form it is stored in.
func (r *resource) validate() (err error) {
	if r.container != "" {
		if err := blobs.ValidateContainer(r.container); err != nil {
			return err
		}
	}
	if r.blob != "" {
		r.blob, err = blobs.ParseBlobName(r.container, r.blob)
	}
	return err
}

// directory is what stands ahead of the names of blobs in their URLs: nothing for those in the root container.
func (r *resource) directory() string {
	if r.container == blobs.Root {
		return ""
	}
	return r.container + "/"
}

// refuseReserved refuses to make a reserved container, and to change one or what is in it. Clients may delete blobs of
// $logs (protocol/service.md 6). Parts of a batch are refused by themselves.
func (c *call) refuseReserved() error {
	switch {
	case !blobs.Reserved(c.res.container), c.asked.Effect == operation.Reads, c.asked.Name == "BlobBatch":
		return nil
	case c.res.container == blobs.Logs && c.asked.Name == "DeleteBlob":
		return nil
	}
	return storageerr.ReservedContainer
}

// Lookup finds the operation that a request asks for (protocol/blob.md 4). The calls of
// the service itself are package accounts'.
func Lookup(r *protocol.Request) operation.Match {
	restype := lower(r.Query.Get("restype"))
	res, err := parseResource(r.Resource, restype)
	if err != nil {
		return operation.Nothing()
	}
	m := operation.Find(r, res.kind(restype), r.HTTP.Method)
	m.Container, m.Blob = res.container, res.blob
	if m.Fault == operation.BadComp && m.Resource == operation.BlobAccount && restype == restypeContainer {
		m.Fault = operation.BadRestype // There only a batch may say it: nothing is wrong with the comp.
	}
	return m
}

// kind is what the resource is in the table of operations. Information of the account is
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

func lower(s string) string { return strings.ToLower(s) }
