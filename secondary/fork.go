package secondary

import (
	"maps"
	"slices"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/feature"
	"antipode/stamp/ranges"
)

// A fork is found here without a call to the source, from records and closed records alone, which the
// bus brings also while calls fail (R16). It is found in the evaluation of the group that would go on
// from it, on the state of the leader with its groups in flight: so no closed time is taken that
// covers a write which this location does not hold.

// relation is cursor.RelationOf, with the planted bugs.
func relation(k cursor.Known, at *change.Cursor, rec *change.Record, hash geo.Hash) cursor.Relation {
	switch {
	case plantedbugs.Planted(plantedbugs.DuplicateByNumber) && rec.Seq <= at.Applied.Seq:
		return cursor.Repeated
	case plantedbugs.Planted(plantedbugs.ApplyOutOfOrder) && rec.Seq > at.Applied.Seq:
		return cursor.Next // Whatever is above the cursor is applied.
	}
	return cursor.RelationOf(k, at, rec, hash)
}

// fork stages that a stream forked.
func fork(tx *ranges.Tx, st geo.Stream, here, there geo.Head) {
	tx.Stop(st, change.Stop{Reason: change.StopForked, Here: here, There: there})
}

// close takes a closed record that continues the committed one, and returns false if it does not
// (R12), or if its time is too far ahead of this leader's clock (R6). Whether it is taken or not, it
// stops the streams that it shows to have forked. A range whose gates are not compared yet takes none: it may have
// cursors of a former epoch again, which the source has forgotten, and which go with the gate (R7, R13).
func (c *apply) close(tx *ranges.Tx, closed *change.Closed) bool {
	c.b.ClosedStops = false
	if tx.Uncompared() {
		return false
	}
	tx.DropFormer(closed)
	known := tx.Known(c.b.Source)
	if known.Stale(closed) {
		return !closed.Full || closed.Incarnation < known.Incarnation || c.compare(tx, closed)
	}
	if closed.Incarnation > known.Incarnation {
		tx.TakeClosed(cursor.Recovered(c.b.Source, closed.Incarnation))
		known = tx.Known(c.b.Source)
	}
	if !c.compare(tx, closed) {
		return false
	}
	from := func() geo.Timestamp { return max(tx.ClosesFrom(), newest(tx.Cursors(c.b.Source), closed.Incarnation)) }
	if !known.Joins(closed, from) {
		return false
	}
	if c.b.ClosedAhead = tx.Ahead(closed.T); c.b.ClosedAhead > 0 {
		return false
	}
	taken := *closed
	if taken.Wall = 0; tx.Allows(feature.Walls) {
		taken.Wall = known.WallOf(closed, tx.Now())
	}
	tx.TakeClosed(&taken)
	return true
}

// newest is the greatest commit time of the records at the cursors that were numbered before an
// incarnation.
func newest(cursors map[geo.Stream]change.Cursor, before geo.Incarnation) (t geo.Timestamp) {
	for _, at := range cursors {
		if at.Incarnation < before {
			t = max(t, at.Time)
		}
	}
	return t
}

// compare stops the streams of which a closed record shows that the source lost what is applied
// here. decided is false if a full one cannot show it of every stream: it must not begin a chain.
func (c *apply) compare(tx *ranges.Tx, closed *change.Closed) (decided bool) {
	if plantedbugs.Planted(plantedbugs.DuplicateByNumber) {
		return true
	}
	decided = true
	named := make(map[geo.Stream]struct{}, len(closed.Heads))
	for _, h := range closed.Heads {
		st := closed.Stream(h)
		named[st] = struct{}{}
		decided = c.compareHead(tx, st, tx.Cursor(st), h.Head()) && decided
	}
	if !closed.Full {
		return decided
	}
	cursors := tx.Cursors(c.b.Source)
	for _, st := range slices.SortedFunc(maps.Keys(cursors), geo.Stream.Compare) {
		if _, ok := named[st]; !ok {
			decided = c.compareHead(tx, st, cursors[st], geo.Head{}) && decided
		}
	}
	return decided
}

func (c *apply) compareHead(tx *ranges.Tx, st geo.Stream, at change.Cursor, head geo.Head) (decided bool) {
	lost := cursor.Lost(c.b.Closed, head, &at)
	if !lost && !cursor.Undecided(c.b.Closed, head, &at) {
		return true
	}
	// The source may have forgotten the streams of former epochs.
	if gate := tx.Gate(st.Account); gate.Role != change.RoleSecondary || !gate.Open || gate.Epoch != st.Epoch {
		return true
	}
	if why, _ := tx.Stopped(st); why.Reason.Stands() {
		return true
	}
	if lost {
		fork(tx, st, at.Applied, head)
		c.b.ClosedStops = true
	}
	return lost
}
