package rest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"antipode/geo"
)

// CreateContainer creates a container; an existing one is not an error here.
func (c *Client) CreateContainer(ctx context.Context, container string) error {
	a, err := c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container, Query: "restype=container"})
	return expect(a, err, "create container "+container, "ContainerAlreadyExists")
}

// PutBlob writes a whole block blob, over an older one if there is one.
func (c *Client) PutBlob(ctx context.Context, container, name string, body []byte) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{
		Method: http.MethodPut, Path: "/" + container + "/" + name,
		Header: map[string]string{"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"},
		Body:   body,
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
