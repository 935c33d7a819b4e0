package admin

import (
	"context"

	"antipode/geo"
)

// Names is the answer of GET /v1/locations/{location}/names: a page of the accounts that the location knows, or of
// those that changed since a version.
type Names struct {
	Location geo.Location `json:"location"`
	// Version is what to ask with the next time: that of a list's first page. A node knows its own versions only, and
	// answers any other with all accounts.
	Version string `json:"version"`
	Names   []Name `json:"names"`
	// Next is the name after which the next page begins; absent at the end.
	Next geo.Account `json:"next,omitempty"`
}

// Name is where the names of an account lead to.
type Name struct {
	Account geo.Account  `json:"account"`
	Epoch   Epoch        `json:"epoch"`
	Primary geo.Location `json:"primary"`
	// Secondary is absent where Redundancy, as in Account, has none.
	Secondary  geo.Location `json:"secondary,omitempty"`
	Redundancy string       `json:"redundancy"`
}

// NamesQuery selects a page of names. The zero value is the first one of all.
type NamesQuery struct {
	// Since is the version of the list before.
	Since string `json:"since,omitempty"`
	// After is Next of the page before.
	After geo.Account `json:"after,omitempty"`
}

// Names returns a page of what a location knows of the names of accounts.
func (c *Client) Names(ctx context.Context, l geo.Location, q NamesQuery) (Names, error) {
	return CallNames.Do(ctx, c, At{Location: l}, q)
}
