package engine

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"antipode/geo"
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
	return fmt.Sprintf("%d/%d %s %08x+%d", e.GetIndex(), e.GetTerm(), e.GetType(), crc32.Checksum(e.Data, castagnoli), len(e.Data))
}

// image is the whole of one range's log as a reader sees it.
type image struct {
	truncated, truncatedTerm uint64
	hard                     [3]uint64
	entries                  []*pb.Entry
}

func (m *image) last() uint64 { return m.truncated + uint64(len(m.entries)) }

func (m *image) term(index uint64) uint64 {
	if index == m.truncated {
		return m.truncatedTerm
	}
	return m.entries[index-m.truncated-1].GetTerm()
}

func (m *image) clone() image {
	c := *m
	c.entries = append([]*pb.Entry(nil), m.entries...)
	return c
}

func (m *image) append(entries ...*pb.Entry) {
	m.entries = append(m.entries[:entries[0].GetIndex()-m.truncated-1:entries[0].GetIndex()-m.truncated-1], entries...)
}

func (m *image) trim(index uint64) {
	m.truncatedTerm = m.term(index)
	m.entries, m.truncated = m.entries[index-m.truncated:], index
}

func (m *image) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "truncated %d/%d hard %v:", m.truncated, m.truncatedTerm, m.hard)
	for _, e := range m.entries {
		b.WriteString(" " + plain(e))
	}
	return b.String()
}

// imageOf reads all of g through raft.Storage.
func imageOf(t require.TestingT, g RangeLog) *image {
	first, err := g.FirstIndex()
	require.NoError(t, err)
	last, err := g.LastIndex()
	require.NoError(t, err)
	m := &image{truncated: first - 1}
	m.truncatedTerm, err = g.Term(first - 1)
	require.NoError(t, err)
	m.entries, err = g.Entries(first, last+1, math.MaxUint64)
	require.NoError(t, err)
	hs, _, err := g.InitialState()
	require.NoError(t, err)
	m.hard = [3]uint64{hs.GetTerm(), hs.GetVote(), hs.GetCommit()}
	for _, e := range m.entries {
		term, err := g.Term(e.GetIndex())
		require.NoError(t, err)
		require.Equal(t, e.GetTerm(), term)
	}
	return m
}

func requireImage(t require.TestingT, want *image, g RangeLog) {
	require.Equal(t, want.String(), imageOf(t, g).String())
	_, err := g.Term(want.last() + 1)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	_, err = g.Entries(want.last()+1, want.last()+2, math.MaxUint64)
	require.ErrorIs(t, err, raft.ErrUnavailable)
	if want.truncated > 0 {
		_, err = g.Term(want.truncated - 1)
		require.ErrorIs(t, err, raft.ErrCompacted)
		_, err = g.Entries(want.truncated, want.last()+1, math.MaxUint64)
		require.ErrorIs(t, err, raft.ErrCompacted)
	}
}

func openLog(t require.TestingT, fs vfs.FS) Log {
	l, err := OpenLog("log", Options{FS: fs, LogMemTableBytes: 256 << 10})
	require.NoError(t, err)
	return l
}

func openRange(t require.TestingT, l Log, r geo.RangeID) RangeLog {
	g, err := l.Range(r, []uint64{1, 2, 3})
	require.NoError(t, err)
	return g
}

func commit(t require.TestingT, l Log, sync bool, stage func(b LogBatch) error) {
	b := l.NewBatch()
	require.NoError(t, stage(b))
	require.NoError(t, b.Commit(sync))
}

// makeEntries returns count entries of size bytes from index first on.
func makeEntries(first, term uint64, count, size int) []*pb.Entry {
	var out []*pb.Entry
	for i := range count {
		out = append(out, entry(first+uint64(i), term, pb.EntryNormal, bytes.Repeat([]byte{byte(first) + byte(i), byte(term)}, size/2)))
	}
	return out
}

// Step by step, and again after opening anew: append, hard state, a conflicting suffix
// replaced, trim with the term at the cut kept, one range untouched by the other.
func TestLogSteps(t *testing.T) {
	fs := vfs.NewMem()
	l := openLog(t, fs)
	g, other := openRange(t, l, 4), openRange(t, l, 5)
	var want image
	requireImage(t, &want, g)
	step := func(stage func(b LogBatch) error) {
		commit(t, l, true, stage)
		requireImage(t, &want, g)
		require.NoError(t, l.Close())
		l = openLog(t, fs)
		g, other = openRange(t, l, 4), openRange(t, l, 5)
		requireImage(t, &want, g)
	}
	want.append(makeEntries(1, 1, 5, 100)...)
	step(func(b LogBatch) error { return g.Append(b, makeEntries(1, 1, 5, 100)) })
	want.hard = [3]uint64{2, 3, 4}
	term, vote, index := uint64(2), uint64(3), uint64(4)
	step(func(b LogBatch) error {
		return g.SetHardState(b, &pb.HardState{Term: &term, Vote: &vote, Commit: &index})
	})
	want.append(makeEntries(3, 2, 1, 60)...) // Entries 4 and 5 go with 3.
	step(func(b LogBatch) error { return g.Append(b, makeEntries(3, 2, 1, 60)) })
	want.trim(2)
	step(func(b LogBatch) error { return g.Trim(b, 2) })
	step(func(b LogBatch) error { return g.Trim(b, 1) }) // Already gone.
	want.trim(3)
	step(func(b LogBatch) error { return g.Trim(b, 3) })
	require.Zero(t, g.Bytes())
	want.append(makeEntries(4, 3, 2, 10)...)
	step(func(b LogBatch) error { return g.Append(b, makeEntries(4, 3, 2, 10)) })
	require.EqualValues(t, 2*(10+entryOverhead), g.Bytes())
	require.ErrorIs(t, g.Trim(l.NewBatch(), 6), raft.ErrUnavailable)
	requireImage(t, &image{}, other)
	_, cs, err := g.InitialState()
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, cs.GetVoters())
	require.NoError(t, l.Close())
}

// Entries gives all that fits maxSize, at least one, from disk, from memory and across
// the two, and overwriting reaches behind what is in memory (table against a plain
// count).
func TestEntriesMaxSize(t *testing.T) {
	const count, size = 20, 300 << 10
	l := openLog(t, vfs.NewMem())
	g := openRange(t, l, 4)
	all := makeEntries(1, 1, count, size)
	commit(t, l, true, func(b LogBatch) error { return g.Append(b, all) })
	inMemory := len(g.(*pebbleRangeLog).tail)
	require.Greater(t, inMemory, 2)
	require.Less(t, inMemory, count-2, "nothing is on disk alone")
	for lo := uint64(1); lo <= count+1; lo++ {
		for _, hi := range []uint64{lo, min(lo+1, count+1), min(lo+9, count+1), count + 1} {
			for fits, maxSize := range []uint64{0, size + entryOverhead, 3*(size+entryOverhead) - 1, 3 * (size + entryOverhead)} {
				got, err := g.Entries(lo, hi, maxSize)
				require.NoError(t, err)
				want := min(int(hi-lo), max(1, fits)) // 0 and 1: one; just under three: two.
				require.Len(t, got, want, "[%d, %d) in %d bytes", lo, hi, maxSize)
				for i, e := range got {
					require.Equal(t, plain(all[int(lo)-1+i]), plain(e))
				}
			}
		}
	}
	want := image{entries: all}
	requireImage(t, &want, g)
	want.append(makeEntries(3, 2, 2, 10)...)
	commit(t, l, true, func(b LogBatch) error { return g.Append(b, makeEntries(3, 2, 2, 10)) })
	requireImage(t, &want, g)
	require.NoError(t, l.Close())
}

// An entry that is gone from the middle of the log is a named error wherever the log
// is read, never a shorter log (R4, invariant 5).
func TestHoleIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	l := openLog(t, fs)
	g := openRange(t, l, 4)
	commit(t, l, true, func(b LogBatch) error { return g.Append(b, makeEntries(1, 1, 20, 300<<10)) })
	require.NoError(t, l.(*pebbleLog).db.Delete(entryKey(4, 3), pebble.Sync))
	for _, lo := range []uint64{1, 3} {
		for _, hi := range []uint64{4, 21} {
			for _, maxSize := range []uint64{1 << 20, math.MaxUint64} {
				_, err := g.Entries(lo, hi, maxSize)
				require.ErrorIs(t, err, ErrLogCorrupt)
			}
		}
	}
	_, err := g.Term(3)
	require.ErrorIs(t, err, ErrLogCorrupt)
	require.NoError(t, l.Close())
	l = openLog(t, fs)
	_, err = l.Range(4, nil)
	require.ErrorIs(t, err, ErrLogCorrupt)
	require.NoError(t, l.Close())
}

// randomStep stages a random step of a Raft log on g and does the same to m.
func randomStep(rng *rand.Rand, g RangeLog, m *image, b LogBatch, size int) error {
	switch rng.IntN(8) {
	case 0: // A new leader replaces a suffix, or starts above it.
		if at := m.truncated + 1 + rng.Uint64N(uint64(len(m.entries)+1)); at > 1 {
			entries := makeEntries(at, m.term(m.last())+1, 1+rng.IntN(3), rng.IntN(size))
			m.append(entries...)
			return g.Append(b, entries)
		}
	case 1:
		if index := m.truncated + rng.Uint64N(uint64(len(m.entries)+1)); index > m.truncated {
			m.trim(index)
			return g.Trim(b, index)
		}
	case 2, 3:
		m.hard = [3]uint64{m.hard[0] + rng.Uint64N(2), rng.Uint64N(4), m.last()}
		n := m.hard
		return g.SetHardState(b, &pb.HardState{Term: &n[0], Vote: &n[1], Commit: &n[2]})
	}
	entries := makeEntries(m.last()+1, max(1, m.term(m.last())), 1+rng.IntN(4), rng.IntN(size))
	m.append(entries...)
	return g.Append(b, entries)
}

// The log reads like a plain slice through any run of appends, overwrites, trims and
// reopenings, entries on disk and in memory alike (simple twin, over seeds).
func TestLogTwin(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewMem()
		l := openLog(t, fs)
		g := openRange(t, l, 4)
		var m image
		for range 50 {
			commit(t, l, false, func(b LogBatch) error { return randomStep(rng, g, &m, b, 300<<10) })
			if rng.IntN(10) == 0 {
				require.NoError(t, l.Close())
				l = openLog(t, fs)
				g = openRange(t, l, 4)
			}
			if rng.IntN(4) == 0 {
				requireImage(t, &m, g)
			}
		}
		requireImage(t, &m, g)
		require.NoError(t, l.Close())
	}
}

// Whatever Commit(true) returned for survives a crash of the file system, for every
// range in the batch; what was not synced survives whole batches from the oldest on, or
// not at all (R3, R4, invariant 1; over seeds, three crashes each).
func TestLogCrash(t *testing.T) {
	for _, percent := range []int{0, 50} {
		for seed := range uint64(6) {
			crashLog(t, percent, rand.New(rand.NewPCG(seed, uint64(percent))))
		}
	}
}

func crashLog(t *testing.T, percent int, rng *rand.Rand) {
	fs := vfs.NewCrashableMem()
	var models [2]image
	for range 3 {
		l := openLog(t, fs)
		logs := [2]RangeLog{openRange(t, l, 4), openRange(t, l, 5)}
		// states[i] is the log after i batches; those from synced on may be found.
		states, synced := []string{fmt.Sprint(&models[0], &models[1])}, 0
		after := [][2]image{{models[0].clone(), models[1].clone()}}
		for range 5 + rng.IntN(30) {
			sync := rng.IntN(3) == 0
			commit(t, l, sync, func(b LogBatch) error {
				for range 1 + rng.IntN(4) {
					i := rng.IntN(2)
					if err := randomStep(rng, logs[i], &models[i], b, 8<<10); err != nil {
						return err
					}
				}
				return nil
			})
			states = append(states, fmt.Sprint(&models[0], &models[1]))
			after = append(after, [2]image{models[0].clone(), models[1].clone()})
			if sync {
				synced = len(states) - 1
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		require.NoError(t, l.Close())
		fs = crashed
		l = openLog(t, fs)
		got := fmt.Sprint(imageOf(t, openRange(t, l, 4)), imageOf(t, openRange(t, l, 5)))
		require.NoError(t, l.Close())
		require.Contains(t, states[synced:], got)
		for i := synced; i < len(states); i++ {
			if states[i] == got {
				models = after[i]
			}
		}
	}
}
