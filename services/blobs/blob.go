package blobs

import (
	"antipode/geo"
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

// Blob is one committed state of a block blob.
type Blob struct {
	// Modified is the commit time of the write, which ETag and Last-Modified show.
	Modified geo.Timestamp
	// Created is x-ms-creation-time: the commit time of the Put that made this
	// content. An overwrite begins anew.
	Created geo.Timestamp
	// Length of the payload, in bytes.
	Length uint64
	// MD5 of the payload, nil where there is none.
	MD5        *[16]byte
	Tier       Tier
	Properties Properties
	// Metadata in the order it is answered. Names are distinct.
	Metadata []Pair
	// Inline is the payload where Chunks is empty. Else Chunks are, in order.
	Inline []byte
	Chunks []extent.Ref
}

// Tier is the access tier that a client gave a blob. The numbers are durable.
type Tier byte

// The tiers. TierDefault is a blob for which nobody chose one.
const (
	TierDefault Tier = 0
	TierHot     Tier = 1
	TierCool    Tier = 2
	TierCold    Tier = 3
)

// Properties are the content properties (spec/blob.md 19.1): opaque, empty for none.
type Properties struct {
	ContentType        string
	ContentEncoding    string
	ContentLanguage    string
	ContentDisposition string
	CacheControl       string
}

// Pair is one name and value of metadata.
type Pair struct{ Name, Value string }

// Name names a blob: a generation of a container, and the name in it.
type Name struct {
	Account    geo.Account
	Container  string
	Generation keys.Generation
	Blob       string
}

// Partition is everything that is stored of the blob.
func (n Name) Partition() keys.Partition {
	return keys.Partition{
		Service: geo.Blob, Account: n.Account, Container: n.Container, Generation: n.Generation, Object: n.Blob,
	}
}

// Kinds of rows in a blob's partition: the first byte of the row key. Durable.
const rowBlob byte = 1 // the blob itself; the whole row key

// row is the key of the blob row within its partition.
func row() []byte { return []byte{rowBlob} }

func (n Name) key() []byte { return append(n.Partition().Append(make([]byte, 0, 128)), rowBlob) }
