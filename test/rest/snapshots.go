package rest

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"antipode/geo"
)

// Snapshot takes a snapshot of a blob. Its id is in the answer.
func (c *Client) Snapshot(ctx context.Context, container, name string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container + "/" + name, Query: "comp=snapshot"})
}

// SnapshotID returns the id of a snapshot that was taken, and the time that it spells.
func (a Answer) SnapshotID() (id string, at geo.Timestamp, ok bool) {
	id = a.Header.Get("x-ms-snapshot")
	t, err := time.Parse(time.RFC3339Nano, id)
	return id, geo.TimestampOf(t), err == nil
}

// GetSnapshot reads a snapshot of a blob, or the blob if id is empty.
func (c *Client) GetSnapshot(ctx context.Context, container, name, id string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodGet, Path: "/" + container + "/" + name, Query: snapshotQuery(id)})
}

// DeleteSnapshot deletes one snapshot of a blob.
func (c *Client) DeleteSnapshot(ctx context.Context, container, name, id string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodDelete, Path: "/" + container + "/" + name, Query: snapshotQuery(id)})
}

// DeleteBlobAll deletes a blob with its snapshots.
func (c *Client) DeleteBlobAll(ctx context.Context, container, name string) (Answer, error) {
	return c.Do(ctx, geo.Blob, Request{
		Method: http.MethodDelete, Path: "/" + container + "/" + name, Header: map[string]string{"x-ms-delete-snapshots": "include"},
	})
}

func snapshotQuery(id string) string {
	if id == "" {
		return ""
	}
	return url.Values{"snapshot": {id}}.Encode()
}
