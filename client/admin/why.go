package admin

import (
	"context"
	"time"

	"antipode/geo"
)

// Stages at which something holds Last Sync Time back, from the primary to the secondary.
const (
	// StageNotPublished: it is in the outbox at the primary, and not in the stream.
	StageNotPublished = "not published"
	// StageInStream: it is in the stream, and the secondary has not received it.
	StageInStream = "in the stream"
	// StageWaiting: the secondary has received it, and it waits to be applied.
	StageWaiting = "waiting to apply"
	// StageFailing: the secondary cannot commit it.
	StageFailing = "failing"
	// StageStopped: the stream may not go on: see Fork.
	StageStopped = "stopped"
	// StageLink: the locations do not reach each other, or a bus does not answer.
	StageLink = "link"
	// StageClock: nothing is known to wait; the clocks of the two locations differ.
	StageClock = "clock"
	// StageUnknown: what was read does not show it.
	StageUnknown = "unknown"
)

// Why is the answer of GET /v1/accounts/{name}/why: what holds Last Sync Time back.
type Why struct {
	Account   geo.Account  `json:"account"`
	Primary   geo.Location `json:"primary"`
	Secondary geo.Location `json:"secondary"`
	// ThresholdSeconds is the lag up to which all is well.
	ThresholdSeconds float64      `json:"threshold_seconds"`
	Services         []ServiceWhy `json:"services"`
	// Silent are the locations that could not be asked, and why.
	Silent []SilentLocation `json:"silent"`
}

// ServiceWhy is why a service is as far as it is.
type ServiceWhy struct {
	ServiceStatus
	// OK: it is live, and its lag is at most the threshold.
	OK bool `json:"ok"`
	// Causes are what holds it back, the worst first; absent if OK. More is how many further streams have one.
	Causes []Cause `json:"causes,omitempty"`
	More   int     `json:"more,omitempty"`
	// CaughtUpInSeconds is when it has caught up if Last Sync Time goes on as in the last seconds. Absent while
	// that is not measured, and while it does not catch up.
	CaughtUpInSeconds *float64 `json:"caught_up_in_seconds,omitempty"`
}

// Cause is one thing that holds Last Sync Time back.
type Cause struct {
	// Stage is one of those above. Location is where it stands.
	Stage    string       `json:"stage"`
	Location geo.Location `json:"location,omitempty"`
	// Range is absent for what holds up all ranges, Stream and Lane for what holds up a whole one. Service
	// is that of the range: it may be the catalog.
	Range   geo.RangeID `json:"range,omitempty"`
	Service string      `json:"service,omitempty"`
	Stream  string      `json:"stream,omitempty"`
	Lane    *geo.Lane   `json:"lane,omitempty"`
	// SyncTime is how far the stream or range is; absent if not known.
	SyncTime Time `json:"sync_time,omitzero"`
	// For is what StageWaiting waits for: payload, generation, gate, clock, gap or other.
	For string `json:"for,omitempty"`
	// Detail is a sentence for people; Error the last error, if one is known.
	Detail string `json:"detail"`
	Error  string `json:"error,omitempty"`
	// Seconds is for how long it has been so; absent if not known.
	Seconds *float64 `json:"seconds,omitempty"`
}

// WhyQuery is the question of GET /v1/accounts/{account}/why.
type WhyQuery struct {
	// ThresholdSeconds is the lag up to which all is well: above 0, ThresholdMax at most. Absent means the server's default.
	ThresholdSeconds *QuerySeconds `json:"threshold,omitempty"`
}

// ThresholdMax bounds a threshold.
const ThresholdMax = 1e6 * time.Second

// Why returns what holds the Last Sync Time of an account's services back. Zero as threshold means the
// server's default.
func (c *Client) Why(ctx context.Context, account geo.Account, threshold time.Duration) (Why, error) {
	var q WhyQuery
	if threshold > 0 {
		q.ThresholdSeconds = new(QuerySeconds(threshold.Seconds()))
	}
	return CallWhy.Do(ctx, c, At{Account: account}, q)
}
