package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// A row of the memtable, and one whose block is in the cache, is not read from the disk. Neither does a compaction count.
func TestReadsOfTheDisk(t *testing.T) {
	s, err := Open("state", Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key := func(i int) []byte { return fmt.Appendf(nil, "k%02d", i) }
	get := func(i int) (reads uint64) {
		before := s.Reads()
		_, ok, err := s.Get(key(i))
		require.NoError(t, err)
		require.True(t, ok)
		return s.Reads() - before
	}
	for round := range 3 {
		b := s.NewBatch()
		for i := range 20 {
			require.NoError(t, b.Set(key(i), []byte(fmt.Sprint(round)+strings.Repeat("x", 20_000))))
		}
		require.NoError(t, s.Commit(b))
		require.Zero(t, get(1), "of the memtable")
		require.NoError(t, s.Flush())
	}
	require.NotZero(t, get(1))
	require.Zero(t, get(1), "of the cache")
	require.EqualValues(t, 1, get(2), "of the disk")
	before := s.Reads()
	require.NoError(t, s.db.Compact(t.Context(), key(0), key(99), false))
	require.LessOrEqual(t, s.Reads()-before, uint64(3*5), "what three tables have beside 60 rows")
}
