package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"antipode/geo"
)

// Codes of a refused Resolve, besides CodeNotStopped, CodeStopKept, CodeAskPrimary, CodeNoSecondary and CodeBusy.
const (
	// CodeKeepPrimary: the location to keep is not the account's primary.
	CodeKeepPrimary = "KeepPrimary"
	// CodeOtherAway: the other location does not answer, and nothing was changed.
	CodeOtherAway = "OtherLocationAway"
)

// ResolveFork asks to settle the fork of a stream. Keep is the account's primary: of the rows that differ its side is kept.
type ResolveFork struct {
	StreamName
	Keep geo.Location `json:"keep"`
}

// ForkResolved is the answer: the settlement has begun.
type ForkResolved struct {
	Stream  string       `json:"stream"`
	Service string       `json:"service"`
	Keep    geo.Location `json:"keep"`
	// State is the reason of the stop until both copies are equal: settling.
	State string `json:"state"`
}

// Resolve begins to settle the fork of a stream, at the location that numbers it. A call may be repeated.
func (c *Client) Resolve(ctx context.Context, l geo.Location, q ResolveFork) (ForkResolved, error) {
	path := fmt.Sprintf("/v1/locations/%s/forks/resolve", url.PathEscape(string(l)))
	return fetch[ForkResolved](ctx, c, http.MethodPost, path, q)
}
