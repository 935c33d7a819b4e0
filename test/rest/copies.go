package rest

import (
	"context"
	"net/http"
	"strings"

	"antipode/geo"
)

const headerCopySource = "x-ms-copy-source"

// CopyBlob copies a blob of the account onto a name: by Copy Blob, or by Copy Blob From URL if sync is set.
func (c *Client) CopyBlob(ctx context.Context, container, name, source string, sync bool) (Answer, error) {
	h := map[string]string{headerCopySource: c.Base[geo.Blob] + "/" + source}
	if sync {
		h["x-ms-requires-sync"] = "true"
	}
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container + "/" + name, Header: h})
}

// Copied returns which copy a blob came by, and its source as container and name. Both are "" for a blob that is no copy.
func (c *Client) Copied(a Answer) (id, source string) {
	source = a.Header.Get(headerCopySource)
	// Both endpoints show the URL that was sent to the primary's.
	if _, path, found := strings.Cut(source, "/"+string(c.Account)+"/"); found {
		source = path
	}
	return a.Header.Get("x-ms-copy-id"), source
}
