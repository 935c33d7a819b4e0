package cursor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R16: a record below the cursor is a repetition only where it can be of the cursor's history: not of a later incarnation, nor of a
// later time in the same one. Numbers are given again on disks that were set back.
func TestR16RecordsBelowTheCursor(t *testing.T) {
	at := &change.Cursor{Applied: geo.Head{Seq: 5, Hash: 9}, Time: 100, Incarnation: 2}
	for name, x := range map[string]struct {
		rec  change.Record
		want Relation
	}{
		"earlier":                          {change.Record{Seq: 3, Incarnation: 2, CommitTime: 90}, Repeated},
		"of one group with the cursor's":   {change.Record{Seq: 3, Incarnation: 2, CommitTime: 100}, Repeated},
		"later":                            {change.Record{Seq: 3, Incarnation: 2, CommitTime: 101}, Forked},
		"later, of an earlier incarnation": {change.Record{Seq: 3, Incarnation: 1, CommitTime: 101}, Repeated},
		"earlier, of a later incarnation":  {change.Record{Seq: 3, Incarnation: 3, CommitTime: 90}, Forked},
	} {
		require.Equal(t, x.want, RelationOf(Known{Incarnation: 3}, at, &x.rec, 8), name)
	}
	unknown := &change.Cursor{Applied: at.Applied, Incarnation: 2}
	require.Equal(t, Repeated, RelationOf(Known{Incarnation: 3}, unknown, &change.Record{Seq: 3, Incarnation: 2, CommitTime: 101}, 8))
}

// R16: a full closed record decides of a stream, lost or not, unless it names a head below the cursor as of a time before the
// cursor's. One that is not full decides nothing, and one of an earlier incarnation is void.
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
