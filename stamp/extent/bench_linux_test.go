package extent

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	benchBytes = 1 << 20
	// benchGroup chunks are put before each Sync: a blob of 4 MiB.
	benchGroup = 4
	// benchHeld is what each store or raw writer keeps before it uses its room again.
	benchHeld = 256 << 20
)

// processCPU is what this process used so far.
func processCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inThree runs group for three writers at once, b.N times each, and reports bytes of one
// writer and processor time of all three for each group.
func inThree(b *testing.B, bytes int, group func(writer, n int)) {
	b.SetBytes(int64(bytes))
	b.ResetTimer()
	before := processCPU()
	var wg sync.WaitGroup
	for writer := range 3 {
		wg.Go(func() {
			for n := range b.N {
				group(writer, n)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((processCPU()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// benchID is a chunk id that is used once.
func benchID(n uint64) (id ChunkID) {
	binary.LittleEndian.PutUint64(id[:], n)
	return id
}

// Three nodes put the same blob of 4 MiB, chunk by chunk, and sync once, against three
// writers of as many bytes with O_DIRECT into files that were written before. "stamp": each
// chunk is summed once for the three, as one process with three nodes does, while the
// one before it is written; "nodes": each store sums it, as nodes by themselves do. Old
// chunks are dropped, so that files are recycled, and have been from the first
// measured group on; in "fresh" all are kept, and every file is a new one.
func BenchmarkThreeStores(b *testing.B) {
	data := alignedBytes(benchBytes)
	_, _ = newSource(1).Read(data)
	ref := NewRef(ChunkID{}, data)
	for _, name := range []string{"stamp", "nodes", "fresh"} {
		b.Run(name, func(b *testing.B) {
			held := benchHeld / benchBytes
			var stores [3]*Store
			for i := range stores {
				s, err := Open(vfs.Default, b.TempDir(), Options{})
				require.NoError(b, err)
				stores[i] = s
			}
			sum := func(n int) Chunk {
				r := ref
				r.ID = benchID(uint64(n))
				c, err := NewChunk(r, data)
				require.NoError(b, err)
				return c
			}
			put := func(writer int, c Chunk, n int) {
				require.NoError(b, stores[writer].PutChunk(c))
				if name != "fresh" && n >= held {
					require.NoError(b, stores[writer].Delete(benchID(uint64(n-held))))
				}
			}
			first := 0
			for name != "fresh" && stores[2].Stats().Spares == 0 || first%benchGroup != 0 {
				for writer := range stores {
					put(writer, sum(first), first)
				}
				first++
			}
			var summed [3]chan Chunk
			for i := range summed {
				summed[i] = make(chan Chunk, 16*benchGroup)
			}
			if name != "nodes" {
				go func() {
					for n := range b.N * benchGroup {
						c := sum(first + n)
						for _, ch := range summed {
							ch <- c
						}
					}
				}()
			}
			inThree(b, benchGroup*benchBytes, func(writer, n int) {
				for i := range benchGroup {
					number := first + n*benchGroup + i
					if name == "nodes" {
						put(writer, sum(number), number)
					} else {
						put(writer, <-summed[writer], number)
					}
				}
				require.NoError(b, stores[writer].Sync(context.Background()))
			})
			for _, s := range stores {
				require.NoError(b, s.Close())
			}
		})
	}
	b.Run("raw", func(b *testing.B) {
		dir := b.TempDir()
		var files [3]*os.File
		for i := range files {
			f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(i)), os.O_RDWR|os.O_CREATE|unix.O_DIRECT, 0o600)
			require.NoError(b, err)
			for off := int64(0); off < benchHeld; off += benchBytes {
				_, err := f.WriteAt(data, off)
				require.NoError(b, err)
			}
			require.NoError(b, f.Sync())
			files[i] = f
		}
		inThree(b, benchGroup*benchBytes, func(writer, n int) {
			for i := range benchGroup {
				off := int64(n*benchGroup+i) * benchBytes % benchHeld
				_, err := files[writer].WriteAt(data, off)
				require.NoError(b, err)
			}
			require.NoError(b, unix.Fdatasync(int(files[writer].Fd())))
		})
		for _, f := range files {
			require.NoError(b, f.Close())
		}
	})
}

// Three nodes put the same small chunk and sync: by one caller, and by sixteen that
// share syncs.
func BenchmarkSmallChunks(b *testing.B) {
	const bytes = 32 << 10
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			ref, data := newChunk(newSource(1), bytes)
			var stores [3]*Store
			for i := range stores {
				s, err := Open(vfs.Default, b.TempDir(), Options{ExtentBytesMax: 64 << 20})
				require.NoError(b, err)
				stores[i] = s
			}
			var next atomic.Uint64
			b.SetBytes(bytes)
			b.ResetTimer()
			before := processCPU()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for n := next.Add(1); n <= uint64(b.N); n = next.Add(1) {
						r := ref
						r.ID = benchID(n)
						var nodes sync.WaitGroup
						for _, s := range stores {
							nodes.Go(func() {
								require.NoError(b, s.Put(r, data))
								require.NoError(b, s.Sync(context.Background()))
							})
						}
						nodes.Wait()
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64((processCPU()-before).Microseconds())/float64(b.N), "cpu-us/op")
			for _, s := range stores {
				require.NoError(b, s.Close())
			}
		})
	}
}

// What summing a chunk of 1 MiB costs, without the disk.
func BenchmarkNewChunk(b *testing.B) {
	ref, data := newChunk(newSource(1), benchBytes)
	b.SetBytes(benchBytes)
	b.ReportAllocs()
	for b.Loop() {
		_, err := NewChunk(ref, data)
		require.NoError(b, err)
	}
}

// Read of chunks of 1 MiB: out of the page cache, whole and streamed; and from the disk,
// as the push to the other location does right after the write.
func BenchmarkRead(b *testing.B) {
	s, err := Open(vfs.Default, b.TempDir(), Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	ref, data := newChunk(newSource(1), benchBytes)
	require.NoError(b, s.Put(ref, data))
	b.Run("whole", func(b *testing.B) {
		p := make([]byte, benchBytes)
		b.SetBytes(benchBytes)
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.Read(ref, 0, p)
			require.NoError(b, err)
		}
	})
	b.Run("stream", func(b *testing.B) {
		b.SetBytes(benchBytes)
		b.ReportAllocs()
		for b.Loop() {
			_, err := io.Copy(io.Discard, s.NewReader(ref, 0, -1))
			require.NoError(b, err)
		}
	})
	fresh := func(b *testing.B, read func(Ref, []byte)) {
		p := alignedBytes(benchBytes)
		b.SetBytes(benchBytes)
		var cpu time.Duration
		for n := range b.N {
			b.StopTimer()
			r := NewRef(benchID(uint64(n)), data)
			require.NoError(b, s.Put(r, data))
			b.StartTimer()
			before := processCPU()
			read(r, p)
			cpu += processCPU() - before
		}
		b.StopTimer()
		b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/op")
		for n := range b.N {
			require.NoError(b, s.Delete(benchID(uint64(n))))
		}
	}
	b.Run("fresh", func(b *testing.B) {
		fresh(b, func(r Ref, p []byte) {
			_, err := s.Read(r, 0, p)
			require.NoError(b, err)
		})
	})
	b.Run("fresh-direct", func(b *testing.B) {
		var buf []byte
		fresh(b, func(r Ref, _ []byte) {
			s.mu.Lock()
			e, c := s.find(r.ID)
			s.mu.Unlock()
			require.NoError(b, s.scrub(entry{e, *c}, &buf))
		})
	})
}
