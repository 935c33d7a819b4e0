package extent

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"antipode/stamp/rawfile"
	"antipode/stamp/rawtest"
)

// zeros is a source that repeats itself as badly as can be.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A file whose chunks are all dead is used again for the next extent, under a new
// name, and nothing it held comes back: neither in place nor after a crash that keeps
// every byte, though the random half of the incarnations never changes.
func TestRecycle(t *testing.T) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			fs, source := vfs.NewCrashableMem(), newSource(1)
			opts := layout
			opts.ExtentBytesMax, opts.SparesMax, opts.Rand = 64<<10, 1, zeros{}
			s := open(t, fs, opts)
			var old []Ref
			for s.Stats().Extents < 2 {
				ref, _ := put(t, s, source, 3000)
				old = append(old, ref)
			}
			mustSync(t, s)
			size := len(dump(t, fs)["000001.ext"])
			for _, ref := range old[:len(old)-1] {
				require.NoError(t, s.Delete(ref.ID))
			}
			require.Equal(t, 1, s.Stats().Spares)
			require.Contains(t, dump(t, fs), "000001.ext")

			held := map[Ref][]byte{}
			for s.Stats().Extents < 2 {
				ref, data := put(t, s, source, 3000)
				held[ref] = data
			}
			require.Zero(t, s.Stats().Spares)
			files := dump(t, fs)
			require.NotContains(t, files, "000001.ext")
			require.Len(t, files["000003.ext"], size, "a new file was written, the old one not used again")

			s = open(t, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: newRNG(1)}), opts)
			for ref, data := range held {
				requireHolds(t, s, ref, data)
			}
			require.Equal(t, len(held)+1, s.Stats().Chunks)
			require.Zero(t, s.Stats().LostBytes)
		})
	}
}

// Files of dead chunks beyond SparesMax are unlinked, one that is being read from too;
// a spare is known again after a restart, and its chunks stay dead.
func TestSparesAreBounded(t *testing.T) {
	fs, source := vfs.NewMem(), newSource(1)
	opts := Options{ExtentBytesMax: 9 << 10, SparesMax: 2}
	s := open(t, fs, opts)
	var refs []Ref
	for range 6 {
		ref, _ := put(t, s, source, 4<<10) // an extent for each
		refs = append(refs, ref)
	}
	require.NoError(t, s.each(refs[0], 0, 100, func([]byte) error { return s.Delete(refs[0].ID) }))
	require.Zero(t, s.Stats().Spares)
	for _, ref := range refs[1:5] {
		require.NoError(t, s.Delete(ref.ID))
	}
	require.Equal(t, 2, s.Stats().Spares)
	require.Len(t, dump(t, fs), 3)
	require.NoError(t, s.Close())
	before := dump(t, fs)
	s = open(t, fs, opts)
	require.Equal(t, []Ref{refs[5]}, s.Refs())
	require.Equal(t, 2, s.Stats().Spares)
	require.Equal(t, before, dump(t, fs))
}

// At every single write, sync, rename and unlink the machine may stop, and lose none,
// some or all of what was not synced: what Sync had covered by then is there, while
// extents fill, are sealed, dropped, used again and compacted (R3).
func TestCrashAtEveryOperation(t *testing.T) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			mem, rng, source := rawtest.New(), newRNG(1), newSource(1)
			opts := layout
			opts.ExtentBytesMax, opts.SparesMax = 24<<10, 1
			promised := map[Ref][]byte{}
			armed, points := false, map[errorfs.OpKind]int{}
			point := func(kind errorfs.OpKind) error {
				if !armed {
					return nil
				}
				points[kind]++
				for _, percent := range []int{0, 50, 100} {
					requireSurvives(t, crashed(t, mem, percent, rng), opts, promised)
				}
				return nil
			}
			mem.Before = func(string) error { return point(errorfs.OpFileWriteAt) }
			fs := rawOver{errorfs.Wrap(mem.MemFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				return point(op.Kind)
			})), mem}
			s := open(t, fs, opts)
			armed = true
			for round := range 40 {
				ref, data := put(t, s, source, 3000)
				if round%3 == 0 {
					continue
				}
				mustSync(t, s)
				promised[ref] = data
				if round%4 == 0 {
					_, err := s.Compact(context.Background())
					require.NoError(t, err)
				}
				for ref := range promised {
					if len(promised) > 5 {
						delete(promised, ref)
						require.NoError(t, s.Delete(ref.ID))
					}
				}
			}
			require.NoError(t, s.Close())
			for _, kind := range []errorfs.OpKind{errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpRename} {
				require.NotZero(t, points[kind], "kind %d was not met", kind)
			}
		})
	}
}

// rawOver is a file system whose raw writes are those of another one.
type rawOver struct {
	vfs.FS
	raw rawfile.FS
}

// OpenRaw implements rawfile.FS.
func (r rawOver) OpenRaw(path string, direct bool) (rawfile.File, error) {
	return r.raw.OpenRaw(path, direct)
}

func requireSurvives(t *testing.T, fs vfs.FS, opts Options, promised map[Ref][]byte) {
	t.Helper()
	s := open(t, fs, opts)
	for ref, data := range promised {
		require.True(t, s.Durable(ref.ID))
		requireHolds(t, s, ref, data)
	}
	require.Zero(t, s.Stats().Damaged)
	require.Zero(t, s.Stats().LostBytes)
	require.NoError(t, s.Close())
}

// A buffer lent begins on a page if it is a page or more, also the second time, so
// that it reaches the disk without being copied.
func TestBuffersAreAligned(t *testing.T) {
	b := NewBuffers(1<<20, 4)
	for range 3 {
		for _, n := range []int{1, 4096, 5000, 600 << 10, 1 << 20} {
			buf, err := b.Get(context.Background(), n)
			require.NoError(t, err)
			require.Len(t, buf, n)
			require.True(t, n < pageBytes || aligned(buf), "%d bytes", n)
			b.Put(buf)
		}
	}
}

// oneAtATime is a source that notices two readers at once.
type oneAtATime struct {
	reading  atomic.Int32
	overlaps *atomic.Int32
}

func (s *oneAtATime) Read(p []byte) (int, error) {
	if s.reading.Add(1) > 1 {
		s.overlaps.Add(1)
	}
	for range 20_000 {
		runtime.Gosched()
	}
	s.reading.Add(-1)
	return len(p), nil
}

// A small and a large chunk may each need a new file at the same moment.
func TestAppendersDrawOneAtATime(t *testing.T) {
	var overlaps atomic.Int32
	for range 50 {
		s := open(t, vfs.NewMem(), Options{Rand: &oneAtATime{overlaps: &overlaps}})
		source := newSource(1)
		var group sync.WaitGroup
		for _, size := range []int{100, 300 << 10} {
			ref, data := newChunk(source, size)
			group.Go(func() { require.NoError(t, s.Put(ref, data)) })
		}
		group.Wait()
		require.NoError(t, s.Close())
	}
	require.Zero(t, overlaps.Load())
}
