package blobs

import (
	"net/url"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/lease"
)

// sentElements appends the parameters of a listing that the request sent, empty ones too.
func (c *call) sentElements(b []byte, elements ...string) []byte {
	for _, name := range elements {
		if value, sent := c.r.Query.Lookup(lower(name)); sent {
			b = wire.AppendElement(b, name, value)
		}
	}
	return b
}

// nameElement appends a blob's name. Since 2021-02-12 one that XML cannot carry is
// percent-encoded and marked as such (protocol/blob.md 7.6); older clients get U+FFFD for what is
// forbidden.
func nameElement(b []byte, name string, v protocol.Version) []byte {
	if v < version20210212 || !strings.ContainsAny(name, "\ufffe\uffff") {
		return wire.AppendElement(b, "Name", name)
	}
	b = append(b, `<Name Encoded="true">`...)
	b = append(b, strings.ReplaceAll(url.QueryEscape(name), "+", "%20")...)
	return append(b, "</Name>"...)
}

// containerElement appends one container of List Containers (protocol/blob.md S1).
func (c *call) containerElement(b []byte, container *catalog.Container, metadata bool) []byte {
	v := c.r.Version
	b = append(b, "<Container>"...)
	b = wire.AppendElement(b, "Name", container.Name)
	if v < protocol.Version20130815 {
		b = wire.AppendElement(b, "Url", c.r.Base+container.Name)
	}
	b = append(b, "<Properties>"...)
	b = wire.AppendTimeElement(b, "Last-Modified", container.Modified.Time())
	b = wire.AppendElement(b, "Etag", wire.BlobETag(container.Modified))
	b = c.leaseElements(b, container.Lease)
	if v >= version20171109 {
		b = wire.AppendElement(b, "HasImmutabilityPolicy", "false")
		b = wire.AppendElement(b, "HasLegalHold", "false")
		b = wire.AppendElement(b, "ImmutableStorageWithVersioningEnabled", "false")
	}
	b = append(b, "</Properties>"...)
	if metadata {
		b = wire.AppendMetadata(b, container.Metadata)
	}
	return append(b, "</Container>"...)
}

// itemElement appends one entry of List Blobs (protocol/blob.md 7.3 to 7.5).
func (c *call) itemElement(b []byte, item *blobs.Item, asked *blobsAsked) []byte {
	if item.IsPrefix {
		b = append(b, "<BlobPrefix>"...)
		b = nameElement(b, item.Name, c.r.Version)
		return append(b, "</BlobPrefix>"...)
	}
	b = append(b, "<Blob>"...)
	b = nameElement(b, item.Name, c.r.Version)
	snapshot := snapshotText(item.Snapshot)
	if snapshot != "" {
		b = wire.AppendElement(b, "Snapshot", snapshot)
	}
	if c.r.Version < protocol.Version20130815 {
		path := url.URL{Path: item.Name}
		text := c.r.Base + c.res.directory() + path.EscapedPath()
		if snapshot != "" {
			text += "?snapshot=" + url.QueryEscape(snapshot)
		}
		b = wire.AppendElement(b, "Url", text)
	}
	b = append(b, "<Properties>"...)
	if item.IsUncommitted {
		b = wire.AppendElement(wire.AppendElement(b, "Content-Length", "0"), "BlobType", "BlockBlob")
		b = c.leaseElements(b, lease.Lease{})
	} else {
		b = c.propertyElements(b, &item.Blob, item.Snapshot == 0)
		if asked.copy && item.Blob.Copied != nil {
			b = copyElements(b, item.Blob.Copied)
		}
	}
	b = append(b, "</Properties>"...)
	if asked.metadata && !item.IsUncommitted {
		b = wire.AppendMetadata(b, item.Blob.Metadata)
	}
	if asked.tags && len(item.Blob.Tags) > 0 {
		b = appendTags(b, item.Blob.Tags)
	}
	return append(b, "</Blob>"...)
}

// propertyElements appends what List Blobs says of a committed blob (protocol/blob.md 7.4).
func (c *call) propertyElements(b []byte, blob *blobs.Blob, leases bool) []byte {
	v, p := c.r.Version, &blob.Properties
	if v >= version20171109 {
		b = wire.AppendTimeElement(b, "Creation-Time", blob.Created.Time())
	}
	b = wire.AppendTimeElement(b, "Last-Modified", blob.Modified.Time())
	b = wire.AppendElement(b, "Etag", strings.Trim(wire.BlobETag(blob.Modified), `"`))
	b = wire.AppendElement(b, "Content-Length", strconv.FormatUint(blob.Length, 10))
	b = wire.AppendElement(b, "Content-Type", p.ContentType)
	b = wire.AppendElement(b, "Content-Encoding", p.ContentEncoding)
	b = wire.AppendElement(b, "Content-Language", p.ContentLanguage)
	b = wire.AppendElement(b, "Content-MD5", encodeMD5(blob.MD5))
	b = wire.AppendElement(b, "Cache-Control", p.CacheControl)
	if v >= protocol.Version20130815 {
		b = wire.AppendElement(b, "Content-Disposition", p.ContentDisposition)
	}
	b = wire.AppendElement(b, "BlobType", blobType(blob))
	if a := blob.Appended; a != nil && a.Sealed && v >= protocol.Version20191212 {
		b = wire.AppendElement(b, "Sealed", "true")
	}
	b = tierElements(b, v, showTier(blob))
	if leases {
		b = c.leaseElements(b, blob.Lease)
	}
	if v >= protocol.Version20151211 {
		b = wire.AppendElement(b, "ServerEncrypted", "false")
	}
	if n := len(blob.Tags); n > 0 && v >= protocol.Version20191212 {
		b = wire.AppendElement(b, "TagCount", strconv.Itoa(n))
	}
	return b
}
