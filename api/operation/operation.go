package operation

import (
	"time"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/route"
)

// Operation is a row of the table.
type Operation struct {
	// Name is the operation's name in metrics and logs.
	Name string
	// Built reports whether the service serves it. The others answer 501.
	Built bool

	// On, Verbs, Restype and Comp select the row. Restype and Comp are in lower case.
	On      Resource
	Verbs   Verbs
	Restype string
	Comp    string
	// With is what a request must have besides. Of several rows that fit, the first is
	// taken.
	With []Field
	// Since is the first version that has the operation; empty for all.
	Since protocol.Version

	Effect    Effect
	Secondary Secondary
	// Leads is the range whose leader serves the operation; Anyone is its zero value.
	Leads Leads
	// SAS has the permissions that suffice.
	SAS SAS
	// Public is the access level of a container from which on anonymous requests may do it.
	Public Public

	Time Time
	Body Body
	// Copies bounds what is taken from the source of a copy, in bytes, the newest version first.
	Copies []Limit
	Takes  Takes
}

// Resource is the kind of thing that a path names.
type Resource uint8

// The resources. Service is the root of an account for the calls that all services have;
// the others are named by a path of one service.
const (
	NoResource Resource = iota
	Service
	BlobAccount
	Container
	Blob
	QueueAccount
	Queue
	Messages
	Message
	Tables
	Table
	Entities
	Entity
	Batch
)

// Field is a header or a query parameter that selects a row.
type Field struct {
	// Header or Query is its name.
	Header, Query string
	// Value is what it must be, without case. Empty means any value.
	Value string
}

// Effect is what serving an operation may change. The zero value is the careful one.
type Effect uint8

// The effects.
const (
	// Writes: it may change what is stored. It is sent at most once.
	Writes Effect = iota
	// Reads: serving it any number of times changes nothing.
	Reads
	// ByContent: the body decides. It is sent at most once.
	ByContent
)

// Secondary is whether an operation is served through `-secondary`. The zero value is the
// careful one.
type Secondary uint8

// The values.
const (
	No Secondary = iota
	Yes
	// Only: it is not served through the primary's name.
	Only
)

// Leads is the range whose leader serves an operation.
type Leads uint8

// The values.
const (
	// Anyone: the operation needs no range, or is not built.
	Anyone Leads = iota
	// Catalog serves accounts, containers, tables and queues as such.
	Catalog
	// OfService serves what is stored in them.
	OfService
)

// SAS has what a shared access signature must permit. An empty text permits nothing.
type SAS struct {
	// Type has the resource types of an account signature, s, c and o, of which one suffices.
	Type string
	// Account and Service are the letters of either kind of signature; one suffices.
	Account, Service string
	// Upsert has a letter that a write without If-Match needs besides.
	Upsert string
	// Current has the letters that alone suffice for what is neither a version nor soft-deleted, if they are fewer.
	Current string
	// Any: any signature for the resource suffices, whatever it permits.
	Any bool
}

// Public is an access level of a container.
type Public uint8

// The levels.
const (
	Never Public = iota
	// OfContainer: the level container permits it.
	OfContainer
	// OfBlob: the levels blob and container permit it.
	OfBlob
)

// Time is how long a request may take.
type Time uint8

// The values.
const (
	// Brief is RequestMax.
	Brief Time = iota
	// Upload grows with the length of the body, by uploadPerMiB.
	Upload
	// Download is DownloadMax. A download takes the time it takes: it is bounded by how
	// slowly the client takes it (protocol.PatientWriter). A page may also wait for memory.
	Download
	// OfBatch is batchMax.
	OfBatch
	// OfCopy is copyMax: what a copy takes depends on its source.
	OfCopy
)

const (
	// RequestMax bounds a request that names no timeout, and the timeout
	// (protocol/table.md 3, protocol/blob.md 2.5).
	RequestMax = 30 * time.Second
	// DownloadMax is the longest time of any request that is no upload.
	DownloadMax = 24 * time.Hour
	// batchMax bounds a batch of blobs (protocol/blob.md 2.5).
	batchMax = 2 * time.Minute
	// copyMax bounds an operation that copies from another blob, which is carried out within the request.
	copyMax = 10 * time.Minute
	// uploadPerMiB is the time of an upload for each MiB of its body.
	uploadPerMiB = 10 * time.Minute
)

// BodyKind is the kind of an operation's body.
type BodyKind uint8

// The kinds.
const (
	// None: the operation has no use for a body. One that is sent is read to its end and
	// dropped before the operation begins, at most UselessBodyMax of it.
	None BodyKind = iota
	// XML is a document that is held whole.
	XML
	// JSON is an entity or a table, held whole.
	JSON
	// Multipart is a batch of requests, read one after the other.
	Multipart
	// Stream is payload, taken part by part.
	Stream
)

// UselessBodyMax is the longest body of an operation that takes none, in bytes.
const UselessBodyMax = 64 << 10

// Body is what an operation takes as its body.
type Body struct {
	Kind BodyKind
	// Limits bound its length, the newest version first; the last one has no version.
	Limits []Limit
}

// Limit is how much a request of version Since or later may have, in bytes.
type Limit struct {
	Since protocol.Version
	Bytes int64
}

// Takes are the groups of headers that an operation takes.
type Takes uint32

// The groups.
const (
	IfMatch Takes = 1 << iota
	IfNoneMatch
	IfModifiedSince
	IfUnmodifiedSince
	// IfTags is x-ms-if-tags.
	IfTags
	// Lease is x-ms-lease-id. LeaseNeeded also refuses a request without it while there is
	// a lease.
	Lease
	LeaseNeeded
	Metadata
	Properties
	// Integrity is a hash of the body.
	Integrity
	// Sequence is a condition on a page blob's sequence number.
	Sequence
	// AppendPosition is a condition on the length of an append blob.
	AppendPosition
	// Source is the conditions on the source of a copy.
	Source
	// AccessTier is x-ms-access-tier. TierChange is a condition on when the tier was last set.
	AccessTier
	// Snapshot is the parameter of that name: the operation is of a snapshot as well.
	Snapshot
	TierChange
	// Tags is x-ms-tags, and ListsTags the item tags of include.
	Tags
	ListsTags
	// BlobConditions are the conditions of HTTP under names that begin with x-ms-blob-.
	BlobConditions

	// Conditions are all four of HTTP.
	Conditions = IfMatch | IfNoneMatch | IfModifiedSince | IfUnmodifiedSince
)

// leader returns the range whose leader serves the operation for an account; zero where any node does. It is that
// of the account's first key: the path alone does not name the partition.
func (o *Operation) leader(t *route.Table, s geo.Service, a geo.Account) geo.RangeID {
	switch {
	case !o.Built || o.Leads == Anyone:
		return 0
	case o.Leads == Catalog:
		return t.Catalog()
	}
	return t.Of(keys.Partition{Service: s, Account: a})
}

// BodyMax is the longest body that a request of version v may have, in bytes; zero where
// the operation takes none.
func (o *Operation) BodyMax(v protocol.Version) int64 { return limitOf(o.Body.Limits, v) }

// CopyMax is how much a request of version v may copy, in bytes; zero where nothing bounds it.
func (o *Operation) CopyMax(v protocol.Version) int64 { return limitOf(o.Copies, v) }

func limitOf(limits []Limit, v protocol.Version) int64 {
	for _, limit := range limits {
		if v >= limit.Since {
			return limit.Bytes
		}
	}
	return 0
}

// TimeMax is how long a request may take whose body has length bytes; negative if unknown.
func (o *Operation) TimeMax(length int64) time.Duration {
	switch {
	case o.Time == Download:
		return DownloadMax
	case o.Time == OfBatch:
		return batchMax
	case o.Time == OfCopy:
		return copyMax
	case o.Time == Upload && length > 0:
		// Clipped before it is a Duration: a header may announce any length.
		return max(RequestMax, time.Duration(min(length, o.BodyMax(protocol.Newest)))*(uploadPerMiB>>20))
	}
	return RequestMax
}
