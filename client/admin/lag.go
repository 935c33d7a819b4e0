package admin

import (
	"context"

	"antipode/geo"
)

// Where the heads of a Lag come from.
const (
	// HeadsPrimary: the leader of the range at the primary was asked.
	HeadsPrimary = "primary"
	// HeadsClosed: it could not be. These are the heads that the secondary has received in closed records,
	// and there may be later ones.
	HeadsClosed = "closed"
)

// Lag is the answer of GET /v1/accounts/{name}/lag: how far the secondary of an account is. What is not
// known is absent.
type Lag struct {
	Account   geo.Account  `json:"account"`
	Primary   geo.Location `json:"primary"`
	Secondary geo.Location `json:"secondary"`
	// Partition is what was asked for, nil if no partition was.
	Partition *PartitionLane `json:"partition,omitempty"`
	Services  []ServiceLag   `json:"services"`
	Streams   []StreamLag    `json:"streams"`
	// Silent are the locations that could not be asked, and why.
	Silent []SilentLocation `json:"silent"`
}

// PartitionLane is the lane that holds a partition.
type PartitionLane struct {
	Service string   `json:"service"`
	Key     string   `json:"key"`
	Lane    geo.Lane `json:"lane"`
}

// ServiceLag is how far a service is. Last Sync Time is the least sync time of the streams of the
// service and of the catalog.
type ServiceLag struct {
	ServiceStatus
	// LagRecords are the records that are not applied, of the streams of the service and of the catalog.
	// Absent if it is not known of one of them.
	LagRecords *uint64 `json:"lag_records,omitempty"`
	// AtLeast: a range of the primary could not be asked, and may have committed more since the secondary last got something of it.
	AtLeast bool `json:"at_least,omitempty"`
}

// StreamLag is how far a stream is.
type StreamLag struct {
	// Stream is account/epoch/range/lane; the range and the lane are its parts. It is empty for a lane
	// without a record.
	Stream  string      `json:"stream,omitempty"`
	Service string      `json:"service"`
	Range   geo.RangeID `json:"range"`
	Lane    geo.Lane    `json:"lane"`
	// SyncTime: every change of the stream committed at or before it is readable at the secondary.
	// LagSeconds is its age on the secondary's clock.
	SyncTime   Time     `json:"sync_time,omitzero"`
	LagSeconds *float64 `json:"lag_seconds,omitempty"`
	// Applied is the last record applied; 0 before the first. Absent if the secondary did not answer.
	Applied *uint64 `json:"applied,omitempty"`
	// Head is the last record of the stream as far as Heads knows it. LagRecords is their difference.
	Head       *uint64 `json:"head,omitempty"`
	Heads      string  `json:"heads,omitempty"`
	LagRecords *uint64 `json:"lag_records,omitempty"`
	// Stopped says why the stream may not go on: see Fork.
	Stopped string `json:"stopped,omitempty"`
}

// LagQuery selects a part of a Lag. The zero value is all of it.
type LagQuery struct {
	// Service selects one service, with the catalog's streams.
	Service string `json:"service,omitempty"`
	// Partition selects the one lane that holds it: container/blob, or table/PartitionKey. Service is
	// needed then.
	Partition string `json:"partition,omitempty"`
}

// Lag returns how far the secondary of an account is, by service and stream.
func (c *Client) Lag(ctx context.Context, account geo.Account, q LagQuery) (Lag, error) {
	return CallLag.Do(ctx, c, At{Account: account}, q)
}
