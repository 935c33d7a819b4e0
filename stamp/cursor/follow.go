package cursor

import (
	"antipode/geo"
	"antipode/stamp/change"
)

// Relation is how a received record relates to the cursor of its stream.
type Relation byte

// The relations.
const (
	// Next: it is the record that follows.
	Next Relation = iota + 1
	// Repeated: it is applied already.
	Repeated
	// Missing: a record before it is missing.
	Missing
	// Forked: the source has another stream, or broke a promise that was shown here (R16).
	Forked
	// Void: it was numbered before a recovery with loss in which the source lost it. Nothing here depends
	// on it.
	Void
)

// RelationOf compares a record with the cursor of its stream. k is what is known of its source
// range; the record's incarnation is not above k.Incarnation.
//
// Numbers are given a second time after a recovery with loss, so a number alone names no record
// (R16). Along one history of a stream incarnations never go down, and the range that recovered last
// is the one that counts:
//
//   - At the cursor's number only the record with the cursor's hash is a repetition. Another of an earlier
//     incarnation than the source's proves nothing: the source may have lost that one. Closed records
//     compare the cursor.
//   - Below it there is no hash to compare. A record of a later incarnation than the cursor's, or of a later time in
//     the same one, cannot be below it in one history: the source lost what is applied here, or the record itself (see
//     doubted). Any other is taken for a repetition. If it is not, the source has replaced it since, with all that
//     follows it; then the source's record at the cursor's number has another hash, and so has every record above: the
//     chain finds it as soon as anything of the stream arrives, and a closed record's head does if nothing does.
//   - Above it, a record of an earlier incarnation than the cursor's is of a history that ended. The
//     source may have lost a record of an earlier incarnation than its own. It is taken once a closed
//     record of that incarnation names it or a later one. Until then it counts as missing, and is pulled.
//   - The record that follows must fit the hash, and must be the one that a closed record named under its number.
//     It must not be at or before a time up to which the source named all it had: nothing may follow there (R6).
//     One that does not fit the hash is a fork, unless the source lost that record: see doubted.
func RelationOf(k Known, at *change.Cursor, rec *change.Record, hash geo.Hash) Relation {
	old := rec.Incarnation < at.Incarnation
	switch next := at.Applied.Seq + 1; {
	case rec.Seq < at.Applied.Seq:
		later := rec.Incarnation == at.Incarnation && at.Time > 0 && rec.CommitTime > at.Time
		if later || rec.Incarnation > at.Incarnation {
			return doubted(k, at, rec, Repeated)
		}
		return Repeated
	case rec.Seq == at.Applied.Seq && hash == at.Applied.Hash:
		return Repeated
	case old, rec.Seq < next && rec.Incarnation < k.Incarnation:
		return Void
	case rec.Seq < next:
		return Forked
	case rec.Seq > next:
		return Missing
	case !at.Applied.Precedes(rec.Seq, rec.Prev):
		return doubted(k, at, rec, Missing)
	}
	if rec.CommitTime <= bound(k, at, rec.Incarnation) || replaced(k, at, rec.Seq, hash) {
		if rec.Incarnation < k.Incarnation {
			return Void // A late copy of what the recovery lost.
		}
		return Forked
	}
	if rec.Incarnation < k.Incarnation && !named(k, at, rec.Seq) {
		return Missing
	}
	return Next
}

// doubted returns the relation of a record that cannot be in one history with the cursor, and is not of an earlier
// incarnation. The source lost one of the two. It may have lost the record if both are of one incarnation before the
// source's: a recovery also commits what its survivor alone had held, in the place of other records that the range had
// committed. Closed records of the source's incarnation decide:
//
//   - Before the first one nothing is decided, and the stream has no sync time. meanwhile is what the record counts as.
//   - A stream that has a sync time has reached a head that one named. So the cursor's record is the source's.
//   - A stream that has not reached such a head is taken to have forked. That is wrong if the record is a late copy of
//     what the source lost, but the source's own record would look the same.
func doubted(k Known, at *change.Cursor, rec *change.Record, meanwhile Relation) Relation {
	switch {
	case rec.Incarnation > at.Incarnation || rec.Incarnation == k.Incarnation:
		return Forked
	case k.Closed == 0:
		return meanwhile
	case len(at.Pairs) == 0 || at.Sync > 0:
		return Void
	}
	return Forked
}

// named reports whether a closed record of the source's incarnation named a head that is not below a
// number.
func named(k Known, at *change.Cursor, n geo.Seq) bool {
	return k.Closed > 0 && len(at.Pairs) > 0 && at.Pairs[len(at.Pairs)-1].Head.Seq >= n
}

// bound returns the greatest time at or before which no record may follow the cursor.
func bound(k Known, at *change.Cursor, i geo.Incarnation) geo.Timestamp {
	t := at.Sync
	if len(at.Pairs) == 0 {
		t = k.Promised()
	}
	if i == k.Incarnation {
		t = max(t, k.Before)
	}
	return t
}

// replaced reports whether a closed record named another record under this number.
func replaced(k Known, at *change.Cursor, n geo.Seq, hash geo.Hash) bool {
	return k.Closed > 0 && len(at.Pairs) > 0 && at.Pairs[0].Head.Seq == n && at.Pairs[0].Head.Hash != hash
}

// Advance returns the cursor after the record that follows it.
func Advance(k Known, at change.Cursor, rec *change.Record, hash geo.Hash) change.Cursor {
	at.Applied = geo.Head{Seq: rec.Seq, Hash: hash}
	at.Time, at.Incarnation = rec.CommitTime, rec.Incarnation
	if k.Closed == 0 {
		return at // The pairs are void.
	}
	for len(at.Pairs) > 0 && at.Pairs[0].Head.Seq <= at.Applied.Seq {
		at.Sync, at.SyncWall = at.Pairs[0].T, at.Pairs[0].Wall
		at.Pairs = at.Pairs[1:]
	}
	if len(at.Pairs) == 0 {
		at.Pairs, at.Sync, at.SyncWall = nil, 0, 0
	}
	return at
}

// Lost reports whether a closed record shows that its source does not have what is applied here
// (R16). named is false if it is full and does not name the stream; head is zero then.
//
// In a full closed record a head may be later than its time but never earlier. So one below a cursor whose
// commit time is at or before T proves that the source no longer has the record: as of T it should have
// been there. With a later commit time it proves nothing: frames are delayed and repeated, and the pull
// may have been faster. In one that is not full it proves nothing either. A leader of the source leaves
// out what was acknowledged before it led. Package receive joins its closed records with late ones of the
// leader before it, which name older heads.
func Lost(c *change.Closed, head geo.Head, at *change.Cursor) bool {
	switch applied := at.Applied; {
	case applied.Seq == 0 || c.Incarnation < at.Incarnation:
		return false
	case head.Seq == applied.Seq:
		return head.Hash != applied.Hash
	default:
		return c.Full && head.Seq < applied.Seq && at.Time <= c.T
	}
}

// Undecided reports whether a full closed record shows a stream behind what is applied here, as of a time before that: the
// source may have lost it or not. A chain that begins with such a record would never compare the stream (R16). head is zero
// if the record does not name the stream.
func Undecided(c *change.Closed, head geo.Head, at *change.Cursor) bool {
	return c.Full && c.Incarnation >= at.Incarnation && head.Seq < at.Applied.Seq && at.Time > c.T
}
