package rest

import (
	"context"
	"net/http"
	"strconv"

	"antipode/geo"
)

// Lease says what to do to the lease of a blob.
type Lease struct {
	// Action is acquire, renew, release or break.
	Action string
	// ID is proposed by acquire, and is that of the lease for renew and release.
	ID string
	// Seconds is how long an acquired lease lasts, -1 for ever, or the period of a break.
	Seconds int
}

// Lease does something to the lease of a blob.
func (c *Client) Lease(ctx context.Context, container, name string, l Lease) (Answer, error) {
	h := map[string]string{"x-ms-lease-action": l.Action}
	switch l.Action {
	case "acquire":
		h["x-ms-proposed-lease-id"], h["x-ms-lease-duration"] = l.ID, strconv.Itoa(l.Seconds)
	case "break":
		h["x-ms-lease-break-period"] = strconv.Itoa(l.Seconds)
	default:
		h[headerLeaseID] = l.ID
	}
	return c.Do(ctx, geo.Blob, Request{Method: http.MethodPut, Path: "/" + container + "/" + name, Query: "comp=lease", Header: h})
}
