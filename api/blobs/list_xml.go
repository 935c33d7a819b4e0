package blobs

import (
	"net/url"
	"strconv"
	"strings"

	"antipode/api/protocol"
	"antipode/services/blobs"
	"antipode/services/catalog"
)

// xmlStart begins every XML body. The real service writes a byte order mark, which
// protocol/blob.md 2.4 says to leave out.
const xmlStart = `<?xml version="1.0" encoding="utf-8"?>`

// element appends <name>text</name>.
func element(b []byte, name, text string) []byte {
	b = append(append(append(b, '<'), name...), '>')
	b = protocol.AppendXML(b, text)
	return append(append(append(b, "</"...), name...), '>')
}

// asked appends the parameters of a listing that the request sent, empty ones too.
func (c *call) asked(b []byte, elements ...string) []byte {
	for _, name := range elements {
		if value, sent := c.r.Query.Lookup(lower(name)); sent {
			b = element(b, name, value)
		}
	}
	return b
}

// nameElement appends a blob's name. Since 2021-02-12 one that XML cannot carry is
// percent-encoded and says so (protocol/blob.md 7.6); older clients get U+FFFD for what is
// forbidden.
func nameElement(b []byte, name string, v protocol.Version) []byte {
	if v < version20210212 || !strings.ContainsAny(name, "\ufffe\uffff") {
		return element(b, "Name", name)
	}
	b = append(b, `<Name Encoded="true">`...)
	b = append(b, strings.ReplaceAll(url.QueryEscape(name), "+", "%20")...)
	return append(b, "</Name>"...)
}

// containerElement appends one container of List Containers (protocol/blob.md S1).
func (c *call) containerElement(b []byte, container *catalog.Container, metadata bool) []byte {
	v := c.r.Version
	b = append(b, "<Container>"...)
	b = element(b, "Name", container.Name)
	if v < protocol.Version20130815 {
		b = element(b, "Url", c.r.Base+container.Name)
	}
	b = append(b, "<Properties>"...)
	b = element(b, "Last-Modified", protocol.FormatHTTPTime(container.Modified.Time()))
	b = element(b, "Etag", protocol.BlobETag(container.Modified))
	b = leaseElements(b, v)
	if v >= version20171109 {
		b = element(b, "HasImmutabilityPolicy", "false")
		b = element(b, "HasLegalHold", "false")
		b = element(b, "ImmutableStorageWithVersioningEnabled", "false")
	}
	b = append(b, "</Properties>"...)
	if metadata {
		b = metadataElement(b, container.Metadata)
	}
	return append(b, "</Container>"...)
}

// itemElement appends one entry of List Blobs (protocol/blob.md 7.3 to 7.5).
func (c *call) itemElement(b []byte, item *blobs.Item, metadata bool) []byte {
	if item.IsPrefix {
		b = append(b, "<BlobPrefix>"...)
		b = nameElement(b, item.Name, c.r.Version)
		return append(b, "</BlobPrefix>"...)
	}
	b = append(b, "<Blob>"...)
	b = nameElement(b, item.Name, c.r.Version)
	if c.r.Version < protocol.Version20130815 {
		path := url.URL{Path: item.Name}
		b = element(b, "Url", c.r.Base+c.res.container+"/"+path.EscapedPath())
	}
	b = append(b, "<Properties>"...)
	if item.IsUncommitted {
		b = element(element(b, "Content-Length", "0"), "BlobType", "BlockBlob")
		b = leaseElements(b, c.r.Version)
	} else {
		b = c.propertyElements(b, &item.Blob)
	}
	b = append(b, "</Properties>"...)
	if metadata && !item.IsUncommitted {
		b = metadataElement(b, item.Blob.Metadata)
	}
	return append(b, "</Blob>"...)
}

// propertyElements appends what List Blobs says of a committed blob (protocol/blob.md 7.4).
func (c *call) propertyElements(b []byte, blob *blobs.Blob) []byte {
	v, p := c.r.Version, &blob.Properties
	if v >= version20171109 {
		b = element(b, "Creation-Time", protocol.FormatHTTPTime(blob.Created.Time()))
	}
	b = element(b, "Last-Modified", protocol.FormatHTTPTime(blob.Modified.Time()))
	b = element(b, "Etag", strings.Trim(protocol.BlobETag(blob.Modified), `"`))
	b = element(b, "Content-Length", strconv.FormatUint(blob.Length, 10))
	b = element(b, "Content-Type", p.ContentType)
	b = element(b, "Content-Encoding", p.ContentEncoding)
	b = element(b, "Content-Language", p.ContentLanguage)
	b = element(b, "Content-MD5", encodeMD5(blob.MD5))
	b = element(b, "Cache-Control", p.CacheControl)
	if v >= protocol.Version20130815 {
		b = element(b, "Content-Disposition", p.ContentDisposition)
	}
	b = element(b, "BlobType", "BlockBlob")
	if v >= version20170417 {
		tier, inferred := tierName(blob.Tier)
		b = element(b, "AccessTier", tier)
		if inferred {
			b = element(b, "AccessTierInferred", "true")
		}
	}
	b = leaseElements(b, v)
	if v >= protocol.Version20151211 {
		b = element(b, "ServerEncrypted", "false")
	}
	return b
}
