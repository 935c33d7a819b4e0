package state

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// Memory is given back when the cache gave up much of what it held, once for each time.
func TestFreed(t *testing.T) {
	var f freed
	trims := 0
	trim := func() { trims++ }
	f.created(40 << 20)
	f.created(30 << 20)
	f.deleted(39<<20+1, trim)
	require.Zero(t, trims)
	f.deleted(8<<20, trim)
	f.deleted(8<<20, trim)
	require.Equal(t, 1, trims)
	f.created(9 << 20)
	f.deleted(8<<20, trim)
	require.Equal(t, 2, trims)
}

// A compaction that deletes tables takes their blocks out of the cache, and a store notices.
func TestDeletedTablesAreNoticed(t *testing.T) {
	const rows = 500
	c := NewShared(32<<20, 100)
	defer c.Close()
	s, err := Open("state", Options{FS: vfs.NewMem(), Shared: c})
	require.NoError(t, err)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	for half := range 2 {
		b := s.NewBatch()
		for i := half; i < rows; i += 2 {
			require.NoError(t, b.Set(key(i), make([]byte, 16<<10)))
		}
		require.NoError(t, s.Commit(b))
		require.NoError(t, b.Close())
		require.NoError(t, s.Flush())
	}
	for i := range rows {
		_, ok, err := s.Get(key(i))
		require.NoError(t, err)
		require.True(t, ok)
	}
	held := c.CacheBytes()
	require.Greater(t, held, int64(rows*16<<10))
	require.NoError(t, s.db.Compact(t.Context(), key(0), key(rows), false))
	require.NoError(t, s.Close()) // It waits for the deletions.
	require.Less(t, c.freed.most.Load(), held-freedMin, "the cache was found smaller")
}
