package admin

import (
	"context"

	"antipode/geo"
)

// EventList is the answer of GET /v1/events: the newest events first, as many as the
// process keeps.
type EventList struct {
	Events []Event `json:"events"`
	// LeftOff is how many older events a caller left off, as antipodectl events does; no server does.
	LeftOff int `json:"left_off,omitempty"`
	// Silent are the locations and nodes that did not answer, whose events are missing.
	Silent []string `json:"silent,omitempty"`
}

// Event is one step in the life of a replica, a range, a node, the link, or of the replication of an account.
type Event struct {
	// Number grows by one with each event of a location since the process began.
	Number   uint64       `json:"number"`
	Time     Time         `json:"time"`
	Location geo.Location `json:"location"`
	Kind     string       `json:"kind"`
	// Node is empty where the event is about an account, or about a location whose nodes are all of one process.
	Node string `json:"node"`
	// Account and Service are absent where it is about none.
	Account geo.Account `json:"account,omitempty"`
	Service string      `json:"service,omitempty"`
	// Range it is about; 0, and absent, for a node as a whole.
	Range geo.RangeID `json:"range,omitempty"`
	// Replica is the id of the replica, where it is about one.
	Replica geo.ReplicaID `json:"replica,omitempty"`
	Reason  string        `json:"reason,omitempty"`
}

// Events returns the event log, newest first.
func (c *Client) Events(ctx context.Context) (EventList, error) {
	return CallEvents.Do(ctx, c, At{}, None{})
}
