package blobs

import (
	"antipode/api/operation"
	"antipode/api/wire"
	"antipode/services/storageerr"
)

// handlers run the operations that are built, by their names in the table.
//
//nolint:gochecknoglobals // A table, never written.
var handlers = map[string]func(*call) error{
	"ListContainers":         (*call).listContainers,
	"CreateContainer":        (*call).createContainer,
	"GetContainerProperties": (*call).containerProperties,
	"GetContainerMetadata":   (*call).containerMetadata,
	"SetContainerMetadata":   (*call).setContainerMetadata,
	"DeleteContainer":        (*call).deleteContainer,
	"ListBlobs":              (*call).listBlobs,
	"PutBlob":                (*call).putBlob,
	"GetBlob":                (*call).getBlob,
	"GetBlobProperties":      (*call).blobProperties,
	"DeleteBlob":             (*call).deleteBlob,
	"GetBlobMetadata":        (*call).blobMetadata,
	"SetBlobMetadata":        (*call).setBlobMetadata,
	"SetBlobProperties":      (*call).setBlobProperties,
	"PutBlock":               (*call).putBlock,
	"PutBlockList":           (*call).putBlockList,
	"GetBlockList":           (*call).blockList,
}

// run runs the operation that the request asks for.
func (c *call) run() error {
	switch c.asked.Fault {
	case operation.BadRestype:
		return wire.BadParameter("restype", lower(c.r.Query.Get("restype")), "The value does not fit the resource.")
	case operation.BadComp:
		return wire.BadParameter("comp", lower(c.r.Query.Get("comp")), "The value is not one of the resource's.")
	case operation.BadVerb:
		c.w.Header()["Allow"] = []string{c.asked.Allow.String()}
		return storageerr.UnsupportedHTTPVerb
	}
	if err := c.res.validate(); err != nil {
		return err
	}
	handle := handlers[c.asked.Name]
	if c.res.system || handle == nil {
		return storageerr.NotImplemented
	}
	return handle(c)
}
