package cursor

import (
	"antipode/geo"
	"antipode/stamp/change"
)

// EveryAccount asks for the streams of all accounts.
const EveryAccount geo.Account = ""

// Progress is how far a range has applied the streams of one source range: a copy, which
// nodes send each other. Streams are in no order.
type Progress struct {
	Source geo.SourceRange
	// Closed is the greatest closed time committed, zero before the first.
	Closed  geo.Timestamp
	Streams []StreamProgress
}

// StreamProgress is how far one stream is.
type StreamProgress struct {
	Stream  geo.Stream
	Applied geo.Head
	// Behind is the closed head that the stream has not reached, zero at its head.
	Behind geo.Seq `json:",omitempty"`
	// Sync is the greatest closed time whose head is applied, while Behind is not zero.
	Sync geo.Timestamp `json:",omitempty"`
}

// ProgressOf returns how far a stream with this cursor is.
func ProgressOf(s geo.Stream, c *change.Cursor) StreamProgress {
	out := StreamProgress{Stream: s, Applied: c.Applied}
	if n := len(c.Pairs); n > 0 {
		out.Behind, out.Sync = c.Pairs[n-1].Head, c.Sync
	}
	return out
}

// Applied returns the last record applied of a stream, zero before the first.
func (p Progress) Applied(s geo.Stream) geo.Head {
	for _, at := range p.Streams {
		if at.Stream == s {
			return at.Applied
		}
	}
	return geo.Head{}
}

// Cursors returns the last record applied of each stream that has one.
func (p Progress) Cursors() map[geo.Stream]geo.Head {
	out := make(map[geo.Stream]geo.Head, len(p.Streams))
	for _, s := range p.Streams {
		if s.Applied.Seq > 0 {
			out[s.Stream] = s.Applied
		}
	}
	return out
}

// Behind returns the streams that are below a closed head, with that head.
func (p Progress) Behind() map[geo.Stream]geo.Seq {
	out := map[geo.Stream]geo.Seq{}
	for _, s := range p.Streams {
		if s.Behind > 0 {
			out[s.Stream] = s.Behind
		}
	}
	return out
}
