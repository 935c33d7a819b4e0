package extent

import (
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

const benchBytes = 1 << 20

// Put and Sync of 1 MiB on the real file system, one caller and several.
func BenchmarkPutSync(b *testing.B) {
	for name, parallelism := range map[string]int{"callers=1": 0, "callers=16": 8} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(vfs.Default, b.TempDir(), Options{})
			require.NoError(b, err)
			ids := make(chan ChunkID, 1)
			ref, data := newChunk(newSource(1), benchBytes)
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				for n := uint64(0); ; n++ {
					var id ChunkID
					binary.LittleEndian.PutUint64(id[:], n)
					select {
					case ids <- id:
					case <-stop:
						return
					}
				}
			}()
			one := func() {
				r := ref
				r.ID = <-ids
				require.NoError(b, s.Put(r, data))
				require.NoError(b, s.Sync(context.Background()))
				require.NoError(b, s.Delete(r.ID)) // keep the folder small
			}
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			b.ResetTimer()
			if parallelism == 0 {
				for b.Loop() {
					one()
				}
			} else {
				b.SetParallelism(parallelism)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						one()
					}
				})
			}
			b.StopTimer()
			require.NoError(b, s.Close())
		})
	}
}

// Put of 1 MiB without the disk: what encoding costs.
func BenchmarkEncode(b *testing.B) {
	ref, data := newChunk(newSource(1), benchBytes)
	buf := make([]byte, chunkBytes(benchBytes, sliceBytesMax))
	b.SetBytes(benchBytes)
	for b.Loop() {
		encodeSlices(buf, ref.ID, data, sliceBytesMax)
		frame(buf, ref, sliceBytesMax, incarnation{}, recordBytes)
	}
}

// Read of 1 MiB out of the page cache, whole and streamed.
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
}
