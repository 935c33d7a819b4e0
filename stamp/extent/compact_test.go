package extent

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// halfDead is a store with a sealed extent of eight chunks, of which every second one
// is dead, and the others with their bytes.
func halfDead(t *testing.T, fs vfs.FS, opts Options) (*Store, map[Ref][]byte) {
	t.Helper()
	opts.ExtentBytesMax, opts.SparesMax = pageBytes+9*chunkRoom(3000, opts)-1, -1
	s, source := open(t, fs, opts), newSource(1)
	live := map[Ref][]byte{}
	for i := range 8 {
		ref, data := put(t, s, source, 3000)
		if i%2 == 0 {
			live[ref] = data
		} else {
			require.NoError(t, s.Delete(ref.ID))
		}
	}
	put(t, s, source, 3000) // the next extent
	mustSync(t, s)
	return s, live
}

// Compact empties the extent with garbage and drops it; what lives in it stays durable
// and readable at every moment, over a crash too, and there is then nothing to do.
func TestCompact(t *testing.T) {
	for name, opts := range layouts {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			var during func()
			s, live := halfDead(t, beforeSyncData(fs, &during), opts)
			during = func() {
				for ref := range live {
					require.True(t, s.Durable(ref.ID), "not durable while it is copied")
				}
			}
			require.Zero(t, s.Stats().FreedBytes)
			copied, err := s.Compact(context.Background())
			require.NoError(t, err)
			require.EqualValues(t, 4*3000, copied)
			require.Nil(t, during)
			require.GreaterOrEqual(t, s.Stats().FreedBytes, uint64(8*3000), "all that was in the extent")
			require.NotContains(t, dump(t, fs), "000001.ext")
			copied, err = s.Compact(context.Background())
			require.NoError(t, err)
			require.Zero(t, copied)
			s = open(t, fs.CrashClone(vfs.CrashCloneCfg{}), opts)
			for ref, data := range live {
				require.True(t, s.Durable(ref.ID))
				requireHolds(t, s, ref, data)
			}
		})
	}
}

// An extent with less garbage than asked for is left alone. A chunk deleted while it is
// copied stays dead.
func TestCompactLeavesAlone(t *testing.T) {
	s, _ := halfDead(t, vfs.NewMem(), Options{GarbagePercent: 80})
	copied, err := s.Compact(context.Background())
	require.NoError(t, err)
	require.Zero(t, copied)

	var during func()
	s, live := halfDead(t, beforeSyncData(vfs.NewMem(), &during), Options{GarbagePercent: 40})
	during = func() {
		for ref := range live {
			require.NoError(t, s.Delete(ref.ID))
		}
	}
	_, err = s.Compact(context.Background())
	require.NoError(t, err)
	require.Equal(t, 1, s.Stats().Chunks)
	for ref := range live {
		_, err := s.Read(ref, 0, make([]byte, 1))
		require.ErrorIs(t, err, ErrNotFound)
	}
}

// A damaged chunk keeps its extent, and Compact ends all the same; when a Put has
// repaired it the extent goes.
func TestCompactKeepsDamage(t *testing.T) {
	fs := vfs.NewMem()
	s, live := halfDead(t, fs, layouts["small"])
	var bad Ref
	for bad = range live {
		break
	}
	path, off := place(t, s, bad)
	flip(t, fs, path, off+3*recordBytes)
	for _, want := range []int64{3 * 3000, 0} {
		copied, err := s.Compact(context.Background())
		require.NoError(t, err)
		require.Equal(t, want, copied)
	}
	requireCorrupt(t, s, bad)
	require.Contains(t, dump(t, fs), "000001.ext")
	require.NoError(t, s.Put(bad, live[bad]))
	mustSync(t, s)
	require.NotContains(t, dump(t, fs), "000001.ext")
}

// A round of Scrub looks at each chunk once and names the damaged ones, by whatever
// part of them is damaged, before anybody has read them; io.EOF ends it.
func TestScrub(t *testing.T) { eachLayout(t, testScrub) }

func testScrub(t *testing.T, fresh func() threeChunks) {
	for name, at := range map[string]func(c threeChunks) int64{
		"header":  func(threeChunks) int64 { return 5 },
		"sums":    func(threeChunks) int64 { return recordBytes + 1 },
		"payload": func(c threeChunks) int64 { return c.head + 2999 },
		"trailer": func(c threeChunks) int64 { return c.room - 1 },
	} {
		c := fresh()
		s := open(t, c.fs, Options{})
		flip(t, c.fs, c.path, c.offs[1]+at(c))
		for range 2 {
			seen := map[Ref]bool{}
			for {
				ref, err := s.Scrub(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				require.False(t, seen[ref])
				seen[ref] = true
				if ref == c.refs[1] {
					require.ErrorIs(t, err, ErrCorrupt, name)
				} else {
					require.NoError(t, err)
				}
			}
			require.Len(t, seen, 3)
			requireCorrupt(t, s, c.refs[1])
		}
		require.NoError(t, s.Put(c.refs[1], c.data[1]))
		for range 3 {
			_, err := s.Scrub(context.Background())
			require.NoError(t, err, name)
		}
		require.NoError(t, s.Close())
	}
}

// Scrub of an empty store ends at once, chunks deleted within a round are passed over,
// and a context that has ended ends it.
func TestScrubEnds(t *testing.T) {
	s, source := open(t, vfs.NewMem(), Options{}), newSource(1)
	_, err := s.Scrub(context.Background())
	require.ErrorIs(t, err, io.EOF)
	a, _ := put(t, s, source, 100)
	b, _ := put(t, s, source, 100)
	_, err = s.Scrub(context.Background())
	require.NoError(t, err)
	require.NoError(t, s.Delete(a.ID))
	require.NoError(t, s.Delete(b.ID))
	_, err = s.Scrub(context.Background())
	require.ErrorIs(t, err, io.EOF)
	put(t, s, source, 100)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.Scrub(ended)
	require.ErrorIs(t, err, context.Canceled)
}
