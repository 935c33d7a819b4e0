package cursor

import "antipode/geo"

// Latest returns the greatest time that is committed here of a source range, be it of a closed record
// or of a record of one of its streams; 0 before the first. Nothing that the source commits from then
// on may be at or before it: a source that was recovered with loss asks for it (R6).
func (r *Received) Latest(src geo.SourceRange) geo.Timestamp {
	t := r.known[src].Promised()
	for _, of := range r.cursors {
		for s, c := range of {
			if s.Source() == src {
				t = max(t, c.Time)
			}
		}
	}
	return t
}
