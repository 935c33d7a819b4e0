package cursor

import (
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
)

// Last Sync Time promises: every write that was acknowledged before it is readable here. A commit time promises this
// by itself, as long as it comes from a clock. Once a clock of a source was ahead, each later time of the range is
// above what that clock showed (R6). So it is above what any clock shows, for as long as the clock was ahead: by the
// times alone there could be no Last Sync Time for decades. So where a closed time is ahead, its record also has a
// wall: what the leader's clock showed as it evaluated the group that gave T, or an earlier one of the same leader.
//
// Everything up to T being here, all that was acknowledged before the wall is:
//
//   - A write that is acknowledged was evaluated before. A write that this leader or a later one evaluates afterwards
//     is acknowledged after the wall, by true time. A write that it evaluated before has a lesser time than T (R1,
//     R6).
//   - A write that an earlier leader acknowledged, whenever the answer went out, is in the log before anything that
//     this leader evaluates. This leader has applied it by then (R1), so its time is less than T too. A write that
//     such a leader proposed, and that this one's log lacks, is never acknowledged.
//   - A restart, a backlog, a lost frame: a record without a wall, or with one of before, promises less, never more.
//
// How far the clock that showed it may be wrong is what R6 allows of any time. One that was ahead itself gave walls that are
// ahead: they count for nothing here. Which wall is kept is decided where the record is evaluated, by the clock of the
// leader here, and is in the entry: apply has no clock.

// WallOf returns the wall with which a closed record is taken, by the clock here; zero for none. It is not Stale and
// Joins. As long as the source range is not recovered with loss, what is shown never goes back: clocks of two leaders
// of the source may differ, and a new leader has no wall for what was committed before it led. A later closed time
// keeps every promise of an earlier one.
//
// A wall counts even if the clock here shows the time by now. This happens if only one location gave times that are
// ahead, which wait here until then, or if the link was cut for as long. What the source acknowledged meanwhile has
// later times.
func (k Known) WallOf(c *change.Closed, now time.Time) geo.Timestamp {
	if c.Wall == 0 && !c.T.AheadOf(now) {
		return 0 // It shows itself, as ever.
	}
	if plantedbugs.Planted(plantedbugs.WallOfReceiver) {
		return geo.TimestampOf(now)
	}
	shown := geo.Timestamp(0)
	if c.Incarnation == k.Incarnation {
		shown = change.Shown(k.Closed, k.Wall)
	}
	if shown.AheadOf(now) {
		shown = 0 // Nobody was shown it since the clock is right.
	}
	return max(shown, c.Wall)
}
