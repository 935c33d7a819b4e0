package blobs

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services/lease"
	"antipode/stamp/extent"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file")

const goldenPath = "testdata/row.golden"

// example is the blob that docs/format/blob.md spells out.
func example() Blob {
	return Blob{
		Modified: 0x1122334455667788, Created: 0x1122334455667788, Length: 5,
		MD5:        append(append([]byte{0xa0}, make([]byte, 14)...), 0xaf),
		Properties: Properties{ContentType: "text/plain"},
		Metadata:   []Pair{{Name: "k", Value: "v"}},
		Inline:     []byte("hello"),
	}
}

func goldenBlobs() []Blob {
	empty := Blob{Modified: 2, Created: 2}
	full := example()
	full.Tier, full.MD5 = TierCold, nil
	full.Properties = Properties{"a/b", "gzip", "de", "attachment", "no-cache"}
	full.Metadata = []Pair{{Name: "one", Value: "1"}, {Name: "two"}}
	chunked := Blob{
		Modified: 4, Created: 3, Length: 1<<20 + 1, MD5: append([]byte{1}, make([]byte, 15)...), Tier: TierHot,
		Properties: Properties{ContentType: "application/octet-stream"},
		Chunks:     []extent.Ref{{ID: extent.ChunkID{1}, Length: 1 << 20, CRC: 0x01020304}, {ID: extent.ChunkID{15: 2}, Length: 1, CRC: 5}},
	}
	listed := Blob{
		Modified: 6, Created: 6, Length: 300<<20 + 1, Properties: Properties{ContentType: "a/b"},
		List: &BlockList{ID: 6, Segments: []uint64{300 << 20, 1}},
	}
	unchecked := empty
	unchecked.MD5 = []byte{1, 2, 3, 4} // Of no MD5's length: stored as a client gave it.
	leased, broken := example(), listed
	leased.Lease = lease.Lease{Kind: lease.KindTaken, ID: lease.ID{1, 15: 2}, Seconds: 60, Until: 0x1122334455667799}
	broken.Lease = lease.Lease{Kind: lease.KindBroken, ID: lease.ID{15: 3}, Until: 7}
	archived, thawing, all := full, full, chunked
	archived.Tier = TierArchive
	thawing.Tier, thawing.Tiering = TierArchive, Tiering{Changed: 8, To: TierCool, High: true, Until: 9}
	all.Lease, all.Tiering = leased.Lease, Tiering{Changed: 8}
	all.Tags = []Pair{{Name: "a", Value: "1"}, {Name: "b"}}
	all.Snapshots = Snapshots{First: 3, Last: 5, Count: 300}
	created := Blob{Modified: 2, Created: 2, Appended: &Appended{Session: 2}}
	sealed := Blob{Modified: 9, Created: 2, Length: 1 << 33, Appended: &Appended{Session: 2, Blocks: CommittedMax, Sealed: true}}
	copied := listed
	copied.Copied = &Copied{ID: [16]byte{1, 15: 2}, Source: "http://a/b/c?snapshot=d", Bytes: 300<<20 + 1, Ended: 6}
	return []Blob{example(), empty, full, chunked, listed, unchecked, leased, broken, archived, thawing, all, created, sealed, copied}
}

// The stored form never changes: rows written today equal the golden file, and the
// golden file still reads.
func TestGolden(t *testing.T) {
	var lines []string
	for _, b := range goldenBlobs() {
		row, err := appendRow(nil, &b)
		require.NoError(t, err)
		lines = append(lines, hex.EncodeToString(row))
	}
	got := strings.Join(lines, "\n") + "\n"
	if *rewrite {
		require.NoError(t, os.WriteFile(goldenPath, []byte(got), 0o644))
	}
	want, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	for i, line := range strings.Fields(string(want)) {
		row, err := hex.DecodeString(line)
		require.NoError(t, err)
		b, err := parseRow(row)
		require.NoError(t, err)
		want := goldenBlobs()[i]
		if want.Inline == nil && want.Chunks == nil && want.List == nil && want.Appended == nil {
			want.Inline = []byte{}
		}
		require.Equal(t, want, b)
	}
}

func drawBlob(t *rapid.T) Blob {
	text := rapid.StringN(0, 12, -1)
	b := Blob{
		Modified: geo.Timestamp(rapid.Uint64().Draw(t, "modified")),
		Created:  geo.Timestamp(rapid.Uint64().Draw(t, "created")),
		Tier:     Tier(rapid.ByteRange(0, byte(TierArchive)).Draw(t, "tier")),
		Properties: Properties{
			text.Draw(t, "type"), text.Draw(t, "encoding"), text.Draw(t, "language"), text.Draw(t, "disposition"), text.Draw(t, "cache"),
		},
	}
	if rapid.Bool().Draw(t, "has md5") {
		b.MD5 = rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "md5")
	}
	if k := lease.Kind(rapid.ByteRange(0, byte(lease.KindBroken)).Draw(t, "lease")); k != lease.KindNone {
		b.Lease = lease.Lease{
			Kind: k, ID: lease.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
			Seconds: rapid.Uint32Range(lease.DurationMin, lease.DurationMax).Draw(t, "seconds"),
			Until:   geo.Timestamp(rapid.Uint64Min(1).Draw(t, "until")),
		}
	}
	if rapid.Bool().Draw(t, "changed tier") {
		b.Tiering.Changed = geo.Timestamp(rapid.Uint64Min(1).Draw(t, "changed"))
		if b.Tier == TierArchive && rapid.Bool().Draw(t, "thawing") {
			b.Tiering.To, b.Tiering.High = Tier(rapid.ByteRange(1, byte(TierCold)).Draw(t, "to")), rapid.Bool().Draw(t, "high")
			b.Tiering.Until = geo.Timestamp(rapid.Uint64Min(1).Draw(t, "until"))
		}
	}
	for i := range rapid.IntRange(0, TagsMax).Draw(t, "tags") {
		b.Tags = append(b.Tags, Pair{Name: fmt.Sprintf("t%d", i), Value: text.Draw(t, "tag")})
	}
	if n := rapid.Uint64().Draw(t, "snapshots"); n > 0 {
		first := rapid.Uint64Min(1).Draw(t, "first")
		b.Snapshots = Snapshots{First: geo.Timestamp(first), Last: geo.Timestamp(rapid.Uint64Min(first).Draw(t, "last")), Count: n}
	}
	if rapid.Bool().Draw(t, "copied") {
		b.Copied = &Copied{
			ID: [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "copy")), Source: text.Draw(t, "source"),
			Bytes: rapid.Uint64().Draw(t, "copied bytes"), Ended: geo.Timestamp(rapid.Uint64().Draw(t, "ended")),
		}
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "pairs") {
		b.Metadata = append(b.Metadata, Pair{Name: fmt.Sprintf("n%d", i), Value: text.Draw(t, "value")})
	}
	if rapid.Bool().Draw(t, "append blob") {
		b.Appended = &Appended{
			Session: geo.Timestamp(rapid.Uint64().Draw(t, "session")), Blocks: rapid.Uint32Range(0, CommittedMax).Draw(t, "blocks"),
			Sealed: rapid.Bool().Draw(t, "sealed"),
		}
		if n := uint64(b.Appended.Blocks); n > 0 {
			b.Length = rapid.Uint64Min(n).Draw(t, "bytes")
		}
		return b
	}
	if rapid.Bool().Draw(t, "in blocks") {
		b.List = &BlockList{ID: geo.Timestamp(rapid.Uint64().Draw(t, "list"))}
		for range rapid.IntRange(1, 9).Draw(t, "segments") {
			n := rapid.Uint64Range(1, 1<<50).Draw(t, "bytes")
			b.List.Segments = append(b.List.Segments, n)
			b.Length += n
		}
		return b
	}
	if rapid.Bool().Draw(t, "inline") {
		b.Inline = rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		b.Length = uint64(len(b.Inline))
		return b
	}
	for i := range rapid.IntRange(1, 9).Draw(t, "chunks") {
		c := extent.Ref{ID: extent.ChunkID{byte(i)}, Length: rapid.Uint32Range(1, extent.ChunkBytesMax).Draw(t, "length"), CRC: rapid.Uint32().Draw(t, "crc")}
		b.Chunks = append(b.Chunks, c)
		b.Length += uint64(c.Length)
	}
	return b
}

// What is stored reads back the same, for any blob.
func TestRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBlob(t)
		row, err := appendRow(nil, &b)
		require.NoError(t, err)
		got, err := parseRow(row)
		require.NoError(t, err)
		require.Equal(t, b, got)
	})
}

// A row cut anywhere, lengthened, or with a wrong header is refused; so is a blob
// whose length is not that of its payload, before it is written.
func TestRowRefuses(t *testing.T) {
	for _, b := range goldenBlobs() {
		row, err := appendRow(nil, &b)
		require.NoError(t, err)
		for n := range row {
			_, err := parseRow(row[:n])
			require.ErrorIs(t, err, ErrMalformed, "cut at %d of %d", n, len(row))
		}
		_, err = parseRow(append(row, 0))
		require.ErrorIs(t, err, ErrMalformed)
		for _, off := range []int{0, offType, offFlags, offTier, offLength} {
			if off == offLength && b.Length > 0 && b.Appended != nil {
				continue // It is that of rows which are not here.
			}
			bad := append([]byte(nil), row...)
			bad[off] |= 0x40
			_, err = parseRow(bad)
			require.ErrorIs(t, err, ErrMalformed, "offset %d", off)
		}
	}
	for _, b := range []Blob{
		{Length: 1},
		{Length: 2, Inline: []byte{1}, Chunks: []extent.Ref{{Length: 1}}},
		{Chunks: []extent.Ref{{}}},
		{Length: extent.ChunkBytesMax + 1, Chunks: []extent.Ref{{Length: extent.ChunkBytesMax + 1}}},
		{Tier: TierArchive + 1},
		{Tier: TierHot, Tiering: Tiering{Changed: 1, To: TierCool, Until: 2}},
		{Tier: TierArchive, Tiering: Tiering{To: TierCool, Until: 2}},
		{Tier: TierArchive, Tiering: Tiering{Changed: 1, To: TierCool}},
		{Tier: TierArchive, Tiering: Tiering{Changed: 1, To: TierArchive, Until: 2}},
		{Tier: TierArchive, Tiering: Tiering{Changed: 1, High: true}},
		{Tags: make([]Pair, TagsMax+1)},
		{Tags: []Pair{{Name: "b"}, {Name: "a"}}},
		{Tags: []Pair{{Name: "b"}, {Name: "b"}}},
		{Snapshots: Snapshots{First: 1, Last: 1}},
		{Snapshots: Snapshots{Last: 1, Count: 1}},
		{Snapshots: Snapshots{First: 2, Last: 1, Count: 1}},
		{Length: 1, Appended: &Appended{Session: 1}},
		{Length: 1, Appended: &Appended{Session: 1, Blocks: 2}},
		{Length: 1, Inline: []byte{1}, Appended: &Appended{Session: 1, Blocks: 1}},
		{Appended: &Appended{Session: 1}, List: &BlockList{ID: 1, Segments: []uint64{1}}},
		{Lease: lease.Lease{Kind: 3}},
		{Lease: lease.Lease{Kind: lease.KindBroken}},
		{Lease: lease.Lease{Kind: lease.KindTaken, Seconds: 15}},
		{Lease: lease.Lease{Kind: lease.KindTaken, Seconds: 61, Until: 7}},
		{List: &BlockList{ID: 1}},
		{Length: 1, List: &BlockList{ID: 1, Segments: []uint64{1, 0}}},
		{Length: 2, List: &BlockList{ID: 1, Segments: []uint64{1}}},
		{Length: 1, Inline: []byte{1}, List: &BlockList{ID: 1, Segments: []uint64{1}}},
	} {
		_, err := appendRow(nil, &b)
		require.ErrorIs(t, err, ErrMalformed)
	}
}

// Any bytes give a blob or ErrMalformed; what reads writes back to the same bytes.
func FuzzParseRow(f *testing.F) {
	f.Add([]byte{})
	for _, b := range goldenBlobs() {
		row, err := appendRow(nil, &b)
		require.NoError(f, err)
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		b, err := parseRow(row)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		out, err := appendRow(nil, &b)
		require.NoError(t, err)
		require.Equal(t, row, out)
	})
}

// The row of a blob is described with its lease, with what keeps clients from the content, and with its tags.
func TestDescribeBlob(t *testing.T) {
	all := goldenBlobs()
	for i, want := range map[int]string{
		0: "modified 5882-04-23T16:27:23.6508552Z, 5 bytes inline",
		6: "modified 5882-04-23T16:27:23.6508552Z, 5 bytes inline, lease 01000000-0000-0000-0000-000000000002 until 5882-04-23T16:27:23.6508569Z",
		8: "modified 5882-04-23T16:27:23.6508552Z, 5 bytes inline, archived",
		9: "modified 5882-04-23T16:27:23.6508552Z, 5 bytes inline, archived, tier 2 at " + geo.Timestamp(9).String(),
		10: "modified " + geo.Timestamp(4).String() + ", 1048577 bytes in 2 chunks, lease 01000000-0000-0000-0000-000000000002 until " +
			"5882-04-23T16:27:23.6508569Z, 2 tags",
	} {
		row, err := appendRow(nil, &all[i])
		require.NoError(t, err)
		d, err := DescribeRow([]byte{rowBlob}, row)
		require.NoError(t, err)
		require.Equal(t, want, d.Detail)
	}
}
