package blobs

import (
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/lease"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
)

const (
	// InlineBytesMax is the longest payload that travels in the change itself
	// (DESIGN section 2): above it chunks cost less than the log.
	InlineBytesMax = 16 << 10
	// ChunkBytesMax is the length of every chunk but the last of a blob.
	ChunkBytesMax = 1 << 20
)

// Blob is one committed state of a blob, or a snapshot of one.
type Blob struct {
	// Modified is the commit time of the write, which ETag and Last-Modified show.
	Modified geo.Timestamp
	// Created is x-ms-creation-time: the commit time of the Put that made this content. An
	// overwrite sets a new one.
	Created geo.Timestamp
	// Length of the payload, in bytes.
	Length uint64
	// MD5 is the Content-MD5 on record, nil for none: that of the payload, or whatever a
	// client stored in its place, of any length (protocol/blob.md 18.3).
	MD5        []byte
	Tier       Tier
	Properties Properties
	// Metadata in the order it is answered. Names are distinct.
	Metadata []Pair
	// What follows can change and leave Modified.

	// Lease is that of the blob; a snapshot has none.
	Lease lease.Lease
	// Tiering is the last Set Blob Tier, and what it began.
	Tiering Tiering
	// Tags are at most TagsMax, in the order of their names, which are distinct.
	Tags []Pair
	// Snapshots of the blob; a snapshot has none.
	Snapshots Snapshots
	// Copied is the copy that the content came by, until the content or what describes it is written; nil for none.
	Copied *Copied

	// Inline is the payload where Chunks is empty and List and Appended are nil. Else it is in the chunks, in the blocks of
	// the list, in order, or in those that were appended. Appended makes it an append blob, all else is a block blob.
	Inline   []byte
	Chunks   []extent.Ref
	List     *BlockList
	Appended *Appended
}

// Snapshots are those of a blob. They are rows of its partition under First, so that all of them end by one change of the
// blob's row, whatever their number.
type Snapshots struct {
	// First is the commit time of the first of them, which may be deleted since, and Last that of the last one made.
	First, Last geo.Timestamp
	// Count of those that are there; First and Last are zero if it is.
	Count uint64
}

// Tiering is what is kept of tiers besides the tier.
type Tiering struct {
	// Changed is the commit time of the last Set Blob Tier, or the end of the rehydration that it began; zero if there was none.
	Changed geo.Timestamp
	// To is the tier that an archived blob gets at the time Until of the clock; TierDefault for none. High is its priority.
	To    Tier
	High  bool
	Until geo.Timestamp
}

// TagsMax is how many tags a blob may have (protocol/blob.md 9.4).
const TagsMax = 10

// Appended says which rows of the blob's partition hold what was appended.
type Appended struct {
	// Session is the commit time of the Put Blob. The rows of no other blob have it.
	Session geo.Timestamp
	// Blocks is their number, at most CommittedMax.
	Blocks uint32
	// Sealed: nothing can be appended any more.
	Sealed bool
}

// BlockList names the rows of the blob's partition that hold its committed block list, so that
// neither a reader nor a change has to hold the whole list.
type BlockList struct {
	// ID is the commit time of the Put Block List; no two lists of a blob share it.
	ID geo.Timestamp
	// Segments are the payload bytes that each row of the list stands for, in order.
	Segments []uint64
}

// Tier is the access tier that a client gave a blob. The numbers are durable.
type Tier byte

// The tiers. TierDefault is the tier of a blob for which no client chose one.
const (
	TierDefault Tier = 0
	TierHot     Tier = 1
	TierCool    Tier = 2
	TierCold    Tier = 3
	TierArchive Tier = 4
)

// Properties are the content properties (protocol/blob.md 19.1): opaque, empty for none.
type Properties struct {
	ContentType        string
	ContentEncoding    string
	ContentLanguage    string
	ContentDisposition string
	CacheControl       string
}

// Pair is one name and value of metadata.
type Pair = catalog.Pair

// Name names a blob: a generation of a container, and the name in it.
type Name struct {
	Account    geo.Account
	Container  string
	Generation keys.Generation
	Blob       string
}

// Partition holds everything that is stored of the blob.
func (n Name) Partition() keys.Partition {
	return keys.Partition{
		Service: geo.Blob, Account: n.Account, Container: n.Container, Generation: n.Generation, Object: n.Blob,
	}
}

// Kinds of rows in a blob's partition: the first byte of the row key. Durable. A listing decides
// by the first row of a partition.
const (
	rowBlob     byte = 1 // the blob itself; the whole row key
	rowStaging  byte = 2 // the session of uncommitted blocks; the whole row key
	rowBlock    byte = 3 // session, block id, or of an append blob where the block ends: one block
	rowList     byte = 4 // list id, number: a part of a committed block list
	rowSnapshot byte = 5 // Snapshots.First, time: a snapshot
)

// row is the key of the blob row within its partition.
func row() []byte { return []byte{rowBlob} }

// effect writes the blob's row.
func (b *Blob) effect() (services.Effect, error) { return b.effectAt(row()) }

// effectAt is effect where the row of the blob, or of a snapshot, has a key.
func (b *Blob) effectAt(key []byte) (services.Effect, error) {
	value, err := appendRow(make([]byte, 0, headerLen+256+len(b.Inline)+len(b.Chunks)*refLen), b)
	return services.Effect{Ops: []change.Op{{Row: key, Value: value}}, Level: rowLevel(value)}, err
}

func (n Name) key() []byte { return n.keyOf([]byte{rowBlob}) }

// keyOf is the key of a row of the blob.
func (n Name) keyOf(row []byte) []byte {
	return append(n.Partition().Append(make([]byte, 0, 192)), row...)
}
