package admin

import (
	"context"

	"antipode/geo"
)

// LostChangesMax is how many changes one page of the lost changes of an account has at most.
const LostChangesMax = 1000

// LostQuery asks for a page of the lost changes of an account at the location that kept them (R22).
type LostQuery struct {
	Account geo.Account `json:"account"`
	// After is Key of the last change of the page before.
	After string `json:"after,omitempty"`
}

// How surely a lost change was answered.
const (
	// AnsweredSurely: the former primary had given the answer.
	AnsweredSurely = "surely"
	// AnsweredPerhaps: the former primary may have given it; nothing says so.
	AnsweredPerhaps = "perhaps"
)

// LostChange is a change that a former primary had committed, and that the location which became the primary without it
// does not have. What its rows held is in the lost-and-found of the location.
type LostChange struct {
	// Key names the entry: hexadecimal digits.
	Key    string `json:"key"`
	Stream string `json:"stream"`
	Number uint64 `json:"number"`
	// What was changed: as a difference of a comparison names it, by the first row. Rows counts those that the change
	// set, and Deleted those that it deleted.
	Service   string `json:"service"`
	Container string `json:"container"`
	Object    string `json:"object"`
	Row       string `json:"row,omitempty"`
	Rows      int    `json:"rows"`
	Deleted   int    `json:"deleted"`
	// Bytes are those of the change, PayloadBytes those of the payload it names.
	Bytes        uint64 `json:"bytes"`
	PayloadBytes uint64 `json:"payload_bytes,omitempty"`
	Committed    Time   `json:"committed,omitzero"`
	// Answered is AnsweredSurely or AnsweredPerhaps.
	Answered string `json:"answered"`
	// Unreadable says why the entry cannot be decoded.
	Unreadable string `json:"unreadable,omitempty"`
}

// LostClaim is what a range of a former primary claims about its lost changes.
type LostClaim struct {
	Service string      `json:"service"`
	Range   geo.RangeID `json:"range"`
	// Epoch is the one that the present primary began, and Kept when the changes had been kept.
	Epoch Epoch `json:"epoch"`
	Kept  Time  `json:"kept,omitzero"`
	// Changes counts them, and Perhaps those of them that were perhaps not answered.
	Changes uint64 `json:"changes"`
	Perhaps uint64 `json:"perhaps"`
	// Complete: there are no others. Else there may be, with commit times above IncompleteSince, which is absent where no
	// bound is known, and Reason says why.
	Complete        bool   `json:"complete"`
	IncompleteSince Time   `json:"incomplete_since,omitzero"`
	Reason          string `json:"reason,omitempty"`
}

// Lost is a page of the lost changes of an account at a location. Claims are on the first page. More reports that there are
// changes behind the last one.
type Lost struct {
	Location geo.Location `json:"location"`
	Claims   []LostClaim  `json:"claims"`
	Changes  []LostChange `json:"changes"`
	More     bool         `json:"more"`
	// Awaited is on the first page of the present primary while its former primary has not reported what it alone has.
	Awaited *LostAwaited `json:"awaited,omitempty"`
}

// LostAwaited is a former primary that has not reported yet what it alone has, since the failover of a time.
type LostAwaited struct {
	Location geo.Location `json:"location"`
	Since    Time         `json:"since"`
}

// DropLost deletes what a location has kept of the lost changes of an account: LostChangesMax at most, then the claims.
type DropLost struct {
	Account geo.Account `json:"account"`
}

// LostDropped is how many entries were deleted. More reports that there are others.
type LostDropped struct {
	Dropped int  `json:"dropped"`
	More    bool `json:"more"`
}

// Lost returns a page of the lost changes of an account at a location.
func (c *Client) Lost(ctx context.Context, l geo.Location, q LostQuery) (Lost, error) {
	return CallLost.Do(ctx, c, At{Location: l}, q)
}

// DropLost deletes lost changes of an account at a location, for good. A call may be repeated.
func (c *Client) DropLost(ctx context.Context, l geo.Location, q DropLost) (LostDropped, error) {
	return CallDropLost.Do(ctx, c, At{Location: l}, q)
}
