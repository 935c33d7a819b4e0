package state

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// R8: the space of rows that one DeleteRange deleted comes back once the span is reclaimed: the tables on the disk
// shrink to what is left, without any other write, and what is left is whole.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR8DeletedRangeGivesSpaceBack(t *testing.T) {
	s := openState(t, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	size := func() (n uint64) {
		files, err := s.Files()
		require.NoError(t, err)
		for _, f := range files {
			n += f.Bytes
		}
		return n
	}
	noise := rand.NewChaCha8([32]byte{1})
	fill := func(prefix string, rows int) {
		for i := range rows {
			v := make([]byte, 4<<10) // It does not compress.
			_, _ = noise.Read(v)
			write(t, s, func(b *Batch) error { return b.Set(fmt.Appendf(nil, "%s%06d", prefix, i), v) })
		}
	}
	fill("a", 100)
	fill("b", 4000)
	fill("c", 100)
	require.NoError(t, s.Flush())
	require.Greater(t, size(), uint64(16<<20))
	write(t, s, func(b *Batch) error { return b.DeleteRange([]byte("b"), []byte("c")) })
	s.Wiped(Span{[]byte("b"), []byte("c")})
	worked, err := s.Reclaim(t.Context())
	require.NoError(t, err)
	require.True(t, worked)
	require.Less(t, size(), uint64(2<<20))
	worked, err = s.Reclaim(t.Context())
	require.NoError(t, err)
	require.False(t, worked)
	rows := 0
	it, err := s.Scan([]byte("a"), []byte("z"))
	require.NoError(t, err)
	for it.Next() {
		rows++
	}
	require.NoError(t, it.Close())
	require.Equal(t, 200, rows)
}

// The spans that wait are bounded: past wipedMax the last one grows, and holds all that follows (invariant 8).
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestWipedMax(t *testing.T) {
	s := openState(t, vfs.NewMem())
	span := func(i int) Span { return Span{fmt.Appendf(nil, "%06d", 2*i), fmt.Appendf(nil, "%06d", 2*i+1)} }
	for i := range wipedMax + 100 {
		s.Wiped(span(i))
	}
	require.Len(t, s.wiped.spans, wipedMax)
	require.Equal(t, Span{span(wipedMax - 1).Lower, span(wipedMax + 99).Upper}, s.wiped.spans[wipedMax-1])
	s.wiped.spans = nil
	s.Wiped(Span{[]byte("b"), []byte("c")})
	s.Wiped(Span{[]byte("c"), []byte("d")})
	s.Wiped(Span{[]byte("a"), []byte("b")})
	require.Equal(t, []Span{{[]byte("a"), []byte("d")}}, s.wiped.spans)
	require.NoError(t, s.Close())
	_, err := s.Reclaim(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}
