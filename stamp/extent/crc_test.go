package extent

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"antipode/internal/crc"
)

// The CRCs that are derived equal those computed over the bytes: of each slice behind
// its name, and of the whole payload, for any cut into slices.
func TestSummer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "data")
		size := rapid.IntRange(1, 2000).Draw(t, "slice")
		s := summer{id: ChunkID{1, 2, 3}}
		for number, rest := uint32(0), data; len(rest) > 0; number++ {
			slice := rest[:min(size, len(rest))]
			rest = rest[len(slice):]
			named := append(bytes.Clone(s.id[:]), binary.LittleEndian.AppendUint32(nil, number)...)
			want := crc.Of(append(named, slice...))
			if got := s.add(slice); got != want {
				t.Fatalf("slice %d: %08x, want %08x", number, got, want)
			}
		}
		if want := crc.Of(data); s.total != want {
			t.Fatalf("payload: %08x, want %08x", s.total, want)
		}
	})
}
