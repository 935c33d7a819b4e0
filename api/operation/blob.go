package operation

import (
	"slices"

	"antipode/api/protocol"
)

// Rows of package blob share these.
const (
	restypeContainer = "container"
	restypeAccount   = "account"

	compMetadata = "metadata"
	compACL      = "acl"
	compLease    = "lease"
	compList     = "list"
	compTags     = "tags"

	copySource = "X-Ms-Copy-Source"

	// writesBlob is what a write of a whole blob or of what describes it takes.
	writesBlob = Conditions | IfTags | LeaseNeeded
	readsBlob  = Conditions | IfTags | Lease | Snapshot
)

// Permissions that several rows have.
//
//nolint:gochecknoglobals // Tables, never written.
var (
	readBlob   = SAS{Type: "o", Account: "r", Service: "r"}
	writeBlob  = SAS{Type: "o", Account: "w", Service: "w"}
	newBlob    = SAS{Type: "o", Account: "cw", Service: "cw"}
	appendBlob = SAS{Type: "o", Account: "aw", Service: "aw"}
	// anyBatch has those of which a part of a batch needs one: who has none sends no body.
	anyBatch = SAS{Type: "sco", Account: "dwxy", Service: "dwxy"}
)

// blobRows are the operations of protocol/blob.md 4; what they take is that of 16.1.
//
//nolint:gochecknoglobals // A table, never written.
var blobRows = slices.Concat(serviceRows("Blob"), accountRows, containerRows, bareBlobRows, blockRows, blobCompRows)

//nolint:gochecknoglobals // A table, never written.
var accountRows = []Operation{
	userDelegationKey(),
	{
		Name: "ListContainers", Built: true, On: BlobAccount, Verbs: GET, Comp: compList,
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "s", Account: "l"}, Time: Download,
	},
	{
		// It is answered for the account by whatever path.
		Name: "GetAccountInformation", Built: true, On: BlobAccount, Verbs: GET | HEAD, Restype: restypeAccount, Comp: "properties",
		Since: "2018-03-28", Effect: Reads, Secondary: Yes, SAS: SAS{Any: true},
	},
	{
		// It holds deletions and changes of tiers alone. Its parts are authorized one by one.
		Name: "BlobBatch", Built: true, On: BlobAccount, Verbs: POST, Comp: "batch", Since: "2018-11-09",
		Leads: OfService, SAS: anyBatch, Time: OfBatch, Body: body(Multipart, 4<<20),
	},
	{
		// An SDK sends the account's batch as a container's.
		Name: "BlobBatch", Built: true, On: BlobAccount, Verbs: POST, Restype: restypeContainer, Comp: "batch", Since: "2018-11-09",
		Leads: OfService, SAS: anyBatch, Time: OfBatch, Body: body(Multipart, 4<<20),
	},
	{
		Name: "FindBlobsByTags", On: BlobAccount, Verbs: GET, Comp: "blobs", Since: protocol.Version20191212,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "sco", Account: "f", Service: "f"}, Time: Download,
	},
}

//nolint:gochecknoglobals // A table, never written.
var containerRows = []Operation{
	{
		Name: "CreateContainer", Built: true, On: Container, Verbs: PUT, Restype: restypeContainer,
		Leads: Catalog, SAS: SAS{Type: "c", Account: "cw"}, Takes: Metadata,
	},
	{
		Name: "GetContainerProperties", Built: true, On: Container, Verbs: GET | HEAD, Restype: restypeContainer,
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "c", Account: "r"}, Public: OfContainer, Takes: Lease,
	},
	{
		Name: "GetContainerMetadata", Built: true, On: Container, Verbs: GET | HEAD, Restype: restypeContainer, Comp: compMetadata,
		Effect: Reads, Secondary: Yes, Leads: Catalog, SAS: SAS{Type: "c", Account: "r"}, Public: OfContainer, Takes: Lease,
	},
	{
		Name: "SetContainerMetadata", Built: true, On: Container, Verbs: PUT, Restype: restypeContainer, Comp: compMetadata,
		Leads: Catalog, SAS: SAS{Type: "c", Account: "w"}, Takes: IfModifiedSince | Lease | Metadata,
	},
	{
		Name: "GetContainerACL", Built: true, On: Container, Verbs: GET | HEAD, Restype: restypeContainer, Comp: compACL,
		Effect: Reads, Secondary: Yes, Leads: Catalog, Takes: Lease,
	},
	{
		Name: "SetContainerACL", Built: true, On: Container, Verbs: PUT, Restype: restypeContainer, Comp: compACL,
		Leads: Catalog, Body: body(XML, xmlMax), Takes: IfModifiedSince | IfUnmodifiedSince | Lease,
	},
	{
		Name: "DeleteContainer", Built: true, On: Container, Verbs: DELETE, Restype: restypeContainer,
		Leads: Catalog, SAS: SAS{Type: "c", Account: "d"}, Takes: IfModifiedSince | IfUnmodifiedSince | LeaseNeeded,
	},
	{
		Name: "RestoreContainer", On: Container, Verbs: PUT, Restype: restypeContainer, Comp: "undelete", Since: protocol.Version20191212,
		Leads: Catalog, SAS: SAS{Type: "c", Account: "w"},
	},
	{
		Name: "LeaseContainer", Built: true, On: Container, Verbs: PUT, Restype: restypeContainer, Comp: compLease, Since: protocol.Version20120212,
		Leads: Catalog, SAS: SAS{Type: "c", Account: "wd"}, Takes: IfModifiedSince | IfUnmodifiedSince,
	},
	{
		Name: "ListBlobs", Built: true, On: Container, Verbs: GET, Restype: restypeContainer, Comp: compList,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "c", Account: "l", Service: "l"}, Public: OfContainer, Time: Download,
		Takes: ListsTags,
	},
	{Name: "RenameContainer", On: Container, Verbs: PUT, Restype: restypeContainer, Comp: "rename", Leads: Catalog},
	{
		Name: "BlobBatch", Built: true, On: Container, Verbs: POST, Restype: restypeContainer, Comp: "batch", Since: "2020-04-08",
		Leads: OfService, SAS: anyBatch, Time: OfBatch, Body: body(Multipart, 4<<20),
	},
	{
		Name: "FindBlobsByTags", On: Container, Verbs: GET, Restype: restypeContainer, Comp: "blobs", Since: "2021-04-10",
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "sco", Account: "f", Service: "f"}, Time: Download,
	},
}

// bareBlobRows are the operations on a blob without a comp. The forms of PUT differ by their
// headers (protocol/blob.md 4).
//
//nolint:gochecknoglobals // A table, never written.
var bareBlobRows = []Operation{
	{
		Name: "GetBlob", Built: true, On: Blob, Verbs: GET,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: readBlob, Public: OfBlob, Time: Download, Takes: readsBlob,
	},
	{
		Name: "GetBlobProperties", Built: true, On: Blob, Verbs: HEAD,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: readBlob, Public: OfBlob, Takes: readsBlob,
	},
	{
		Name: "PutBlobFromURL", Built: true, On: Blob, Verbs: PUT, Since: "2020-04-08",
		With:  []Field{{Header: copySource}, {Header: "X-Ms-Blob-Type", Value: "BlockBlob"}},
		Leads: OfService, SAS: newBlob, Time: OfCopy, Copies: []Limit{{Bytes: 5000 << 20}},
		Takes: writesBlob | Metadata | Properties | Source | AccessTier | Tags,
	},
	{
		Name: "CopyBlobFromURL", Built: true, On: Blob, Verbs: PUT, Since: "2018-03-28",
		With:  []Field{{Header: copySource}, {Header: "X-Ms-Requires-Sync", Value: "true"}},
		Leads: OfService, SAS: newBlob, Time: OfCopy, Copies: []Limit{{Bytes: 256 << 20}},
		Takes: writesBlob | Metadata | Source | AccessTier | Tags,
	},
	{
		Name: "CopyBlob", Built: true, On: Blob, Verbs: PUT, With: []Field{{Header: copySource}},
		Leads: OfService, SAS: newBlob, Time: OfCopy, Takes: writesBlob | Metadata | Source | AccessTier | Tags,
	},
	{
		Name: "PutBlob", Built: true, On: Blob, Verbs: PUT, Leads: OfService, SAS: newBlob, Time: Upload,
		Body:  Body{Kind: Stream, Limits: []Limit{{protocol.Version20191212, 5000 << 20}, {protocol.Version20160531, 256 << 20}, {Bytes: 64 << 20}}},
		Takes: writesBlob | Metadata | Properties | Integrity | AccessTier | Tags,
	},
	{
		Name: "DeleteBlob", Built: true, On: Blob, Verbs: DELETE,
		Leads: OfService, SAS: SAS{Type: "o", Account: "dxy", Service: "dxy", Current: "d"}, Takes: writesBlob | TierChange | Snapshot,
	},
}

// blockRows are the operations on the content of a blob.
//
//nolint:gochecknoglobals // A table, never written.
var blockRows = []Operation{
	{
		Name: "PutBlockFromURL", Built: true, On: Blob, Verbs: PUT, Comp: "block", With: []Field{{Header: copySource}}, Since: "2018-03-28",
		Leads: OfService, SAS: newBlob, Time: OfCopy,
		Copies: []Limit{{"2020-04-08", 4000 << 20}, {Bytes: 100 << 20}}, Takes: LeaseNeeded | Source,
	},
	{
		Name: "PutBlock", Built: true, On: Blob, Verbs: PUT, Comp: "block", Leads: OfService, SAS: newBlob, Time: Upload,
		Body:  Body{Kind: Stream, Limits: []Limit{{protocol.Version20191212, 4000 << 20}, {protocol.Version20160531, 100 << 20}, {Bytes: 4 << 20}}},
		Takes: LeaseNeeded | Integrity,
	},
	{
		// 50,000 of the longest ids in the longest elements are 6 MB.
		Name: "PutBlockList", Built: true, On: Blob, Verbs: PUT, Comp: "blocklist",
		Leads: OfService, SAS: newBlob, Time: Upload, Body: body(XML, 8<<20),
		Takes: writesBlob | Metadata | Properties | Integrity | AccessTier | Tags,
	},
	{
		Name: "GetBlockList", Built: true, On: Blob, Verbs: GET, Comp: "blocklist",
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: readBlob, Public: OfBlob, Time: Download, Takes: IfTags | Lease | Snapshot,
	},
	{
		Name: "PutPageFromURL", On: Blob, Verbs: PUT, Comp: "page", With: []Field{{Header: copySource}}, Since: "2018-11-09",
		Leads: OfService, SAS: writeBlob, Takes: writesBlob | Sequence | Source,
	},
	{
		Name: "PutPage", On: Blob, Verbs: PUT, Comp: "page", Since: protocol.Version20090919, Leads: OfService, SAS: writeBlob,
		Time: Upload, Body: body(Stream, 4<<20), Takes: writesBlob | Sequence | Integrity,
	},
	{
		Name: "GetPageRanges", On: Blob, Verbs: GET, Comp: "pagelist", Since: protocol.Version20090919,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: readBlob, Public: OfBlob, Time: Download, Takes: readsBlob,
	},
	{
		Name: "AppendBlockFromURL", Built: true, On: Blob, Verbs: PUT, Comp: "appendblock", With: []Field{{Header: copySource}}, Since: "2018-11-09",
		Leads: OfService, SAS: appendBlob, Time: OfCopy,
		Copies: []Limit{{"2022-11-02", 100 << 20}, {Bytes: 4 << 20}}, Takes: writesBlob | AppendPosition | Source,
	},
	{
		Name: "AppendBlock", Built: true, On: Blob, Verbs: PUT, Comp: "appendblock", Since: protocol.Version20150221, Leads: OfService, SAS: appendBlob,
		Time: Upload, Body: Body{Kind: Stream, Limits: []Limit{{"2022-11-02", 100 << 20}, {Bytes: 4 << 20}}},
		Takes: writesBlob | AppendPosition | Integrity,
	},
	{
		Name: "AppendBlobSeal", Built: true, On: Blob, Verbs: PUT, Comp: "seal", Since: protocol.Version20191212,
		Leads: OfService, SAS: writeBlob, Takes: Conditions | LeaseNeeded | AppendPosition,
	},
}

// blobCompRows are the other operations on a blob.
//
//nolint:gochecknoglobals // A table, never written.
var blobCompRows = []Operation{
	{
		Name: "GetBlobMetadata", Built: true, On: Blob, Verbs: GET | HEAD, Comp: compMetadata,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: readBlob, Public: OfBlob, Takes: readsBlob,
	},
	{
		Name: "SetBlobMetadata", Built: true, On: Blob, Verbs: PUT, Comp: compMetadata,
		Leads: OfService, SAS: writeBlob, Takes: writesBlob | Metadata,
	},
	{
		Name: "SetBlobProperties", Built: true, On: Blob, Verbs: PUT, Comp: "properties",
		Leads: OfService, SAS: writeBlob, Takes: writesBlob | Properties,
	},
	{
		Name: "GetBlobTags", Built: true, On: Blob, Verbs: GET, Comp: compTags, Since: protocol.Version20191212,
		Effect: Reads, Secondary: Yes, Leads: OfService, SAS: SAS{Type: "o", Account: "t", Service: "t"}, Takes: IfTags | Lease | BlobConditions | Snapshot,
	},
	{
		Name: "SetBlobTags", Built: true, On: Blob, Verbs: PUT, Comp: compTags, Since: protocol.Version20191212, Leads: OfService,
		SAS: SAS{Type: "o", Account: "t", Service: "t"}, Body: body(XML, xmlMax), Takes: IfTags | LeaseNeeded | BlobConditions | Integrity,
	},
	{
		Name: "LeaseBlob", Built: true, On: Blob, Verbs: PUT, Comp: compLease, Since: protocol.Version20090919,
		Leads: OfService, SAS: SAS{Type: "o", Account: "wd", Service: "wd"}, Takes: Conditions | IfTags,
	},
	{
		Name: "SnapshotBlob", Built: true, On: Blob, Verbs: PUT, Comp: "snapshot", Since: protocol.Version20090919,
		Leads: OfService, SAS: newBlob, Takes: Conditions | IfTags | Lease | Metadata,
	},
	{
		Name: "AbortCopyBlob", Built: true, On: Blob, Verbs: PUT, Comp: "copy", Since: protocol.Version20120212,
		With:  []Field{{Header: "X-Ms-Copy-Action", Value: "abort"}},
		Leads: OfService, SAS: writeBlob, Takes: LeaseNeeded,
	},
	{
		// The SDKs of one family name the comp.
		Name: "CopyBlob", Built: true, On: Blob, Verbs: PUT, Comp: "copy",
		Leads: OfService, SAS: newBlob, Time: OfCopy, Takes: writesBlob | Metadata | Source | AccessTier | Tags,
	},
	{
		Name: "IncrementalCopyBlob", On: Blob, Verbs: PUT, Comp: "incrementalcopy", Since: protocol.Version20160531,
		Leads: OfService, SAS: writeBlob, Takes: Conditions | IfTags,
	},
	{
		Name: "UndeleteBlob", On: Blob, Verbs: PUT, Comp: "undelete", Since: protocol.Version20170729,
		Leads: OfService, SAS: writeBlob,
	},
	{
		Name: "SetBlobTier", Built: true, On: Blob, Verbs: PUT, Comp: "tier", Since: "2017-04-17",
		Leads: OfService, SAS: writeBlob, Takes: IfTags | Lease | AccessTier | Snapshot,
	},
	{
		Name: "SetImmutabilityPolicy", On: Blob, Verbs: PUT, Comp: "immutabilitypolicies", Since: "2020-06-12",
		Leads: OfService, SAS: SAS{Type: "o", Account: "i", Service: "i"}, Takes: IfUnmodifiedSince,
	},
	{
		Name: "DeleteImmutabilityPolicy", On: Blob, Verbs: DELETE, Comp: "immutabilitypolicies", Since: "2020-06-12",
		Leads: OfService, SAS: SAS{Type: "o", Account: "i", Service: "i"},
	},
	{
		Name: "SetLegalHold", On: Blob, Verbs: PUT, Comp: "legalhold", Since: "2020-06-12",
		Leads: OfService, SAS: SAS{Type: "o", Account: "i", Service: "i"},
	},
	{
		Name: "SetBlobExpiry", On: Blob, Verbs: PUT, Comp: "expiry", Since: "2020-02-10",
		Leads: OfService, SAS: writeBlob, Takes: LeaseNeeded,
	},
	{
		// A POST that reads.
		Name: "QueryBlobContents", On: Blob, Verbs: POST, Comp: "query", Since: protocol.Version20191212, Effect: Reads, Secondary: Yes,
		Leads: OfService, SAS: readBlob, Time: Download, Body: body(XML, xmlMax), Takes: readsBlob,
	},
}
