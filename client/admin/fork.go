package admin

import (
	"context"

	"antipode/geo"
)

// Sides of a Fork.
const (
	// SideSource is the location that numbers the stream.
	SideSource = "source"
	// SideReceiver is the location that applies it.
	SideReceiver = "receiver"
)

// Fork is a stream that may not go on, as one of its two ends keeps it durably.
type Fork struct {
	// Stream is account/epoch/range/lane; the fields below are its parts.
	Stream  string      `json:"stream"`
	Account geo.Account `json:"account"`
	Epoch   Epoch       `json:"epoch"`
	Range   geo.RangeID `json:"range"`
	Lane    geo.Lane    `json:"lane"`
	Service string      `json:"service"`
	// Location keeps this entry. Side says which end it is.
	Location geo.Location `json:"location"`
	Side     string       `json:"side"`
	// Reason is forked, lost, poison, version, behind-outbox or settling.
	Reason string `json:"reason"`
	// Here is the last record of the stream at Location, There the one at the other location as
	// far as it was known; its number is 0 if it was not.
	Here  RecordHead `json:"here"`
	There RecordHead `json:"there"`
	Since Time       `json:"since"`
	// Keep is, at the source of one that is settling, the location whose rows are kept.
	Keep geo.Location `json:"keep,omitempty"`
}

// RecordHead is a record of a stream: its number, and its hash in 16 hexadecimal digits.
type RecordHead struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
}

// Forks is the answer of GET /v1/forks.
type Forks struct {
	Forks []Fork `json:"forks"`
	// Silent says for what the list may be incomplete: a location, or a range of one, that did not
	// answer.
	Silent []string `json:"silent"`
}

// Forks lists the streams that may not go on.
func (c *Client) Forks(ctx context.Context) (Forks, error) {
	return CallForks.Do(ctx, c, At{}, None{})
}
