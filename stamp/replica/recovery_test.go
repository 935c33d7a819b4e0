package replica

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// R4: a recovery keeps the log of a replica only as far as it follows the state: neither one that begins above it, nor one
// that has another entry where the state ends, as after a replica was lost between a snapshot and the log that begins behind it.
//
// Capability: Storage on a node: Disks that were set back while their location restarts are found (R4).
func TestR4EndOfALog(t *testing.T) {
	l := newLone(t, geo.EntryID{Term: 3, Index: 9}, hard(3, 0, 7), nil)
	for _, tt := range []struct {
		name          string
		applied, last geo.EntryID
		commit        uint64
	}{
		{"follows", geo.EntryID{Term: 3, Index: 5}, geo.EntryID{Term: 3, Index: 9}, 7},
		{"from the first entry", geo.EntryID{}, geo.EntryID{Term: 3, Index: 9}, 7},
		{"nothing to redo", geo.EntryID{Term: 3, Index: 9}, geo.EntryID{Term: 3, Index: 9}, 9},
		{"ends below the state", geo.EntryID{Term: 4, Index: 12}, geo.EntryID{Term: 4, Index: 12}, 12},
		{"of another history", geo.EntryID{Term: 4, Index: 5}, geo.EntryID{Term: 4, Index: 5}, 7},
	} {
		last, commit, err := EndOf(l.rlog, tt.applied)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.last, last, tt.name)
		require.Equal(t, tt.commit, commit, tt.name)
	}
	batch := l.log.NewBatch()
	require.NoError(t, errors.Join(l.rlog.Trim(batch, 6), batch.Commit(true)))
	for _, tt := range []struct{ applied, last geo.EntryID }{
		{geo.EntryID{Term: 3, Index: 6}, geo.EntryID{Term: 3, Index: 9}},
		{geo.EntryID{Term: 2, Index: 6}, geo.EntryID{Term: 2, Index: 6}},
		{geo.EntryID{Term: 3, Index: 5}, geo.EntryID{Term: 3, Index: 5}},
	} {
		last, _, err := EndOf(l.rlog, tt.applied)
		require.NoError(t, err)
		require.Equal(t, tt.last, last)
	}
}
