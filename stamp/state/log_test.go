package state

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite", false, "add missing lines to the golden file")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const goldenPath = "testdata/log.golden"

func readGolden(t testing.TB) map[string]string {
	text, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	lines := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
			lines[name] = value
		}
	}
	return lines
}

func entry(index, term uint64, typ pb.EntryType, data []byte) *pb.Entry {
	return &pb.Entry{Index: &index, Term: &term, Type: &typ, Data: data}
}

// The keys and values of the log stay what they are: each is written as the golden
// file holds it, and read back from there. -rewrite adds lines and changes none.
// docs/format/log.md walks through it.
func TestGolden(t *testing.T) {
	normal, empty := entry(258, 7, pb.EntryNormal, []byte("group")), entry(259, 8, pb.EntryNormal, nil)
	conf := entry(260, 8, pb.EntryConfChangeV2, []byte{1})
	golden := readGolden(t)
	for _, c := range []struct {
		name string
		b    []byte
	}{
		{"hard state key r4", logKey(4, logHardState)},
		{"hard state term 7 vote 2 commit 258", appendNumbers(7, 2, 258)},
		{"truncated key r4", logKey(4, logTruncated)},
		{"truncated index 256 term 6", appendNumbers(256, 6)},
		{"entry key r4 index 258", entryKey(4, 258)},
		{"entry term 7 normal", appendEntry(nil, normal)},
		{"entry term 8 empty", appendEntry(nil, empty)},
		{"entry term 8 conf change v2", appendEntry(nil, conf)},
	} {
		if _, ok := golden[c.name]; !ok && *rewrite {
			f, err := os.OpenFile(goldenPath, os.O_APPEND|os.O_WRONLY, 0o644)
			require.NoError(t, err)
			_, err = fmt.Fprintf(f, "%s: %x\n", c.name, c.b)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			continue
		}
		require.Equal(t, golden[c.name], hex.EncodeToString(c.b), "the encoding of %q changed", c.name)
	}
	for name, want := range map[string]*pb.Entry{
		"entry term 7 normal": normal, "entry term 8 empty": empty, "entry term 8 conf change v2": conf,
	} {
		b, err := hex.DecodeString(readGolden(t)[name])
		require.NoError(t, err)
		got, err := parseEntry(want.GetIndex(), b)
		require.NoError(t, err)
		require.Equal(t, plain(want), plain(got))
	}
}

// An entry comes back as it went in, behind anything; one bit flipped, or cut short,
// and an entry or a hard state is refused (R4; property).
func TestEntryRefusesDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := entry(rapid.Uint64().Draw(t, "index"), rapid.Uint64().Draw(t, "term"),
			pb.EntryType(rapid.IntRange(0, 2).Draw(t, "type")), rapid.SliceOf(rapid.Byte()).Draw(t, "data"))
		b := appendEntry([]byte("before"), want)[len("before"):]
		got, err := parseEntry(want.GetIndex(), b)
		require.NoError(t, err)
		require.Equal(t, plain(want), plain(got))

		numbers := appendNumbers(want.GetIndex(), want.GetTerm(), 3)
		_, err = parseNumbers(numbers, 2)
		require.ErrorIs(t, err, ErrLogCorrupt)
		for _, v := range [][]byte{b, numbers} {
			parse := func(v []byte) error { _, err := parseEntry(1, v); return err }
			if &v[0] == &numbers[0] {
				parse = func(v []byte) error { _, err := parseNumbers(v, 3); return err }
			}
			require.NoError(t, parse(v))
			require.ErrorIs(t, parse(v[:rapid.IntRange(0, len(v)-1).Draw(t, "length")]), ErrLogCorrupt)
			bit := rapid.IntRange(0, 8*len(v)-1).Draw(t, "bit")
			v = bytes.Clone(v)
			v[bit/8] ^= 1 << (bit % 8)
			require.ErrorIs(t, parse(v), ErrLogCorrupt)
		}
	})
}

// Any bytes give an entry or an error; what is read encodes back to the same bytes.
func FuzzParseEntry(f *testing.F) {
	for _, v := range readGolden(f) {
		b, err := hex.DecodeString(v)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{})
	check := func(t *testing.T, b []byte) {
		e, err := parseEntry(9, b)
		if err != nil {
			require.ErrorIs(t, err, ErrLogCorrupt)
			return
		}
		require.Equal(t, b, appendEntry(nil, e))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		if len(b) >= entryHeader { // Again with the right checksum.
			b = bytes.Clone(b)
			crc := crc32.Update(crc32.Checksum(b[:10], castagnoli), castagnoli, b[entryHeader:])
			b[10], b[11], b[12], b[13] = byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24)
			check(t, b)
		}
		_, _ = parseNumbers(b, 2)
		_, _ = parseNumbers(b, 3)
	})
}

func plain(e *pb.Entry) string {
	return fmt.Sprintf("%d/%d %s %x", e.GetIndex(), e.GetTerm(), e.GetType(), e.Data)
}

func openLog(t require.TestingT, fs vfs.FS) Log {
	l, err := OpenLog("log", Options{FS: fs, LogMemTableBytes: 256 << 10})
	require.NoError(t, err)
	return l
}

// An entry that is gone from the middle of the log is a named error wherever the log
// is read, never a shorter log (R4, invariant 5).
func TestHoleIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	l := openLog(t, fs)
	g, err := l.Range(4, nil)
	require.NoError(t, err)
	b := l.NewBatch()
	for i := range uint64(20) {
		require.NoError(t, g.Append(b, []*pb.Entry{entry(1+i, 1, pb.EntryNormal, make([]byte, 300<<10))}))
	}
	require.NoError(t, b.Commit(true))
	require.NoError(t, l.(*pebbleLog).db.Delete(entryKey(4, 3), pebble.Sync))
	for _, lo := range []uint64{1, 3} {
		for _, hi := range []uint64{4, 21} {
			for _, maxSize := range []uint64{1 << 20, math.MaxUint64} {
				_, err := g.Entries(lo, hi, maxSize)
				require.ErrorIs(t, err, ErrLogCorrupt)
			}
		}
	}
	_, err = g.Term(3)
	require.ErrorIs(t, err, ErrLogCorrupt)
	require.NoError(t, l.Close())
	l = openLog(t, fs)
	_, err = l.Range(4, nil)
	require.ErrorIs(t, err, ErrLogCorrupt)
	require.NoError(t, l.Close())
}
