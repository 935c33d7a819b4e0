package blobs

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/blobs"
	"antipode/services/catalog"
)

// Versions at which this service's wire changed, beyond those of package protocol.
const (
	version20170417 protocol.Version = "2017-04-17"
	version20171109 protocol.Version = "2017-11-09"
	version20200612 protocol.Version = "2020-06-12"
	version20201002 protocol.Version = "2020-10-02"
	version20210212 protocol.Version = "2021-02-12"
	version20240804 protocol.Version = "2024-08-04"
	version20250705 protocol.Version = "2025-07-05"
	version20251105 protocol.Version = "2025-11-05"
	version20260206 protocol.Version = "2026-02-06"
	version20260406 protocol.Version = "2026-04-06"
	version20260606 protocol.Version = "2026-06-06"
	version20261006 protocol.Version = "2026-10-06"
)

const (
	headerIfTags   = "X-Ms-If-Tags"
	headerTags     = "X-Ms-Tags"
	headerTier     = "X-Ms-Access-Tier"
	headerPriority = "X-Ms-Rehydrate-Priority"
)

// head is the status and the headers of an answer. What is zero is not sent, and neither is
// what the version of the request does not have.
type head struct {
	status int
	// modified is the source of ETag and Last-Modified.
	modified geo.Timestamp
	metadata []blobs.Pair

	// blob is what Get Blob and Get Blob Properties describe, modified and metadata
	// included. contentRange is the part of it that is the body; empty for all.
	blob         *blobs.Blob
	contentRange string
	// container adds what Get Container Properties has besides.
	container *catalog.Container
	// snapshot names the one that was made.
	snapshot string
	// copied is the ID of a copy that has ended well.
	copied string
	// leased is the ID of a lease, and left the seconds until its break is over.
	leased, left string
	// sku is that of the account, where it is what is described.
	sku string
	// listed is the length of the blob whose blocks are listed.
	listed string

	// md5 and crc64 are hashes of the body, of the request or of the answer.
	md5, crc64 string
	// appended is where an appended block begins, and blocks how many the blob has now.
	appended, blocks string
	// sealed: it is what the request did.
	sealed bool
	// written adds whether the request was encrypted, and deleted whether for good.
	written, deleted bool

	contentType string
	// length is the body's, or of HEAD what the body's would be. streamed: it is not known. empty: the status has no body.
	length          uint64
	streamed, empty bool
}

// writeHead begins an answer.
func (c *call) writeHead(a *head) {
	w := headers{Header: c.w.Header(), version: c.r.Version}
	switch {
	case a.blob != nil:
		w.values = make([]string, 0, 16)
		l := shownLease{}
		if c.in.snapshot == 0 {
			l = c.showLease(a.blob.Lease)
		}
		w.describe(a, c.r.HTTP.Method == http.MethodHead, c.r.Access.Replaces(), l)
		if n := len(a.blob.Tags); n > 0 && c.r.Access.Tags() {
			w.since(protocol.Version20191212, "X-Ms-Tag-Count", strconv.Itoa(n))
		}
	default:
		w.values = make([]string, 0, 6)
		w.tag(a.modified)
		wire.SetMetadata(w.Header, a.metadata)
	}
	if a.container != nil {
		w.lease(c.showLease(a.container.Lease))
		w.since(version20171109, "X-Ms-Has-Immutability-Policy", "false")
		w.since(version20171109, "X-Ms-Has-Legal-Hold", "false")
		w.since(version20171109, "X-Ms-Immutable-Storage-With-Versioning-Enabled", "false")
	}
	if a.sku != "" {
		w.set("X-Ms-Sku-Name", a.sku)
		w.set("X-Ms-Account-Kind", "StorageV2")
		w.set("X-Ms-Is-Hns-Enabled", "false")
	}
	if a.written {
		w.since(protocol.Version20151211, "X-Ms-Request-Server-Encrypted", "false")
	}
	if a.deleted {
		w.since(protocol.Version20170729, "X-Ms-Delete-Type-Permanent", "true")
	}
	w.set("X-Ms-Snapshot", a.snapshot)
	if a.copied != "" {
		w.set(headerCopyID, a.copied)
		w.set(headerCopyStatus, copySuccess)
	}
	w.set(headerLeaseID, a.leased)
	w.set("X-Ms-Lease-Time", a.left)
	w.set("X-Ms-Blob-Content-Length", a.listed)
	w.set("X-Ms-Blob-Append-Offset", a.appended)
	w.set(headerBlockCount, a.blocks)
	if a.sealed {
		w.set(headerSealed, "true")
	}
	w.set(headerContentMD5, a.md5)
	w.set(headerContentCRC64, a.crc64)
	w.set("Content-Type", a.contentType)
	if !a.streamed && !a.empty {
		w.set("Content-Length", strconv.FormatUint(a.length, 10))
	}
	c.w.WriteHeader(a.status)
}

// headers are the headers of an answer to a request of one version. Their values are in one
// array.
type headers struct {
	http.Header
	version protocol.Version
	values  []string
}

// set sends a header that has a value.
func (w *headers) set(name, value string) {
	if value == "" {
		return
	}
	w.values = append(w.values, value)
	n := len(w.values)
	w.Header[name] = w.values[n-1 : n : n]
}

// since sends a header that requests have from a version on.
func (w *headers) since(first protocol.Version, name, value string) {
	if w.version >= first {
		w.set(name, value)
	}
}

func (w *headers) tag(modified geo.Timestamp) {
	if modified != 0 {
		w.set("ETag", wire.BlobETag(modified))
		w.set("Last-Modified", wire.FormatHTTPTime(modified.Time()))
	}
}

// lease writes the headers of protocol/blob.md 17.2.
func (w *headers) lease(l shownLease) {
	w.since(protocol.Version20120212, "X-Ms-Lease-Status", l.status)
	w.since(protocol.Version20120212, "X-Ms-Lease-State", l.state)
	w.since(protocol.Version20120212, headerLeaseDuration, l.duration)
}

// describe writes the headers of protocol/blob.md 8, some of which Get Blob Properties has had
// since another version than Get Blob. shown replaces those of the blob.
func (w *headers) describe(a *head, properties bool, shown protocol.Shows, l shownLease) {
	ranges, tiers := protocol.Version20110818, version20261006
	if properties {
		ranges, tiers = protocol.Version20130815, version20170417
	}
	b := a.blob
	w.tag(b.Modified)
	wire.SetMetadata(w.Header, b.Metadata)
	w.Header["Content-Type"] = nil // Without one net/http guesses it from the payload.
	w.set("Content-Type", cmp.Or(shown.ContentType, b.Properties.ContentType))
	w.set("Content-Encoding", cmp.Or(shown.ContentEncoding, b.Properties.ContentEncoding))
	w.set("Content-Language", cmp.Or(shown.ContentLanguage, b.Properties.ContentLanguage))
	w.set("Cache-Control", cmp.Or(shown.CacheControl, b.Properties.CacheControl))
	w.since(protocol.Version20130815, "Content-Disposition", cmp.Or(shown.ContentDisposition, b.Properties.ContentDisposition))
	w.set("X-Ms-Blob-Type", blobType(b))
	if b.Appended != nil {
		w.set(headerBlockCount, strconv.FormatUint(uint64(b.Appended.Blocks), 10))
		if b.Appended.Sealed {
			w.since(protocol.Version20191212, headerSealed, "true")
		}
	}
	w.lease(l)
	w.copied(b)
	w.since(ranges, "Accept-Ranges", "bytes")
	w.since(protocol.Version20151211, "X-Ms-Server-Encrypted", "false")
	w.since(version20171109, "X-Ms-Creation-Time", wire.FormatHTTPTime(b.Created.Time()))
	w.tier(tiers, showTier(b), properties)
	if a.contentRange == "" {
		w.set(headerContentMD5, encodeMD5(b.MD5))
	} else {
		w.set("Content-Range", a.contentRange)
		w.since(protocol.Version20160531, headerBlobContentMD5, encodeMD5(b.MD5))
	}
}

// keepTag adds the tag to the error of a read whose blob has not changed.
func (c *call) keepTag(modified geo.Timestamp) {
	w := headers{Header: c.w.Header()}
	w.tag(modified)
}

// keepSize adds the size of the blob to the error of a range behind its end, where downloaders
// look for it. In lower case, since WriteError removes the canonical name, which describes a
// body that was meant to follow.
func (c *call) keepSize(size uint64) {
	c.w.Header()["content-range"] = []string{fmt.Sprintf("bytes */%d", size)}
}
