package ranges

import "antipode/geo"

// Received is what is known of the streams that a range receives: the Machine of a replica,
// or the Progress that another node told.
type Received interface {
	// Cursors returns how far the streams of a source range are applied.
	Cursors(src Source) map[geo.Stream]geo.Head
	// BehindOf returns the streams that are below a closed head, with it.
	BehindOf(src Source) map[geo.Stream]geo.Seq
	// SyncTimes returns the sync times of an account's streams; ok is false where they are
	// not known.
	SyncTimes(src Source, a geo.Account) (t SyncTimes, ok bool)
}

// Progress is a copy of what a replica has applied of one source range, for a node that
// has no replica. Of another source it knows nothing.
type Progress struct {
	Source Source
	// Closed is the closed time that is committed; zero where none is.
	Closed  geo.Timestamp
	Streams []StreamProgress
}

// StreamProgress is how far a stream is.
type StreamProgress struct {
	Stream  geo.Stream
	Applied geo.Head
	// Behind is the closed head that the stream is below, zero where it is at its head; Sync
	// is its sync time then.
	Behind geo.Seq       `json:",omitempty"`
	Sync   geo.Timestamp `json:",omitempty"`
}

// Progress copies what this replica has applied of a source range.
func (m *Machine) Progress(src Source) Progress {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := Progress{Source: src, Closed: m.received[src]}
	for s, c := range m.cursors {
		if !src.feeds(s) {
			continue
		}
		at := StreamProgress{Stream: s, Applied: c.Applied}
		if _, behind := m.behind[s]; behind {
			at.Behind, at.Sync = c.Pairs[len(c.Pairs)-1].Head, c.Sync
		}
		p.Streams = append(p.Streams, at)
	}
	return p
}

// feeds reports whether a stream comes from the source.
func (s Source) feeds(st geo.Stream) bool {
	return st.Range == s.Range && st.Epoch.Location == s.Origin
}

// Cursors implements Received.
func (p Progress) Cursors(src Source) map[geo.Stream]geo.Head {
	out := make(map[geo.Stream]geo.Head)
	for _, s := range p.Streams {
		if src == p.Source && s.Applied.Seq > 0 {
			out[s.Stream] = s.Applied
		}
	}
	return out
}

// BehindOf implements Received.
func (p Progress) BehindOf(src Source) map[geo.Stream]geo.Seq {
	out := make(map[geo.Stream]geo.Seq)
	for _, s := range p.Streams {
		if src == p.Source && s.Behind > 0 {
			out[s.Stream] = s.Behind
		}
	}
	return out
}

// SyncTimes implements Received.
func (p Progress) SyncTimes(src Source, a geo.Account) (SyncTimes, bool) {
	if src != p.Source || p.Closed == 0 {
		return SyncTimes{}, false
	}
	out := SyncTimes{Closed: p.Closed, Least: p.Closed}
	for _, s := range p.Streams {
		if s.Behind > 0 && s.Stream.Account == a {
			out.add(s.Sync)
		}
	}
	return out, true
}
