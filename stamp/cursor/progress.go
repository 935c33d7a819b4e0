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
	// Closed is the greatest closed time committed since the source range, or this one, was recovered
	// with loss, zero before the first.
	Closed geo.Timestamp
	// Wall is that of Closed: see change.Closed.Wall.
	Wall geo.Timestamp `json:",omitempty"`
	// Span is what the source range holds, and Descriptor the version of it; zero while not known.
	Span       geo.Span              `json:",omitzero"`
	Descriptor geo.DescriptorVersion `json:",omitempty"`
	Streams    []StreamProgress
	// Stops are the streams that may not go on. They may have no cursor.
	Stops []StreamStop `json:",omitempty"`
	// Ended are the accounts without a secondary here, with the epoch from which on; of EveryAccount. Those that became
	// primary here are among them.
	Ended map[geo.Account]geo.Epoch `json:",omitempty"`
	// Recovered means that the range that has applied them was recovered with loss, at any time.
	Recovered bool `json:",omitempty"`
}

// HasEnded reports whether a stream is of an epoch whose account has no secondary here any more: its
// records are refused (R7), and its cursor was dropped, which is no loss.
func (p Progress) HasEnded(s geo.Stream) bool {
	from, ok := p.Ended[s.Account]
	return ok && s.Epoch.Compare(from) < 0
}

// StreamStop is a stream that may not go on, and why.
type StreamStop struct {
	Stream geo.Stream
	change.Stop
}

// StreamProgress is how far one stream is.
type StreamProgress struct {
	Stream  geo.Stream
	Applied geo.Head
	// Behind is the closed head that the stream has not reached, zero at its head.
	Behind geo.Seq `json:",omitempty"`
	// Sync is the greatest closed time whose head is applied, while Behind is not zero.
	Sync geo.Timestamp `json:",omitempty"`
	// SyncWall is that of Sync: see change.Closed.Wall.
	SyncWall geo.Timestamp `json:",omitempty"`
}

// Shown is Closed as Last Sync Time shows it: see change.Shown.
func (p Progress) Shown() geo.Timestamp { return change.Shown(p.Closed, p.Wall) }

// SyncTime is the sync time of one of the streams: the greatest closed time whose head it has applied, as Last Sync Time
// shows it (R13). It is zero while there is none: before the first closed record, and while the stream has not reached the
// head in it.
func (p Progress) SyncTime(s StreamProgress) geo.Timestamp {
	if s.Behind > 0 {
		return change.Shown(s.Sync, s.SyncWall)
	}
	return p.Shown()
}

// ProgressOf returns how far a stream with this cursor is.
func ProgressOf(s geo.Stream, c *change.Cursor) StreamProgress {
	out := StreamProgress{Stream: s, Applied: c.Applied}
	if n := len(c.Pairs); n > 0 {
		out.Behind, out.Sync, out.SyncWall = c.Pairs[n-1].Head.Seq, c.Sync, c.SyncWall
	}
	return out
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

// Behind returns the streams that are below a closed head and may go on, with that head.
func (p Progress) Behind() map[geo.Stream]geo.Seq {
	out := map[geo.Stream]geo.Seq{}
	for _, s := range p.Streams {
		if s.Behind > 0 {
			out[s.Stream] = s.Behind
		}
	}
	for _, s := range p.Stops {
		delete(out, s.Stream)
	}
	return out
}
