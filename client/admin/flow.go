package admin

import (
	"context"
	"net/http"
	"net/url"

	"antipode/geo"
)

// Flow is what one location knows of the streams of an account: of those that it numbers if it is the
// account's primary, of those that it receives if it is the secondary. Client.Lag is computed from the
// flows of both.
type Flow struct {
	Location geo.Location `json:"location"`
	Account  Account      `json:"account"`
	// At is when this was read, on the location's clock.
	At     Time        `json:"at"`
	Ranges []RangeFlow `json:"ranges"`
	// Services have the replication as the secondary computes it; empty at the primary, and where no
	// process of the secondary receives.
	Services []ServiceStatus `json:"services"`
	// Silent are the processes of the location that did not answer.
	Silent []string `json:"silent"`
}

// RangeFlow is the part of a Flow about one range.
type RangeFlow struct {
	Range   geo.RangeID `json:"range"`
	Service string      `json:"service"`
	// Source is known to the leader of the range alone: absent at the secondary, and without a leader.
	Source *SourceFlow `json:"source,omitempty"`
	// Receiver is known to the process that receives: absent at the primary, and while none does.
	Receiver *ReceiverFlow `json:"receiver,omitempty"`
}

// SourceFlow is a range of the primary location.
type SourceFlow struct {
	// Leader is the node that leads the range.
	Leader  string         `json:"leader"`
	Streams []SourceStream `json:"streams"`
}

// SourceStream is a stream that the range numbers. Numbers are 0 before the first record.
type SourceStream struct {
	Stream string   `json:"stream"`
	Lane   geo.Lane `json:"lane"`
	// Head is the last record.
	Head uint64 `json:"head"`
}

// ReceiverFlow is a source range as the secondary location has applied it.
type ReceiverFlow struct {
	// Closed is the greatest closed time that is committed, absent before the first.
	Closed  Time             `json:"closed,omitzero"`
	Streams []ReceiverStream `json:"streams"`
}

// ReceiverStream is a stream that the secondary location applies.
type ReceiverStream struct {
	Stream string   `json:"stream"`
	Lane   geo.Lane `json:"lane"`
	// Applied is the last record applied, 0 before the first.
	Applied uint64 `json:"applied"`
	// ClosedHead is the last record that a closed record names, if that is above Applied.
	ClosedHead uint64 `json:"closed_head,omitempty"`
	// SyncTime is absent before the first closed time whose head is applied.
	SyncTime Time `json:"sync_time,omitzero"`
	// Stopped says why the stream may not go on: see Fork. Absent otherwise.
	Stopped string `json:"stopped,omitempty"`
}

// Flows is the answer of GET /v1/accounts/{name}/flow: one for each location that answered.
type Flows struct {
	Flows []Flow `json:"flows"`
	// Silent are the locations that did not answer, and why.
	Silent []SilentLocation `json:"silent"`
}

// SilentLocation is a location that could not be asked.
type SilentLocation struct {
	Location geo.Location `json:"location"`
	Reason   string       `json:"reason"`
}

// Flows returns what the locations know of the streams of an account.
func (c *Client) Flows(ctx context.Context, account geo.Account) (Flows, error) {
	return fetch[Flows](ctx, c, http.MethodGet, accountPath(account)+"/flow", nil)
}

func accountPath(account geo.Account) string {
	return "/v1/accounts/" + url.PathEscape(string(account))
}
