package extent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// Read and the stream return what was put, before and after a restart, for sizes around every
// boundary and for every kind of span.
func TestPutRead(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	opts := Options{SliceBytes: 512, ExtentBytesMax: 64 << 10, PagedBytesMin: 65 << 10, Rand: newSource(2)}
	s := open(t, fs, opts)
	chunks := map[Ref][]byte{}
	for _, n := range []int{1, 63, 64, 511, 512, 513, 1024, 60 << 10, 70 << 10, 300 << 10, ChunkBytesMax} {
		ref, data := put(t, s, source, n)
		chunks[ref] = data
	}
	check := func(s *Store) {
		for ref, data := range chunks {
			requireHolds(t, s, ref, data)
			requireSpans(t, s, ref, data)
		}
	}
	check(s)
	require.NoError(t, s.Close())
	s = open(t, fs, opts)
	check(s)
	require.Equal(t, len(chunks), s.Stats().Chunks)
	require.Greater(t, s.Stats().Extents, 3)
}

func requireSpans(t *testing.T, s *Store, ref Ref, data []byte) {
	t.Helper()
	size := int64(len(data))
	for _, span := range [][2]int64{{0, 1}, {0, size}, {size - 1, size}, {size / 3, size / 2}, {size / 2, size/2 + 512}} {
		from, to := span[0], min(span[1], size)
		p := make([]byte, to-from)
		n, err := s.Read(ref, from, p)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[from:to], p[:n]), "%s %v", ref, span)

		got, err := io.ReadAll(iotest.HalfReader(s.NewReader(ref, from, to-from)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[from:to], got))

		var w bytes.Buffer
		_, err = io.Copy(&w, s.NewReader(ref, from, to-from))
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[from:to], w.Bytes()))
	}
	require.NoError(t, iotest.TestReader(s.NewReader(ref, 0, -1), data))
	n, err := s.Read(ref, size-1, make([]byte, 9))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 1, n)
	_, err = s.Read(ref, size+1, make([]byte, 1))
	require.Error(t, err)
}

// A chunk that does not fit its ref is refused and leaves no trace; the same chunk
// twice is written once.
func TestPutRefusesAndRepeats(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	s := open(t, fs, Options{})
	ref, data := newChunk(source, 1000)
	for name, bad := range map[string]Ref{
		"length":   {ID: ref.ID, Length: 999, CRC: ref.CRC},
		"crc":      {ID: ref.ID, Length: 1000, CRC: ref.CRC + 1},
		"empty":    {ID: ref.ID},
		"too long": {ID: ref.ID, Length: ChunkBytesMax + 1},
	} {
		require.ErrorIs(t, s.Put(bad, data), ErrMismatch, name)
	}
	require.Zero(t, s.Stats())
	require.False(t, s.Durable(ref.ID))
	_, err := s.Read(ref, 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrNotFound)

	require.NoError(t, s.Put(ref, data))
	before := s.Stats()
	require.NoError(t, s.Put(ref, data))
	require.Equal(t, before, s.Stats())
	require.False(t, s.Durable(ref.ID), "nothing was synced yet")
	mustSync(t, s)
	require.True(t, s.Durable(ref.ID))

	other := NewRef(ref.ID, []byte("something else"))
	require.ErrorIs(t, s.Put(other, []byte("something else")), ErrMismatch)
	_, err = s.Read(other, 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrMismatch)
	requireHolds(t, s, ref, data)
}

// A sealed extent is dropped when its last chunk dies and not before; a read that
// has begun goes on; the active extent stays.
func TestDeleteFreesExtents(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	s := open(t, fs, Options{ExtentBytesMax: 14 << 10, SparesMax: -1})
	a, _ := put(t, s, source, 4<<10)
	b, data := put(t, s, source, 4<<10)
	c, _ := put(t, s, source, 4<<10) // seals the first extent
	mustSync(t, s)
	require.Equal(t, 2, s.Stats().Extents)
	both := s.Stats().FileBytes

	require.NoError(t, s.Delete(a.ID))
	require.NoError(t, s.Delete(a.ID))
	require.Equal(t, 2, s.Stats().Extents)
	requireHolds(t, s, b, data)
	require.ElementsMatch(t, []Ref{b, c}, s.Refs())

	err := s.each(b, 0, int64(b.Length), func(part []byte) error {
		require.NoError(t, s.Delete(b.ID))
		require.True(t, bytes.Equal(data, part))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, s.Stats().Extents)
	require.NotContains(t, dump(t, fs), "000001.ext")

	require.NoError(t, s.Delete(c.ID))
	left := s.Stats().FileBytes
	require.Equal(t, Stats{Extents: 1, FileBytes: left, FreedBytes: uint64(both - left)}, s.Stats())
	require.NoError(t, s.Close())
	require.Empty(t, dump(t, fs), "an extent of dead chunks is not kept at Close")
}

// A file whose unsynced chunks all die is dropped, and the next Sync does not
// stumble over it.
func TestDeleteBeforeSync(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	s := open(t, fs, Options{ExtentBytesMax: 5 << 10})
	a, _ := put(t, s, source, 4<<10)
	b, data := put(t, s, source, 4<<10)
	require.NoError(t, s.Delete(a.ID))
	mustSync(t, s)
	require.True(t, s.Durable(b.ID))
	requireHolds(t, s, b, data)
	require.Equal(t, 1, s.Stats().Extents)
}

// OpenReadOnly serves what is there and changes no byte, though the folder is that
// of a killed process with a torn tail; every change is refused.
func TestOpenReadOnly(t *testing.T) {
	fs, source := vfs.NewCrashableMem(), newSource(1)
	s := open(t, fs, Options{})
	a, dataA := put(t, s, source, 5<<10)
	mustSync(t, s)
	b, dataB := put(t, s, source, 5<<10) // intact, but no mark vouches for it
	c, _ := put(t, s, source, 5<<10)
	path, off := place(t, s, c)
	killed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG(1)})
	flip(t, killed, path, off+2*recordBytes+3)
	before := dump(t, killed)

	r, err := OpenReadOnly(killed, testDir, Options{})
	require.NoError(t, err)
	requireHolds(t, r, a, dataA)
	requireHolds(t, r, b, dataB)
	require.True(t, r.Durable(a.ID))
	require.False(t, r.Durable(b.ID))
	_, err = r.Read(c, 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorIs(t, r.Put(a, dataA), ErrReadOnly)
	require.ErrorIs(t, r.Delete(a.ID), ErrReadOnly)
	require.ErrorIs(t, r.Sync(context.Background()), ErrReadOnly)
	require.NoError(t, r.Close())
	require.Equal(t, before, dump(t, killed))

	_, err = OpenReadOnly(vfs.NewMem(), testDir, Options{})
	require.Error(t, err)
}

// After Close every call is refused, and Close again gives the same answer.
func TestClose(t *testing.T) {
	s := open(t, vfs.NewMem(), Options{})
	ref, data := put(t, s, newSource(1), 100)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Put(ref, data), ErrClosed)
	require.ErrorIs(t, s.Sync(context.Background()), ErrClosed)
	require.ErrorIs(t, s.Delete(ref.ID), ErrClosed)
	_, err := s.Read(ref, 0, data)
	require.ErrorIs(t, err, ErrClosed)
}

// Bad options are all named, and nothing is made on disk.
func TestOptionsValidate(t *testing.T) {
	fs := vfs.NewMem()
	_, err := Open(fs, testDir, Options{ExtentBytesMax: -1, SliceBytes: 1 << 20, PagedBytesMin: -1, GarbagePercent: 101})
	require.ErrorContains(t, err, "PagedBytesMin")
	require.ErrorContains(t, err, "GarbagePercent")
	require.ErrorContains(t, err, "ExtentBytesMax")
	require.ErrorContains(t, err, "SliceBytes")
	_, err = fs.Stat(testDir)
	require.Error(t, err)
}

// The metrics have the names that dashboards use, pass the linter, and are taken
// back by Close, so that the store opens again beside the same registry.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	fs := vfs.NewMem()
	for i := range 2 {
		s := open(t, fs, Options{Registerer: registry})
		for _, ref := range s.Refs() {
			require.NoError(t, s.Delete(ref.ID))
		}
		put(t, s, newSource(1), 100)
		mustSync(t, s)
		freed := s.Stats().FreedBytes
		require.Equal(t, i > 0, freed > 0, "the extent of before")
		require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP antipode_extent_bytes Payload bytes of the chunks held.
# TYPE antipode_extent_bytes gauge
antipode_extent_bytes 100
# HELP antipode_extent_chunks Chunks held.
# TYPE antipode_extent_chunks gauge
antipode_extent_chunks 1
# HELP antipode_extent_freed_bytes_total Bytes of extent files dropped because nothing in them lived any more.
# TYPE antipode_extent_freed_bytes_total counter
antipode_extent_freed_bytes_total %d
`, freed)), "antipode_extent_bytes", "antipode_extent_chunks", "antipode_extent_freed_bytes_total"))
		count, err := testutil.GatherAndCount(registry, "antipode_extent_sync_seconds")
		require.NoError(t, err)
		require.Equal(t, 1, count)
		problems, err := testutil.GatherAndLint(registry)
		require.NoError(t, err)
		require.Empty(t, problems)
		require.NoError(t, s.Close())
	}
}

// An id prints as hex and parses back; nothing else parses.
func TestChunkID(t *testing.T) {
	ref, _ := newChunk(newSource(1), 1)
	id, err := ParseChunkID(ref.ID.String())
	require.NoError(t, err)
	require.Equal(t, ref.ID, id)
	for _, bad := range []string{"", "00", strings.Repeat("0", 33), strings.Repeat("g", 32)} {
		_, err := ParseChunkID(bad)
		require.Error(t, err, bad)
	}
}

// What a store does not hold it finds at its base: reads and Durable, and nothing else. What it holds itself comes first.
func TestBase(t *testing.T) {
	base := open(t, vfs.NewMem(), Options{})
	source := newSource(1)
	ref, data := put(t, base, source, 1000)
	mustSync(t, base)
	s := open(t, vfs.NewMem(), Options{Base: base})
	own, ownData := put(t, s, source, 500)
	require.True(t, s.Durable(ref.ID))
	require.False(t, s.Durable(own.ID), "it is not synced")
	requireHolds(t, s, ref, data)
	requireHolds(t, s, own, ownData)
	require.Equal(t, []Ref{own}, s.Refs())
	require.False(t, s.Mark(ref))
	_, err := s.Read(NewRef(ChunkID{9}, data), 0, make([]byte, 1))
	require.ErrorIs(t, err, ErrNotFound)
}
