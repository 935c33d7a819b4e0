package extent

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const testDir = "extents"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSource returns bytes that depend on seed alone.
func newSource(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// newChunk draws an id and a payload of n bytes.
func newChunk(source *rand.ChaCha8, n int) (Ref, []byte) {
	var id ChunkID
	data := make([]byte, n)
	_, _ = source.Read(id[:])
	_, _ = source.Read(data)
	return NewRef(id, data), data
}

func open(t testing.TB, fs vfs.FS, opts Options) *Store {
	t.Helper()
	s, err := Open(fs, testDir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t testing.TB, s *Store, source *rand.ChaCha8, n int) (Ref, []byte) {
	t.Helper()
	ref, data := newChunk(source, n)
	require.NoError(t, s.Put(ref, data))
	return ref, data
}

func mustSync(t testing.TB, s *Store) {
	t.Helper()
	require.NoError(t, s.Sync(context.Background()))
}

// requireHolds checks that the chunk reads back whole.
func requireHolds(t testing.TB, s *Store, ref Ref, data []byte) {
	t.Helper()
	got := make([]byte, len(data))
	n, err := s.Read(ref, 0, got)
	require.NoError(t, err)
	require.Equal(t, len(data), n)
	require.True(t, string(data) == string(got), "chunk %s holds other bytes", ref)
}

func requireCorrupt(t testing.TB, s *Store, ref Ref) {
	t.Helper()
	_, err := s.Read(ref, 0, make([]byte, ref.Length))
	require.ErrorIs(t, err, ErrCorrupt)
	require.False(t, s.Durable(ref.ID))
}

// place returns the path of the file that holds a chunk, and the chunk's offset.
func place(t testing.TB, s *Store, ref Ref) (string, int64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	e, c := s.find(ref.ID)
	require.NotNil(t, c)
	return e.path, c.offset
}

// flip turns one bit of a file, as a medium does by itself.
func flip(t testing.TB, fs *vfs.MemFS, path string, off int64) {
	t.Helper()
	b, err := fs.UnsafeGetFileDataBuffer(path)
	require.NoError(t, err)
	b[off] ^= 0x10
}

// wipe zeroes [from, to) of a file.
func wipe(t testing.TB, fs *vfs.MemFS, path string, from, to int64) {
	t.Helper()
	b, err := fs.UnsafeGetFileDataBuffer(path)
	require.NoError(t, err)
	clear(b[from:to])
}

// dump returns every file of the store's folder by name.
func dump(t testing.TB, fs *vfs.MemFS) map[string]string {
	t.Helper()
	names, err := fs.List(testDir)
	require.NoError(t, err)
	out := map[string]string{}
	for _, name := range names {
		b, err := fs.UnsafeGetFileDataBuffer(fs.PathJoin(testDir, name))
		require.NoError(t, err)
		out[name] = string(b)
	}
	return out
}

// writeExtent makes the store's folder with one extent file of these bytes.
func writeExtent(t testing.TB, fs *vfs.MemFS, content []byte) {
	t.Helper()
	require.NoError(t, fs.MkdirAll(testDir, 0o755))
	w, err := fs.Create(fs.PathJoin(testDir, fileName(1)), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = w.Write(bytes.Clone(content))
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

// beforeSyncData returns a file system that calls *hook, if set, once, as the next
// fdatasync begins.
func beforeSyncData(fs vfs.FS, hook *func()) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if f := *hook; f != nil && op.Kind == errorfs.OpFileSyncData {
			*hook = nil
			f()
		}
		return nil
	}))
}

// chunkRoom is the room that a chunk of n bytes takes in a store with these options.
func chunkRoom(n int, opts Options) int64 {
	opts = opts.withDefaults()
	unit := uint32(recordBytes)
	if n >= opts.PagedBytesMin {
		unit = pageBytes
	}
	return chunkBytes(uint32(n), uint32(opts.SliceBytes), unit)
}
