package admin

import (
	"context"

	"antipode/geo"
)

// Codes of a refused rebuild, besides CodeOtherAway.
const (
	// CodeSecondaryAhead: the secondary has records that the primary does not have.
	CodeSecondaryAhead = "SecondaryAhead"
	// CodeClocks: the replication of the account stands since the clocks of both locations disagree.
	CodeClocks = "ClocksDisagree"
)

// AloneQuery asks what only the copy of an account has.
type AloneQuery struct {
	Account geo.Account `json:"account"`
}

// CopyAlone is what the copy of an account has that its primary does not have, or has with another value: what a rebuild
// keeps in the lost-and-found of Location before it deletes the copy.
type CopyAlone struct {
	Account  geo.Account  `json:"account"`
	Location geo.Location `json:"location"`
	// Rows, with Bytes of keys and values, and PayloadBytes that they name.
	Rows         uint64 `json:"rows"`
	Bytes        uint64 `json:"bytes"`
	PayloadBytes uint64 `json:"payload_bytes"`
	// Streams is how many streams were compared for it: the others have nothing that the primary does not have, or had.
	Streams int `json:"streams"`
	// Newest is when the last change was committed that Location applied in one of these streams; zero for none.
	Newest Time `json:"newest,omitzero"`
	// AtLeast is set where not everything was compared, and Reason says why.
	AtLeast bool   `json:"at_least,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// CopyAlone counts what only the copy of an account at a location has. It changes nothing, and takes up to half a minute.
func (c *Client) CopyAlone(ctx context.Context, l geo.Location, q AloneQuery) (CopyAlone, error) {
	return CallCopyAlone.Do(ctx, c, At{Location: l}, q)
}
