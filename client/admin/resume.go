package admin

import (
	"context"

	"antipode/geo"
)

// Codes of a refused Resume.
const (
	// CodeNotStopped: the stream is not stopped at the location.
	CodeNotStopped = "StreamNotStopped"
	// CodeStopKept: it is stopped for another reason than a record that could not be decoded.
	CodeStopKept = "StopKept"
)

// StreamName names a stream: see Fork.
type StreamName struct {
	Account geo.Account `json:"account"`
	Epoch   Epoch       `json:"epoch"`
	Range   geo.RangeID `json:"range"`
	Lane    geo.Lane    `json:"lane"`
}

// String is the form of Fork.Stream.
func (s StreamName) String() string {
	return geo.Stream{Account: s.Account, Epoch: geo.Epoch(s.Epoch), Range: s.Range, Lane: s.Lane}.String()
}

// Name returns the name of a fork's stream.
func (f *Fork) Name() StreamName { return StreamName{f.Account, f.Epoch, f.Range, f.Lane} }

// Resumed is the answer to a Resume: the reason of the stop that ended.
type Resumed struct {
	Stream   string       `json:"stream"`
	Location geo.Location `json:"location"`
	Reason   string       `json:"reason"`
}

// Resume lets a stream go on that is stopped at a location because a record could not be decoded. The other
// location keeps a stop too, and is asked the same. If the record still cannot be decoded, the stream stops
// again.
func (c *Client) Resume(ctx context.Context, l geo.Location, s StreamName) (Resumed, error) {
	return CallResume.Do(ctx, c, At{Location: l}, s)
}
