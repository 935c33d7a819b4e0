package unplanned

import (
	"time"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// arrived reports whether a copy has everything that the primary had committed when its promotion began, by either clock
// (R6). What a primary that lives has committed since would never end to arrive. A time that is ahead of the clock, and has
// no wall, says nothing of when that was.
func arrived(forks []catalog.Fork, begun geo.Timestamp, now time.Time) bool {
	least, most := begun.Time().Add(geo.ClockOffMax), now.Add(geo.ClockOffMax)
	since := func(t, wall geo.Timestamp) bool {
		shown := change.Shown(t, wall).Time()
		return !shown.Before(least) && !shown.After(most)
	}
	for _, f := range forks {
		if !since(f.Closed, f.Wall) {
			return false
		}
		for _, s := range f.Streams {
			if s.Behind != 0 && !since(s.Sync, s.SyncWall) && s.Stopped == change.NotStopped {
				return false
			}
		}
	}
	return true
}
