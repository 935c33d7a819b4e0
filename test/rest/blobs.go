package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"antipode/geo"
)

// metadataPrefix begins the header of each item of metadata.
const metadataPrefix = "X-Ms-Meta-"

const headerLeaseID = "x-ms-lease-id"

// CreateContainer creates a container; an existing one is not an error here.
func (c *Client) CreateContainer(ctx context.Context, container string) error {
	a, err := c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container, Query: "restype=container"})
	return expect(a, err, "create container "+container, "ContainerAlreadyExists")
}

// BlobWrite is what a write of a blob says beside its content. The zero value
// says nothing.
type BlobWrite struct {
	// Metadata replaces all of the blob's. Names are in lower case.
	Metadata map[string]string
	// IfMatch and IfNoneMatch are the conditions, "" for none.
	IfMatch, IfNoneMatch string
	// LeaseID is that of the lease under which the blob is written, "" for none.
	LeaseID string
}

func (w BlobWrite) header() map[string]string {
	h := map[string]string{}
	for name, value := range w.Metadata {
		h[metadataPrefix+name] = value
	}
	if w.IfMatch != "" {
		h["If-Match"] = w.IfMatch
	}
	if w.IfNoneMatch != "" {
		h["If-None-Match"] = w.IfNoneMatch
	}
	if w.LeaseID != "" {
		h[headerLeaseID] = w.LeaseID
	}
	return h
}

// PutBlob writes a whole block blob, over an older one if there is one.
func (c *Client) PutBlob(ctx context.Context, container, name string, body []byte) (Answer, error) {
	return c.PutBlobWith(ctx, container, name, body, BlobWrite{})
}

// PutBlobWith is PutBlob with metadata and conditions.
func (c *Client) PutBlobWith(ctx context.Context, container, name string, body []byte, w BlobWrite) (Answer, error) {
	h := w.header()
	h["x-ms-blob-type"], h["Content-Type"] = "BlockBlob", "application/octet-stream"
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container + "/" + name, Header: h, Body: body})
}

// SetMetadata replaces the metadata of a blob and leaves its content.
func (c *Client) SetMetadata(ctx context.Context, container, name string, w BlobWrite) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{
		Method: http.MethodPut, Path: "/" + container + "/" + name, Query: "comp=metadata", Header: w.header(),
	})
}

// GetBlob reads a whole blob.
func (c *Client) GetBlob(ctx context.Context, container, name string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodGet, Path: "/" + container + "/" + name})
}

// DeleteBlob deletes a blob.
func (c *Client) DeleteBlob(ctx context.Context, container, name string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodDelete, Path: "/" + container + "/" + name})
}

// Metadata returns the metadata in the headers of an answer, names in lower case.
func (a Answer) Metadata() map[string]string {
	out := map[string]string{}
	for name, values := range a.Header {
		if rest, found := strings.CutPrefix(name, metadataPrefix); found {
			out[strings.ToLower(rest)] = values[0]
		}
	}
	return out
}

// parseBlobETag reads "0x8D…", ticks of 100 ns since the year 1.
func parseBlobETag(tag string) (geo.Timestamp, bool) {
	hex, found := strings.CutPrefix(strings.Trim(tag, `"`), "0x")
	if !found {
		return 0, false
	}
	ticks, err := strconv.ParseUint(hex, 16, 64)
	unix := geo.Timestamp(0).Ticks()
	if err != nil || ticks < unix {
		return 0, false
	}
	return geo.Timestamp(ticks - unix), true
}
