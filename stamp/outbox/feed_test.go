package outbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Invariant 8: what waits for a shipper is bounded. Beyond the bound all of it is dropped, and what is pushed until the
// shipper takes the rest: it learns that something is missing. Then there is room again.
func TestFeedIsBounded(t *testing.T) {
	t.Parallel()
	var f Feed
	woken := 0
	f.OnPush(func() { woken++ })
	group := func(length int) Added { return Added{Records: []Record{{Bytes: make([]byte, length)}}} }
	f.Push(group(FeedBytesMax - 1))
	f.Push(group(1))
	added, lost := f.Take()
	require.Len(t, added, 2, "as much as the bound")
	require.False(t, lost)

	f.Push(group(FeedBytesMax))
	f.Push(group(1))
	f.Push(group(1))
	require.Equal(t, 5, woken)
	added, lost = f.Take()
	require.Empty(t, added)
	require.True(t, lost)

	f.Push(group(FeedBytesMax))
	added, lost = f.Take()
	require.Len(t, added, 1)
	require.False(t, lost)
}
