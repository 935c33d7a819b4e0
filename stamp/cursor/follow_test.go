package cursor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R16: a record below the cursor is a repetition only where it can be of the cursor's history: not of a later incarnation, nor of a
// later time in the same one. Numbers are given again on disks that were set back.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
func TestR16RecordsBelowTheCursor(t *testing.T) {
	at := &change.Cursor{Applied: geo.Head{Seq: 5, Hash: 9}, Time: 100, Incarnation: 2}
	for name, x := range map[string]struct {
		rec  change.Record
		want Relation
	}{
		"earlier":                          {change.Record{Seq: 3, Incarnation: 2, CommitTime: 90}, Repeated},
		"of one group with the cursor's":   {change.Record{Seq: 3, Incarnation: 2, CommitTime: 100}, Repeated},
		"later, of an earlier incarnation": {change.Record{Seq: 3, Incarnation: 1, CommitTime: 101}, Repeated},
		"earlier, of a later incarnation":  {change.Record{Seq: 3, Incarnation: 3, CommitTime: 90}, Forked},
	} {
		require.Equal(t, x.want, RelationOf(Known{Incarnation: 3}, at, &x.rec, 8), name)
	}
	later := &change.Record{Seq: 3, Incarnation: 2, CommitTime: 101}
	require.Equal(t, Forked, RelationOf(Known{Incarnation: 2}, at, later, 8))
	unknown := &change.Cursor{Applied: at.Applied, Incarnation: 2}
	require.Equal(t, Repeated, RelationOf(Known{Incarnation: 3}, unknown, &change.Record{Seq: 3, Incarnation: 2, CommitTime: 101}, 8))
}

// R16: a full closed record decides of a stream, lost or not, unless it names a head below the cursor as of a time
// before the cursor's. A record that is not full decides nothing, and one of an earlier incarnation is void.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
func TestR16Undecided(t *testing.T) {
	at := &change.Cursor{Applied: geo.Head{Seq: 5, Hash: 9}, Time: 100, Incarnation: 2}
	for name, x := range map[string]struct {
		c               change.Closed
		head            geo.Head
		lost, undecided bool
	}{
		"below, before the cursor's time":       {change.Closed{Full: true, Incarnation: 2, T: 99}, geo.Head{Seq: 4}, false, true},
		"not named, before the cursor's time":   {change.Closed{Full: true, Incarnation: 2, T: 99}, geo.Head{}, false, true},
		"below, of a later incarnation":         {change.Closed{Full: true, Incarnation: 3, T: 99}, geo.Head{Seq: 4}, false, true},
		"below, at the cursor's time":           {change.Closed{Full: true, Incarnation: 2, T: 100}, geo.Head{Seq: 4}, true, false},
		"the cursor's, before its time":         {change.Closed{Full: true, Incarnation: 2, T: 99}, geo.Head{Seq: 5, Hash: 9}, false, false},
		"another one of its number":             {change.Closed{Full: true, Incarnation: 2, T: 99}, geo.Head{Seq: 5, Hash: 8}, true, false},
		"above":                                 {change.Closed{Full: true, Incarnation: 2, T: 99}, geo.Head{Seq: 6}, false, false},
		"below, not full":                       {change.Closed{Incarnation: 2, T: 99}, geo.Head{Seq: 4}, false, false},
		"below, of an incarnation that is void": {change.Closed{Full: true, Incarnation: 1, T: 99}, geo.Head{Seq: 4}, false, false},
	} {
		require.Equal(t, x.lost, Lost(&x.c, x.head, at), name)
		require.Equal(t, x.undecided, Undecided(&x.c, x.head, at), name)
	}
}

// R16: a recovery with loss commits what its survivor alone had held, in the place of records of its incarnation. A
// late copy of those does not fit a cursor that has taken the former. It is dropped where the stream has a sync time,
// which shows that the cursor's record is the source's, and proves nothing before the first closed record since. The
// stream forked if it has reached no head since, or if the source cannot have lost the record.
//
// Capability: Two locations: Forks and losses are durable at the receiver and at the source (R16).
func TestR16LateCopyOfWhatARecoveryReplaced(t *testing.T) {
	const here, before, hash, other = 3, 2, 8, 7 // Numbers of the cursor and of a record below it; hashes.
	recovered := Known{Incarnation: 2, Before: 50}
	closed := Known{Incarnation: 2, Before: 50, Closed: 200}
	ahead := []change.Pair{{T: 200, Head: geo.Head{Seq: here + 3, Hash: 5}}}
	for name, x := range map[string]struct {
		known       Known
		sync        geo.Timestamp
		pairs       []change.Pair
		incarnation geo.Incarnation
		next, below Relation
	}{
		"no closed record since":         {known: recovered, incarnation: 1, next: Missing, below: Repeated},
		"at the head of a closed record": {known: closed, incarnation: 1, next: Void, below: Void},
		"behind, was at a head":          {known: closed, sync: 1, pairs: ahead, incarnation: 1, next: Void, below: Void},
		"behind, was at none":            {known: closed, pairs: ahead, incarnation: 1, next: Forked, below: Forked},
		"of the source's incarnation":    {known: closed, sync: 1, pairs: ahead, incarnation: 2, next: Forked, below: Forked},
		"no recovery":                    {known: Known{Incarnation: 1, Closed: 9}, incarnation: 1, next: Forked, below: Forked},
	} {
		at := &change.Cursor{
			Applied: geo.Head{Seq: here, Hash: 9}, Time: 100, Incarnation: 1, Sync: x.sync, Pairs: x.pairs,
		}
		rec := change.Record{Seq: here + 1, Prev: other, Incarnation: x.incarnation, CommitTime: 300}
		require.Equal(t, x.next, RelationOf(x.known, at, &rec, hash), "%s: the next number", name)
		rec.Seq = before
		require.Equal(t, x.below, RelationOf(x.known, at, &rec, hash), "%s: a number below", name)
	}
}
