package admin

import (
	"context"

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
	// Speeds have, by service, the seconds that Last Sync Time moved on per second in the last seconds: 1 at
	// rest, above 1 while it catches up. Absent until measured.
	Speeds map[string]float64 `json:"speeds,omitempty"`
	// Link is what an operator made of this end of the link.
	Link Link `json:"link"`
	// Bus is the failure of the bus here to answer, Calls that of calls to reach the primary, Chunks that of
	// fetching payload from there; of the process that receives. Absent while there is none.
	Bus    *Trouble `json:"bus,omitempty"`
	Calls  *Trouble `json:"calls,omitempty"`
	Chunks *Trouble `json:"chunks,omitempty"`
	// Silent are the processes of the location that did not answer.
	Silent []string `json:"silent"`
}

// Trouble is something that fails now: for how long, and the last error.
type Trouble struct {
	Error   string  `json:"error"`
	Seconds float64 `json:"seconds"`
}

// RangeFlow is the part of a Flow about one range.
type RangeFlow struct {
	Range   geo.RangeID `json:"range"`
	Service string      `json:"service"`
	// Leader is the node that leads the range at the location; absent while none is known.
	Leader string `json:"leader,omitempty"`
	// Lead is known to that node alone.
	Lead *LeadFlow `json:"lead,omitempty"`
	// Source is known to the leader of the range alone: absent at the secondary, and without a leader.
	Source *SourceFlow `json:"source,omitempty"`
	// Receiver is known to the process that receives: absent at the primary, and while none does.
	Receiver *ReceiverFlow `json:"receiver,omitempty"`
}

// LeadFlow is what keeps the leader of a range from committing.
type LeadFlow struct {
	// DiskFull: its disk is nearly full, or that of a replica that it needs; it commits closed records, and nothing that takes room.
	DiskFull bool `json:"disk_full,omitempty"`
	// Refuses says why it commits nothing at all; absent if it does.
	Refuses string `json:"refuses,omitempty"`
	// Slowest is the node whose in-sync replica needs longest to take what the leader has, for SlowestSeconds.
	Slowest        string  `json:"slowest,omitempty"`
	SlowestSeconds float64 `json:"slowest_seconds,omitempty"`
}

// SourceFlow is a range of the primary location.
type SourceFlow struct {
	Streams []SourceStream `json:"streams"`
	// Frames are built and not confirmed by the bus, the oldest for OldestSeconds.
	Frames        int     `json:"frames,omitempty"`
	OldestSeconds float64 `json:"oldest_seconds,omitempty"`
	// Publish is the failure of publishing, absent while the last publish succeeded. Full: because the bus
	// holds as much as it may.
	Publish *Trouble `json:"publish,omitempty"`
	Full    bool     `json:"full,omitempty"`
}

// SourceStream is a stream that the range numbers. Numbers are 0 before the first record.
type SourceStream struct {
	Stream string   `json:"stream"`
	Lane   geo.Lane `json:"lane"`
	// Head is the last record, Published the last one in a frame, Acknowledged the last one that the
	// secondary reported as applied. Published and Acknowledged are absent if the shipper does not run.
	Head         uint64  `json:"head"`
	Published    *uint64 `json:"published,omitempty"`
	Acknowledged *uint64 `json:"acknowledged,omitempty"`
	// Held: the stream is held back until payload is at the secondary. Published counts the records then that
	// closed records name.
	Held bool `json:"held,omitempty"`
	// Stopped is why the stream may not go on, as the primary knows it; empty while it may.
	Stopped string `json:"stopped,omitempty"`
	// Ended: the account has left the epoch of the stream.
	Ended bool `json:"ended,omitempty"`
}

// ReceiverFlow is a source range as the secondary location has applied it.
type ReceiverFlow struct {
	// ContactSeconds is how long ago a message of the range came off the bus, absent before the first.
	ContactSeconds *float64 `json:"contact_seconds,omitempty"`
	// Commit is the failure of the commits of what was received. CommittingSeconds is for how long the
	// one under way has lasted.
	Commit            *Trouble `json:"commit,omitempty"`
	CommittingSeconds float64  `json:"committing_seconds,omitempty"`
	// Ahead: something waits because its time is too far ahead of the clock here (R6).
	Ahead bool `json:"ahead,omitempty"`
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
	// Waits says what was received and is not applied; absent if nothing is known to wait.
	Waits *Waits `json:"waits,omitempty"`
	// Stopped says why the stream may not go on: see Fork. Absent otherwise.
	Stopped string `json:"stopped,omitempty"`
}

// Waits is what a stream waits for at the secondary.
type Waits struct {
	// Record is the number of the record that waits, absent if only its pull is known. For is gate,
	// generation, payload, clock, gap (an earlier record) or other.
	Record  uint64  `json:"record,omitempty"`
	For     string  `json:"for,omitempty"`
	Seconds float64 `json:"seconds"`
	// Pulling: its records were requested from the primary; Error is that of the last request.
	Pulling bool   `json:"pulling,omitempty"`
	Error   string `json:"error,omitempty"`
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
	return CallFlows.Do(ctx, c, At{Account: account}, None{})
}
