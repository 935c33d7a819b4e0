package admin

import (
	"context"

	"antipode/geo"
)

// Codes of a refused Resolve, besides CodeNotStopped, CodeStopKept, CodeAskPrimary, CodeNoSecondary and CodeBusy.
const (
	// CodeKeepOne: the location to keep is none of the account's two.
	CodeKeepOne = "KeepOneOfBoth"
	// CodeKeepPrimary: only the primary's side can be kept, since the secondary lost what it had acknowledged.
	CodeKeepPrimary = "KeepPrimary"
	// CodeOtherAway: the other location does not answer, and nothing was changed.
	CodeOtherAway = "OtherLocationAway"
)

// ResolveFork asks to settle the fork of a stream. Keep is the account's primary or its secondary: of the rows that
// differ its side is kept, but for what clients write from then on. What the other one had is kept there, in its
// lost-and-found. The rest of a settlement for the secondary's side that is under way may be settled for the
// primary's.
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
	return CallResolve.Do(ctx, c, At{Location: l}, q)
}
