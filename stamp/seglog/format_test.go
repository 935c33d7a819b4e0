package seglog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"antipode/stamp/feature"
	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files where they are missing")

const goldenPath = "testdata/v1.golden"

// goldenSegment makes the segment that docs/format/log.md walks through.
func goldenSegment(t *testing.T) []byte {
	mem := vfs.NewMem()
	l, err := Open(testDir, state.Options{FS: mem, LogSegmentBytes: 5 * pageBytes, Rand: bytes.NewReader([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})})
	require.NoError(t, err)
	b := l.NewBatch()
	g := logtest.Range(t, l, 4)
	require.NoError(t, g.Append(b, []*pb.Entry{
		logtest.Entry(1, 7, pb.EntryNormal, []byte("group")), logtest.Entry(2, 8, pb.EntryNormal, nil),
		logtest.Entry(3, 8, pb.EntryConfChangeV2, []byte{1}),
	}))
	require.NoError(t, g.SetHardState(b, hardState(8, 2, 3)))
	require.NoError(t, g.Trim(b, 1))
	require.NoError(t, b.Commit(true))
	require.NoError(t, l.mark())
	return readDisk(t, mem)[segmentName(1)]
}

// dump writes the lines of a segment that are not zero, and dumped reads them back.
func dump(b []byte) string {
	var s strings.Builder
	for at := 0; at < len(b); at += 16 {
		if line := b[at : at+16]; !bytes.Equal(line, zeros[:16]) {
			fmt.Fprintf(&s, "%06x  %x\n", at, line)
		}
	}
	return s.String()
}

func dumped(t testing.TB, text string, size int) []byte {
	b := make([]byte, size)
	for line := range strings.Lines(text) {
		var at int
		var digits string
		_, err := fmt.Sscanf(line, "%x  %s", &at, &digits)
		require.NoError(t, err)
		data, err := hex.DecodeString(digits)
		require.NoError(t, err)
		copy(b[at:], data)
	}
	return b
}

// The bytes of a segment stay what they are: it is written as the golden file holds
// it, and what is in there is read. docs/format/log.md walks through it.
func TestGolden(t *testing.T) {
	got := goldenSegment(t)
	if _, err := os.Stat(goldenPath); err != nil && *rewrite {
		require.NoError(t, os.WriteFile(goldenPath, []byte(dump(got)), 0o644))
	}
	text, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	require.Equal(t, string(text), dump(got), "the format changed")
	d := disk{segmentName(1): dumped(t, string(text), len(got))}
	l := mustOpen(t, d.fs(t))
	want := &logtest.Model{Entries: []*pb.Entry{
		logtest.Entry(1, 7, pb.EntryNormal, []byte("group")), logtest.Entry(2, 8, pb.EntryNormal, nil),
		logtest.Entry(3, 8, pb.EntryConfChangeV2, []byte{1}),
	}, Hard: [3]uint64{8, 2, 3}}
	want.Trim(1)
	logtest.Require(t, want, logtest.Range(t, l, 4))
	require.NoError(t, l.Close())
}

// A log in another format is refused by name and left as it is.
func TestOtherVersion(t *testing.T) {
	d := disk{segmentName(1): goldenSegment(t)}.damaged(segmentName(1), func(b []byte) {
		b[atVersion]++
		sealHeader(b[:headerBytes])
	})
	fs := d.fs(t)
	_, err := open(fs, 1)
	require.ErrorIs(t, err, ErrVersion)
	require.Equal(t, d, readDisk(t, fs))
}

// A frame comes back as it was written, at its place and in its use of the file only;
// with one bit flipped, or cut short, it is refused (R4; property).
// It holds invariant 5.
func TestFrameRefusesDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frameHeader{kind: frameBatch, number: rapid.Uint64().Draw(t, "number"), inc: incarnation{1, 2}}
		f.offset = pageBytes * rapid.Int64Range(1, 1<<18).Draw(t, "page")
		f.synced = rapid.Int64Range(0, f.offset).Draw(t, "synced")
		b := make([]byte, headerBytes)
		for range rapid.IntRange(0, 5).Draw(t, "records") {
			b = appendRecord(b, recordEntry, uint8(rapid.IntRange(0, 2).Draw(t, "type")), 4,
				rapid.SliceOf(rapid.Byte()).Draw(t, "data"), rapid.Uint64().Draw(t, "index"), rapid.Uint64().Draw(t, "term"))
			b = appendRecord(b, recordHardState, 0, 4, nil, 1, 2, 3)
		}
		f.payload = uint32(len(b) - headerBytes)
		f.encode(b)
		var s seed
		sealRecords(&s, b[headerBytes:], f.inc, f.offset+headerBytes)
		b = append(b, make([]byte, f.size()-int64(len(b)))...)
		parse := func(b []byte) bool {
			_, ok := parseFrame(&s, b, f.number, f.inc, f.offset)
			return ok
		}
		require.True(t, parse(b))
		for _, ok := range []bool{
			parse(b[:rapid.IntRange(0, len(b)-1).Draw(t, "length")]),
			func() bool { _, ok := parseFrame(&s, b, f.number+1, f.inc, f.offset); return ok }(),
			func() bool { _, ok := parseFrame(&s, b, f.number, incarnation{1, 3}, f.offset); return ok }(),
			func() bool { _, ok := parseFrame(&s, b, f.number, f.inc, f.offset+pageBytes); return ok }(),
		} {
			require.False(t, ok)
		}
		bit := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		flipped := bytes.Clone(b)
		flipped[bit/8] ^= 1 << (bit % 8)
		require.False(t, parse(flipped))
	})
}

// Any bytes give a frame, or none; what is read encodes back to the same bytes.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(goldenPath)
	require.NoError(f, err)
	golden := dumped(f, string(text), 5*pageBytes)
	for at := 0; at < len(golden); at += pageBytes {
		f.Add(golden[at:], int64(at))
		f.Add(golden[at+headerBytes:], int64(at+headerBytes))
	}
	inc := incarnation{1, 2, 3, 4, 5, 6, 7, 8}
	f.Fuzz(func(t *testing.T, b []byte, at int64) {
		var s seed
		if h, ok, err := decodeSegmentHeader(b, 1); ok && err == nil {
			again := make([]byte, headerBytes)
			h.encode(again)
			require.Equal(t, again, b[:headerBytes])
		}
		_, _ = parseFrame(&s, b, 1, inc, at)
		if r, ok := parseRecord(&s, b, inc, at); ok {
			again := appendRecord(nil, r.kind, r.entryType, r.id, r.data, r.n[:r.kind.numbers()]...)
			sealRecords(&s, again, inc, at)
			require.Equal(t, again, b[:r.size])
		}
		if n := recordLength(b); n > 0 { // Again with the right checksum.
			b = bytes.Clone(b)
			sealRecords(&s, b[:n], inc, at)
			if r, ok := parseRecord(&s, b, inc, at); ok {
				require.Equal(t, n, r.size)
			}
		}
	})
}

// R4: a frame or a record of a kind that this version does not know, whole and in its place, is of a later version: the log
// is refused by that name and left as it is. It is no torn tail, which would be cut off, and no damage, for which the
// replicas would be lost. The same bytes with a wrong checksum are damage, or a tail.
func TestR4LaterKinds(t *testing.T) {
	name := segmentName(1)
	golden := disk{name: goldenSegment(t)}
	at := int64(pageBytes) // The last frame that holds something.
	var last frameHeader
	for {
		f, ok := decodeFrameHeader(golden[name][at:], 1, at)
		if !ok {
			break
		}
		if at += f.size(); f.payload > 0 { // The last one is but a mark.
			last = f
		}
	}
	require.Equal(t, frameBatch, last.kind)
	for what, change := range map[string]func(b []byte){
		"frame": func(b []byte) {
			binary.LittleEndian.PutUint32(b[atFrameKind:], uint32(frameBatch)+1)
			sealHeader(b)
		},
		"record": func(b []byte) {
			b[headerBytes+atKind] = byte(recordReset) + 1
			sealRecords(new(seed), b[headerBytes:headerBytes+last.payload], last.inc, last.offset+headerBytes)
		},
	} {
		d := golden.damaged(name, func(b []byte) { change(b[last.offset:]) })
		fs := d.fs(t)
		_, err := open(fs, 1)
		require.ErrorIs(t, err, ErrVersion, what)
		require.ErrorIs(t, err, feature.ErrLater, what)
		require.False(t, state.Damaged(err), what)
		require.Equal(t, d, readDisk(t, fs), what)

		flipped := d.damaged(name, func(b []byte) { b[last.offset+headerBytes+recordBytes]++ })
		if what == "frame" {
			flipped = d.damaged(name, func(b []byte) { b[last.offset+atFrameNumber]++ })
		}
		l, err := open(flipped.fs(t), 1)
		require.NotErrorIs(t, err, feature.ErrLater, what)
		if err == nil {
			require.NoError(t, l.Close())
		}
	}
}
