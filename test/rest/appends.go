package rest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"antipode/geo"
)

// CreateAppendBlob makes an empty append blob; an existing blob is left as it is, which is 409.
func (c *Client) CreateAppendBlob(ctx context.Context, container, name string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container + "/" + name, Header: map[string]string{
		"x-ms-blob-type": "AppendBlob", "If-None-Match": "*",
	}})
}

// Append appends a block to an append blob. position is the length that the blob must have; below zero it may have any.
func (c *Client) Append(ctx context.Context, container, name string, position int64, body []byte) (Answer, error) {
	h := map[string]string{}
	if position >= 0 {
		h["x-ms-blob-condition-appendpos"] = strconv.FormatInt(position, 10)
	}
	return c.Do(ctx, geo.Blob, Request{
		Method: http.MethodPut, Path: "/" + container + "/" + name, Query: "comp=appendblock", Header: h, Body: body,
	})
}

// Appended returns where an append that was acknowledged began, and how many blocks there were with it.
func (a Answer) Appended() (offset int64, blocks int, err error) {
	at, count := a.Header.Get("x-ms-blob-append-offset"), a.Header.Get("x-ms-blob-committed-block-count")
	offset, err1 := strconv.ParseInt(at, 10, 64)
	blocks, err2 := strconv.Atoi(count)
	if err1 != nil || err2 != nil {
		return 0, 0, fmt.Errorf("rest: append at offset %q with %q blocks", at, count)
	}
	return offset, blocks, nil
}
