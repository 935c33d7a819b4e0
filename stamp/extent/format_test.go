package extent

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

const goldenDir = "testdata/v2"

// goldenChunks are what the golden files hold: two small chunks and one of whole pages.
func goldenChunks() ([]Ref, [][]byte) {
	counting := make([]byte, 5000)
	for i := range counting {
		counting[i] = byte(i)
	}
	payloads := [][]byte{[]byte("antipode"), counting[:1000], counting}
	var refs []Ref
	for i, data := range payloads {
		id := ChunkID{0: 0xc0 + byte(i), 15: 0xff}
		refs = append(refs, NewRef(id, data))
	}
	return refs, payloads
}

// The bytes of version 2 stay what they are: the store writes the golden files, and
// reads them. docs/format/extent.md walks through the first.
func TestGolden(t *testing.T) {
	fs := vfs.NewMem()
	inc := bytes.NewReader([]byte{1, 2, 3, 4, 5, 6, 7, 8})
	s := open(t, fs, Options{SliceBytes: 512, PagedBytesMin: 4096, Rand: inc})
	refs, payloads := goldenChunks()
	for i, ref := range refs {
		require.NoError(t, s.Put(ref, payloads[i]))
		require.NoError(t, s.Sync(context.Background()))
	}
	require.NoError(t, s.Close())
	wrote := dump(t, fs)
	require.Len(t, wrote, 2)
	for name, got := range wrote {
		path := filepath.Join(goldenDir, name)
		if *rewrite {
			require.NoError(t, os.MkdirAll(goldenDir, 0o755))
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, name)
	}

	r, err := OpenReadOnly(vfs.Default, goldenDir, Options{})
	require.NoError(t, err)
	require.Equal(t, refs, r.Refs())
	for i, ref := range refs {
		requireHolds(t, r, ref, payloads[i])
		require.True(t, r.Durable(ref.ID))
	}
	require.NoError(t, r.Close())
}

// Version 1, which no release wrote, is refused and not scanned.
func TestVersionOneIsRefused(t *testing.T) {
	_, err := OpenReadOnly(vfs.Default, "testdata/v1", Options{})
	require.ErrorIs(t, err, ErrFormat)
}

// A record decodes to what was encoded, only in its own place, and no single bit of
// it may change.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := record{
			magic:  rapid.SampledFrom([]uint32{magicChunk, magicTrailer, magicSeal}).Draw(t, "magic"),
			offset: pageBytes * rapid.Int64Range(1, 1<<40).Draw(t, "offset"),
		}
		want.synced = want.offset
		copy(want.inc[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "inc"))
		if want.magic != magicSeal {
			want.synced = rapid.Int64Range(pageBytes, want.offset).Draw(t, "synced")
			want.unit = rapid.SampledFrom([]uint32{recordBytes, pageBytes}).Draw(t, "unit")
			copy(want.ref.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
			want.ref.Length = rapid.Uint32Range(1, ChunkBytesMax).Draw(t, "length")
			want.ref.CRC = rapid.Uint32().Draw(t, "crc")
			want.sliceBytes = rapid.Uint32Range(sliceBytesMin, sliceBytesMax).Draw(t, "slice")
		}
		var b [recordBytes]byte
		want.encode(b[:])
		got, ok := decodeRecord(b[:], want.place())
		if !ok || got != want {
			t.Fatalf("decoded %+v, %v; want %+v", got, ok, want)
		}
		if _, ok := decodeRecord(b[:], want.place()+recordBytes); ok {
			t.Fatalf("decoded in another place")
		}
		bit := rapid.IntRange(0, 8*recordBytes-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := decodeRecord(b[:], want.place()); ok {
			t.Fatalf("decoded with bit %d flipped", bit)
		}
	})
}

// Any bytes in an extent file open to a store or an error: chunks in order and
// within the file, no more live payload than bytes, every chunk readable whole with
// the CRC it claims or refused by name. The zeros of the first page are left out of what
// is drawn.
func FuzzScan(f *testing.F) {
	for _, name := range []string{"000001.ext", "000002.ext"} {
		golden, err := os.ReadFile(filepath.Join(goldenDir, name))
		require.NoError(f, err)
		head, rest := golden[:recordBytes], golden[pageBytes:]
		f.Add(head, rest)
		f.Add(head, rest[:len(rest)-recordBytes-1])
		f.Add(head, []byte{})
		f.Add([]byte{}, rest)
		f.Add(head, append(bytes.Clone(rest), rest...))
		f.Add(head, withOverlap(golden)[pageBytes:])
	}
	f.Fuzz(func(t *testing.T, head, rest []byte) {
		b := append(make([]byte, pageBytes), rest...)
		copy(b, head[:min(len(head), recordBytes)])
		content, err := scan(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		end := int64(pageBytes)
		for _, c := range content.chunks {
			require.GreaterOrEqual(t, c.offset, end)
			end = c.end()
		}
		require.LessOrEqual(t, content.synced, int64(len(b)))
		require.LessOrEqual(t, content.lost, int64(len(b)))
		fuzzOpen(t, b)
	})
}

// withOverlap appends a trailer, whole in itself, of a chunk that would begin where
// the first chunk of the golden file does and reach over the second.
func withOverlap(golden []byte) []byte {
	first, ok := decodeRecord(golden[pageBytes:pageBytes+recordBytes], pageBytes)
	if !ok {
		panic("the golden file has no first chunk")
	}
	first.magic = magicTrailer
	first.ref.Length = uint32(len(golden))
	out := append(bytes.Clone(golden), make([]byte, max(0, int(first.end())-len(golden)))...)
	first.encode(out[first.place():])
	return out
}

func fuzzOpen(t *testing.T, b []byte) {
	fs := vfs.NewMem()
	writeExtent(t, fs, b)
	s, err := Open(fs, testDir, Options{Rand: newSource(1)})
	require.NoError(t, err)
	for _, ref := range s.Refs() {
		data := make([]byte, ref.Length)
		if _, err := s.Read(ref, 0, data); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
	require.NoError(t, s.Close())
}
