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
	"GetAccountInformation":  checked(nil, (*call).accountInformation),
	"ListContainers":         parsed((*call).parseListContainers, (*call).listContainers),
	"CreateContainer":        checked((*call).checkAccess, (*call).createContainer),
	"GetContainerProperties": checked(nil, (*call).containerProperties),
	"GetContainerMetadata":   checked(nil, (*call).containerMetadata),
	"SetContainerMetadata":   checked(nil, (*call).setContainerMetadata),
	"GetContainerACL":        checked(nil, (*call).containerACL),
	"SetContainerACL":        checked((*call).checkAccess, (*call).setContainerACL),
	"LeaseContainer":         parsed((*call).parseLease, (*call).leaseContainer),
	"DeleteContainer":        checked(nil, (*call).deleteContainer),
	"ListBlobs":              parsed((*call).parseListBlobs, (*call).listBlobs),
	"CopyBlob":               checked((*call).checkCopyBlob, (*call).copyBlob),
	"CopyBlobFromURL":        checked((*call).checkCopyFromURL, (*call).copyBlob),
	"AbortCopyBlob":          checked((*call).checkAbort, (*call).abortCopy),
	"PutBlobFromURL":         checked((*call).checkPutFromURL, (*call).putBlobFromURL),
	"PutBlockFromURL":        parsed((*call).parseBlockFromURL, (*call).putBlockFromURL),
	"AppendBlockFromURL":     checked((*call).checkBlockSource, (*call).appendBlockFromURL),
	"PutBlob":                checked((*call).checkBlobType, (*call).putBlob),
	"GetBlob":                parsed((*call).parseDownload, (*call).getBlob),
	"GetBlobProperties":      checked(nil, (*call).blobProperties),
	"BlobBatch":              checked((*call).checkSince, (*call).blobBatch),
	"DeleteBlob":             parsed((*call).parseDelete, (*call).deleteBlob),
	"SnapshotBlob":           checked(nil, (*call).snapshotBlob),
	"LeaseBlob":              parsed((*call).parseLease, (*call).leaseBlob),
	"GetBlobMetadata":        checked(nil, (*call).blobMetadata),
	"SetBlobMetadata":        checked(nil, (*call).setBlobMetadata),
	"SetBlobProperties":      checked((*call).checkNoPages, (*call).setBlobProperties),
	"GetBlobTags":            checked((*call).checkSince, (*call).getBlobTags),
	"SetBlobTags":            checked((*call).checkSince, (*call).setBlobTags),
	"SetBlobTier":            parsed((*call).parseSetTier, (*call).setBlobTier),
	"PutBlock":               parsed((*call).parseBlockID, (*call).putBlock),
	"PutBlockList":           checked(nil, (*call).putBlockList),
	"GetBlockList":           parsed((*call).parseLists, (*call).blockList),
	"AppendBlock":            checked((*call).checkSince, (*call).appendBlock),
	"AppendBlobSeal":         checked((*call).checkSince, (*call).sealBlob),
}

// parsed binds an operation: parse reads what it alone has, run resolves the names, evaluates
// and answers. The order is that of all operations.
func parsed[P any](parse func(*call) (P, error), run func(*call, P) error) func(*call) error {
	return func(c *call) error {
		if err := c.refuseUnbuilt(); err != nil {
			return err
		}
		p, err := parse(c)
		if err != nil {
			return err
		}
		if err := c.readInput(); err != nil {
			return err
		}
		return run(c, p)
	}
}

// checked is parsed for an operation that alone has nothing but values to refuse. check may be
// nil.
func checked(check, run func(*call) error) func(*call) error {
	return parsed(func(c *call) (struct{}, error) {
		if check == nil {
			return struct{}{}, nil
		}
		return struct{}{}, check(c)
	}, func(c *call, _ struct{}) error { return run(c) })
}

// checkSince refuses an operation that the version of the request does not have.
func (c *call) checkSince() error {
	if c.r.Version < c.asked.Since {
		return wire.BadParameter("comp", c.r.Query.Get("comp"), "The version of the request does not know the value.")
	}
	return nil
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
	if handle == nil {
		return storageerr.NotImplemented
	}
	if err := c.refuseReserved(); err != nil {
		return err
	}
	return handle(c)
}
