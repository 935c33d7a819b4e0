package extent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/rawtest"
)

// On the disk, past the page cache where it lets us, the store keeps what it keeps in
// memory: chunks of every kind of length and alignment, over restarts, recycling and
// compaction.
func TestRealDisk(t *testing.T) { testDisk(t, t.TempDir()) }

// The same where the file system is memory: it may refuse O_DIRECT, and then all is
// written through the page cache.
func TestMemoryDisk(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "extent")
	if err != nil {
		t.Skip("no file system in memory: ", err)
	}
	defer func() { require.NoError(t, os.RemoveAll(dir)) }()
	testDisk(t, dir)
}

func testDisk(t *testing.T, dir string) {
	source := newSource(1)
	opts := Options{ExtentBytesMax: 4 << 20}
	held := map[Ref][]byte{}
	for round := range 3 {
		s, err := Open(vfs.Default, dir, opts)
		require.NoError(t, err)
		for ref, data := range held {
			requireHolds(t, s, ref, data)
		}
		for i, n := range []int{1, 5000, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20, 1<<20 + 4095, ChunkBytesMax} {
			buf := alignedBytes(n + pageBytes)
			data := buf[i%2 : i%2+n] // every second one does not begin on a page
			_, _ = source.Read(data)
			var id ChunkID
			_, _ = source.Read(id[:])
			ref := NewRef(id, data)
			require.NoError(t, s.Put(ref, data))
			requireHolds(t, s, ref, data)
			held[ref] = data
		}
		require.NoError(t, s.Sync(context.Background()))
		for ref, data := range held {
			require.True(t, s.Durable(ref.ID))
			requireHolds(t, s, ref, data)
			if n := ref.Length; n%2 == uint32(round%2) {
				require.NoError(t, s.Delete(ref.ID))
				delete(held, ref)
			}
		}
		for n := int64(1); n > 0; {
			n, err = s.Compact(context.Background())
			require.NoError(t, err)
		}
		for err = nil; err == nil; {
			_, err = s.Scrub(context.Background())
		}
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, s.Close())
	}
}

// The room that is taken ahead is given back by Close: a node that is opened and closed
// again and again leaves no more than it wrote.
func TestCloseGivesRoomBack(t *testing.T) {
	dir, source := t.TempDir(), newSource(1)
	s, err := Open(vfs.Default, dir, Options{})
	require.NoError(t, err)
	put(t, s, source, 100)
	put(t, s, source, 300<<10)
	require.NoError(t, s.Close())
	for _, n := range []int{100, 300 << 10} {
		info, err := vfs.Default.Stat(filepath.Join(dir, fileName(uint64(1+n/(300<<10)))))
		require.NoError(t, err)
		unit := int64(recordBytes)
		if n >= pagedBytesDefault {
			unit = pageBytes
		}
		require.Equal(t, pageBytes+chunkRoom(n, Options{})+unit, info.Size())
	}
}

// The header of a new extent stays when its first chunk takes room ahead: without it a crash that tears that chunk
// leaves a file in which nothing is recognized, which counts as lost and is kept for ever.
func TestHeaderStays(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"on the machine's disk": vfs.Default, "in memory": rawtest.New()} {
		for _, n := range []int{100, 300 << 10} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				dir := fmt.Sprint(testDir, n)
				if fs == vfs.Default {
					dir = t.TempDir()
				}
				s, err := Open(fs, dir, Options{})
				require.NoError(t, err)
				put(t, s, newSource(1), n)
				f, err := fs.Open(fs.PathJoin(dir, fileName(1)))
				require.NoError(t, err)
				head := make([]byte, recordBytes)
				require.NoError(t, readFull(f, head, 0))
				_, ok, err := decodeFileHeader(head)
				require.NoError(t, err)
				require.True(t, ok, "the header is gone")
				require.NoError(t, f.Close())
				require.NoError(t, s.Close())
			})
		}
	}
}

// Reads through the page cache beside writes past it, of the neighbouring pages, give
// what was written: what the kernel reads ahead into pages that a write is about to
// replace is not served.
func TestReadsBesideDirectWrites(t *testing.T) {
	s, err := Open(vfs.Default, t.TempDir(), Options{ExtentBytesMax: 16 << 20})
	require.NoError(t, err)
	refs := make(chan Ref, 8)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			p := make([]byte, 300<<10)
			for ref := range refs {
				n, err := s.Read(ref, 0, p)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, ref, NewRef(ref.ID, p[:n]))
			}
		})
	}
	source := newSource(1)
	for i := range 200 {
		ref, _ := put(t, s, source, 256<<10+i)
		for range 3 {
			refs <- ref
		}
	}
	close(refs)
	readers.Wait()
	require.Zero(t, s.Stats().Damaged)
	require.NoError(t, s.Close())
}
