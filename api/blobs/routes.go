package blobs

import (
	"net/http"
	"strings"

	"antipode/api/operation"
	"antipode/api/wire"
	"antipode/services/blobs"
	"antipode/services/storageerr"
)

// routes are the operations of one kind of resource: by comp, then by verb.
type routes map[string]map[string]string

// Operations that are served. Every other name in the tables answers 501.
const (
	opCreateContainer     = "CreateContainer"
	opContainerProperties = "GetContainerProperties"
	opDeleteContainer     = "DeleteContainer"
	opPutBlob             = "PutBlob"
	opGetBlob             = "GetBlob"
	opBlobProperties      = "GetBlobProperties"
	opDeleteBlob          = "DeleteBlob"

	opContainerMetadata    = "GetContainerMetadata"
	opSetContainerMetadata = "SetContainerMetadata"
	opListContainers       = "ListContainers"
	opListBlobs            = "ListBlobs"
	opPutBlock             = "PutBlock"
	opPutBlockList         = "PutBlockList"
	opBlockList            = "GetBlockList"
	opBlobMetadata         = "GetBlobMetadata"
	opSetBlobMetadata      = "SetBlobMetadata"
	opSetBlobProperties    = "SetBlobProperties"
)

// operationUnknown names what is no operation.
const operationUnknown = operation.Unknown

// Values of restype.
const (
	restypeContainer = "container"
	restypeAccount   = "account"
)

// compBatch is the comp of Blob Batch.
const compBatch = "batch"

// The operation index of protocol/blob.md 4. The service calls of the account are
// package accounts'.
//
//nolint:gochecknoglobals // Tables, never written.
var (
	accountRoutes = routes{
		"list":    {http.MethodGet: opListContainers},
		compBatch: {http.MethodPost: "BlobBatch"},
		"blobs":   {http.MethodGet: "FindBlobsByTags"},
	}
	containerRoutes = routes{
		"": {
			http.MethodPut: opCreateContainer, http.MethodGet: opContainerProperties, http.MethodHead: opContainerProperties,
			http.MethodDelete: opDeleteContainer,
		},
		"metadata": {http.MethodGet: opContainerMetadata, http.MethodHead: opContainerMetadata, http.MethodPut: opSetContainerMetadata},
		"acl":      {http.MethodGet: "GetContainerACL", http.MethodHead: "GetContainerACL", http.MethodPut: "SetContainerACL"},
		"undelete": {http.MethodPut: "RestoreContainer"},
		"lease":    {http.MethodPut: "LeaseContainer"},
		"list":     {http.MethodGet: opListBlobs},
		"rename":   {http.MethodPut: "RenameContainer"},
		compBatch:  {http.MethodPost: "BlobBatch"},
		"blobs":    {http.MethodGet: "FindBlobsByTags"},
	}
	blobRoutes = routes{
		"": {
			http.MethodGet: opGetBlob, http.MethodHead: opBlobProperties, http.MethodPut: opPutBlob, http.MethodDelete: opDeleteBlob,
		},
		"metadata":             {http.MethodGet: opBlobMetadata, http.MethodHead: opBlobMetadata, http.MethodPut: opSetBlobMetadata},
		"properties":           {http.MethodPut: opSetBlobProperties},
		"tags":                 {http.MethodGet: "GetBlobTags", http.MethodPut: "SetBlobTags"},
		"block":                {http.MethodPut: opPutBlock},
		"blocklist":            {http.MethodGet: opBlockList, http.MethodPut: opPutBlockList},
		"page":                 {http.MethodPut: "PutPage"},
		"pagelist":             {http.MethodGet: "GetPageRanges"},
		"appendblock":          {http.MethodPut: "AppendBlock"},
		"seal":                 {http.MethodPut: "AppendBlobSeal"},
		"lease":                {http.MethodPut: "LeaseBlob"},
		"snapshot":             {http.MethodPut: "SnapshotBlob"},
		"copy":                 {http.MethodPut: "CopyBlob"},
		"incrementalcopy":      {http.MethodPut: "IncrementalCopyBlob"},
		"undelete":             {http.MethodPut: "UndeleteBlob"},
		"tier":                 {http.MethodPut: "SetBlobTier"},
		"immutabilitypolicies": {http.MethodPut: "SetImmutabilityPolicy", http.MethodDelete: "DeleteImmutabilityPolicy"},
		"legalhold":            {http.MethodPut: "SetLegalHold"},
		"expiry":               {http.MethodPut: "SetBlobExpiry"},
		"query":                {http.MethodPost: "QueryBlobContents"},
	}
	informationRoutes = routes{
		"properties": {http.MethodGet: "GetAccountInformation", http.MethodHead: "GetAccountInformation"},
	}
)

// run runs an operation of the tables.
func (c *call) run(operation string) error {
	if c.res.system {
		return storageerr.NotImplemented
	}
	switch operation {
	case opCreateContainer:
		return c.createContainer()
	case opContainerProperties:
		return c.containerProperties()
	case opDeleteContainer:
		return c.deleteContainer()
	case opListContainers:
		return c.listContainers()
	case opListBlobs:
		return c.listBlobs()
	case opContainerMetadata:
		return c.containerMetadata()
	case opSetContainerMetadata:
		return c.setContainerMetadata()
	case opBlobMetadata:
		return c.blobMetadata()
	case opSetBlobMetadata:
		return c.setBlobMetadata()
	case opSetBlobProperties:
		return c.setBlobProperties()
	case opPutBlock:
		return c.putBlock()
	case opPutBlockList:
		return c.putBlockList()
	case opBlockList:
		return c.blockList()
	case opPutBlob:
		return c.putBlob()
	case opGetBlob:
		return c.getBlob()
	case opBlobProperties:
		return c.blobProperties()
	case opDeleteBlob:
		return c.deleteBlob()
	}
	return storageerr.NotImplemented
}

// resource is what a path names (protocol/blob.md 1.2).
type resource struct {
	// container is empty for the account, blob for a container.
	container, blob string
	// system says that the container is one of the protocol's own.
	system bool
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
		r.container, r.blob = "$root", r.container
	}
	r.system = blobs.SystemContainer(r.container)
	return r, nil
}

// validate tests the names, and puts the blob's in the form it is stored in.
func (r *resource) validate() (err error) {
	if r.container != "" && !r.system {
		if err := blobs.ValidateContainer(r.container); err != nil {
			return err
		}
	}
	if r.blob != "" {
		r.blob, err = blobs.ParseBlobName(r.blob)
	}
	return err
}

// operation names what a request asks of the resource; an error where there is no
// such thing.
func (r *resource) operation(method, restype, comp string) (string, error) {
	var table routes
	switch {
	case restype == restypeAccount:
		table = informationRoutes
	case r.container == "" && (restype == "" || restype == restypeContainer && comp == compBatch):
		table = accountRoutes // An SDK sends the account's batch as a container's.
	case r.container != "" && r.blob == "" && restype == restypeContainer:
		table = containerRoutes
	case r.blob != "" && restype == "":
		table = blobRoutes
	default:
		return operationUnknown, wire.BadParameter("restype", restype, "The value does not fit the resource.")
	}
	verbs, known := table[comp]
	if !known {
		return operationUnknown, wire.BadParameter("comp", comp, "The value is not one of the resource's.")
	}
	operation, fits := verbs[method]
	if !fits {
		return operationUnknown, storageerr.UnsupportedHTTPVerb
	}
	return operation, nil
}

func lower(s string) string { return strings.ToLower(s) }
