package blobs

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/services"
	"antipode/services/lease"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

const blockGoldenPath = "testdata/block.golden"

// goldenBlockRows are the rows that docs/format/blob.md spells out: keys within the
// partition, and values.
func goldenBlockRows(t require.TestingT) [][2][]byte {
	block := func(b Block) []byte {
		v, err := b.value()
		require.NoError(t, err)
		return v
	}
	const session, list geo.Timestamp = 0x1122334455667788, 0x1122334455667799
	return [][2][]byte{
		{{rowStaging}, appendStaging(nil, &Staging{Session: session, Last: session + 8, Count: 2, IDLength: 2})},
		{blockRow(session, "b1"), block(Block{Length: 5, Inline: []byte("hello")})},
		{blockRow(session, "b2"), block(Block{Length: 1<<20 + 1, Chunks: []extent.Ref{
			{ID: extent.ChunkID{1}, Length: 1 << 20, CRC: 0x01020304}, {ID: extent.ChunkID{15: 2}, Length: 1, CRC: 5},
		}})},
		{listRow(list, 0), appendSegment(nil, []entry{{session, 5, "b1"}, {session, 1<<20 + 1, "b2"}, {session, 5, "b1"}})},
		{appendedRow(session, 1<<32+5), block(Block{Length: 5, Inline: []byte("hello")})},
		{[]byte{rowStaging}, appendStaging(nil, &Staging{Copying: Copying{[16]byte{1, 15: 2}, list}})},
		{[]byte{rowStaging}, appendStaging(nil, &Staging{
			Session: session, Last: session + 8, Count: 2, IDLength: 2, Copying: Copying{[16]byte{3}, list},
		})},
	}
}

// The stored forms of blocks never change: what is written today equals the golden
// file.
func TestBlockGolden(t *testing.T) {
	var lines strings.Builder
	for _, kv := range goldenBlockRows(t) {
		fmt.Fprintf(&lines, "%x %x\n", kv[0], kv[1])
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(blockGoldenPath, []byte(lines.String()), 0o644))
	}
	want, err := os.ReadFile(blockGoldenPath)
	require.NoError(t, err)
	require.Equal(t, string(want), lines.String())
	fields := strings.Fields(string(want))
	value := func(i int) []byte {
		b, err := hex.DecodeString(fields[2*i+1])
		require.NoError(t, err)
		return b
	}
	s, err := parseStaging(value(0))
	require.NoError(t, err)
	require.Equal(t, Staging{Session: 0x1122334455667788, Last: 0x1122334455667790, Count: 2, IDLength: 2}, s)
	b, err := parseBlock(value(2))
	require.NoError(t, err)
	require.Equal(t, uint32(1<<20+1), b.Length)
	require.Len(t, b.Chunks, 2)
	entries, err := parseSegment(value(3))
	require.NoError(t, err)
	require.Equal(t, "b2", entries[1].id)
	key, err := hex.DecodeString(fields[8])
	require.NoError(t, err)
	_, start, err := parseAppended(key[9:], value(4))
	require.NoError(t, err)
	require.Equal(t, uint64(1<<32), start)
}

// Any bytes give a row or ErrMalformed, and what reads writes back to the same bytes.
func FuzzParseBlockRows(f *testing.F) {
	for _, kv := range goldenBlockRows(f) {
		f.Add(kv[1])
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		if s, err := parseStaging(v); err == nil {
			require.Equal(t, v, appendStaging(nil, &s))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
		if b, err := parseBlock(v); err == nil {
			out, err := b.value()
			require.NoError(t, err)
			require.Equal(t, v, out)
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
		if e, err := parseSegment(v); err == nil {
			require.Equal(t, v, appendSegment(nil, e))
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
	})
}

func stage(id, content string) *PutBlock {
	return &PutBlock{Command: Command{Name: testName("a")}, ID: id, Block: Block{Length: uint32(len(content)), Inline: []byte(content)}}
}

func named(which Which, ids ...string) *PutBlockList {
	w := &PutBlockList{Command: Command{Name: testName("a")}}
	for _, id := range ids {
		w.Blocks = append(w.Blocks, Named{which, id})
	}
	return w
}

// text reads the payload of blob "a" window by window.
func text(t require.TestingT, r *scanned) string {
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	return textOf(t, r, &b)
}

// textOf reads the payload of a blob, or of a snapshot, in the place of blob "a".
func textOf(t require.TestingT, r *scanned, b *Blob) string {
	var out []byte
	for off := uint64(0); off < b.Length; {
		w, err := WindowAt(r, testName("a"), b, off, b.Length)
		require.NoError(t, err)
		require.Equal(t, off, w.Start)
		require.Greater(t, w.End, off)
		for i := range w.Parts {
			out = append(out, w.Parts[i].Inline...)
		}
		off = w.End
	}
	require.Len(t, out, int(b.Length))
	return string(out)
}

// sweep drops what is dead, with so much work at a time.
func sweep(t *testing.T, r *scanned, at geo.Timestamp, budget int) {
	for from := []byte(nil); ; {
		rows, next, err := Dead(t.Context(), r, testName("a"), from, work(budget))
		require.NoError(t, err)
		require.NoError(t, r.commit(t, &DropDead{Command: Command{Name: testName("a")}, Rows: rows}, at))
		if next == nil {
			return
		}
		require.Positive(t, bytes.Compare(next, from), "the walk does not move on")
		from = next
	}
}

// model is a blob as protocol/blob.md 10 describes it, in maps.
type model struct {
	exists    bool
	content   string
	committed []string // ids
	blocks    map[string]string
	staged    map[string]string
}

func (m *model) commit(blocks []Named) bool {
	var content strings.Builder
	found, ids := map[string]string{}, []string(nil)
	for _, b := range blocks {
		text, ok := "", false
		if b.Which != Committed {
			text, ok = m.staged[b.ID]
		}
		if !ok && b.Which != Uncommitted {
			text, ok = m.blocks[b.ID]
		}
		if !ok {
			return false
		}
		found[b.ID] = text
		ids = append(ids, b.ID)
		content.WriteString(text)
	}
	m.exists, m.content, m.committed, m.blocks, m.staged = true, content.String(), ids, found, map[string]string{}
	return true
}

// Whatever is staged, committed, put and deleted in whatever order, the blob and its
// two block lists are those of a simple model; a prepared list and one that was
// overtaken do the same; and once the dead rows are dropped nothing is kept that is
// not named.
func TestBlocksModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &scanned{state: state{}}
		m := model{blocks: map[string]string{}, staged: map[string]string{}}
		id := rapid.SampledFrom([]string{"i1", "i2", "i3", "i4"})
		at := geo.Timestamp(100)
		left := false // Some write left dead rows.
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			at += 2
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1, 2, 3:
				i, body := id.Draw(rt, "id"), rapid.StringMatching("[a-z]{1,5}").Draw(rt, "body")
				w := stage(i, body)
				require.NoError(rt, r.commit(t, w, at))
				m.staged[i] = body
				left = left || w.Left
			case 4, 5, 6:
				w := &PutBlockList{Command: Command{Name: testName("a")}}
				which := map[string]Which{}
				for _, i := range rapid.SliceOfN(id, 0, 5).Draw(rt, "ids") {
					if which[i] == 0 {
						which[i] = rapid.SampledFrom([]Which{Committed, Uncommitted, Latest, Latest}).Draw(rt, "which")
					}
					w.Blocks = append(w.Blocks, Named{which[i], i})
				}
				var prepared error
				if rapid.Bool().Draw(rt, "prepare") {
					prepared = w.Prepare(t.Context(), r, at)
					if rapid.Bool().Draw(rt, "overtake") {
						prepared = nil
						i := id.Draw(rt, "id")
						require.NoError(rt, r.commit(t, stage(i, "new"), at))
						m.staged[i] = "new"
						at += 2
					}
				}
				if m.commit(w.Blocks) {
					require.NoError(rt, prepared)
					require.NoError(rt, r.commit(t, w, at))
					left = left || w.Left
				} else {
					require.ErrorIs(rt, r.commit(t, w, at), storageerr.InvalidBlockList)
				}
			case 7:
				w := put("a", "whole")
				require.NoError(rt, r.commit(t, w, at))
				left = left || w.Left
				m = model{exists: true, content: "whole", blocks: map[string]string{}, staged: map[string]string{}}
			case 8:
				w := &DeleteBlob{Command: Command{Name: testName("a")}, Uncommitted: true}
				err := r.commit(t, w, at)
				left = left || w.Left
				require.Equal(rt, m.exists || len(m.staged) > 0, err == nil)
				m = model{blocks: map[string]string{}, staged: map[string]string{}}
			case 9:
				sweep(t, r, at, 3*deadWork)
				left = false
			}
			if !left {
				rows, next, err := Dead(t.Context(), r, testName("a"), nil, work(1<<20))
				require.NoError(rt, err)
				require.Nil(rt, next)
				require.Empty(rt, rows, "dead rows that no write spoke of")
			}
			m.require(rt, r, at)
		}
		sweep(t, r, at, 3*deadWork)
		m.require(rt, r, at)
		want := len(m.staged) + len(m.blocks)
		if len(m.committed) > 0 {
			want++ // the row of the list
		}
		if len(m.staged) > 0 {
			want++
		}
		if m.exists {
			want++
		}
		require.Len(rt, r.state, want, "dead rows stay")
	})
}

func (m *model) require(t require.TestingT, r *scanned, at geo.Timestamp) {
	b, err := GetBlob(r, testName("a"))
	require.Equal(t, m.exists, err == nil)
	if m.exists {
		require.Equal(t, m.content, text(t, r))
		var ids []string
		if b.List != nil {
			for part := range b.List.Segments {
				infos, err := CommittedBlocks(r, testName("a"), &b, part)
				require.NoError(t, err)
				for _, i := range infos {
					require.Len(t, m.blocks[i.ID], int(i.Size))
					ids = append(ids, i.ID)
				}
			}
		}
		require.Equal(t, m.committed, ids)
	}
	s, live, _, err := GetStaging(r, testName("a"), at)
	require.NoError(t, err)
	require.Equal(t, len(m.staged) > 0, live)
	require.Equal(t, len(m.staged), int(s.Count))
	if !live {
		return
	}
	var staged []string
	for after := ""; ; {
		page, err := StagedBlocks(r, testName("a"), s, after, 2)
		require.NoError(t, err)
		for _, i := range page {
			require.Len(t, m.staged[i.ID], int(i.Size))
			staged = append(staged, i.ID)
			after = i.ID
		}
		if len(page) < 2 {
			break
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(m.staged)), staged)
	require.Equal(t, m.exists || len(m.staged) > 0, len(listAll(t, r, &Listing{
		Account: "acct", Container: "c-1", Generation: testName("").Generation, Uncommitted: true, Now: at,
	}, 9)) == 1)
}

// The longest list of the longest ids, over an old one as long, fits one change and
// names no chunk; the dead rows behind it go in changes of bounded size.
func TestLongestList(t *testing.T) {
	r := &scanned{state: state{}}
	id := func(i int) string { return fmt.Sprintf("%0*d", BlockIDMax, i) }
	at := geo.Timestamp(10)
	write := func(from int) outcome {
		w := named(Uncommitted)
		for i := range CommittedMax {
			at += 2
			require.NoError(t, r.commit(t, stage(id(from+i), "x"), at))
			w.Blocks = append(w.Blocks, Named{Uncommitted, id(from + i)})
		}
		_, err := w.Evaluate(r, at)
		require.ErrorIs(t, err, ErrOvertaken, "not prepared")
		require.NoError(t, w.Prepare(t.Context(), r, at))
		at += 2
		require.NoError(t, r.commit(t, stage(id(from), "x"), at))
		at += 2
		_, err = w.Evaluate(r, at)
		require.ErrorIs(t, err, ErrOvertaken)
		require.NoError(t, w.Prepare(t.Context(), r, at))
		at += 2
		e, err := w.Evaluate(r, at)
		require.NoError(t, err)
		require.Empty(t, e.Chunks)
		encoded, err := change.AppendRecord(nil, &change.Record{
			Account: "acct", Partition: w.Partition().Append(nil), Ops: e.Ops, Chunks: e.Chunks,
		})
		require.NoError(t, err)
		require.NoError(t, r.commit(t, w, at))
		return outcome{len(encoded), w.Left}
	}
	first := write(0)
	require.False(t, first.left)
	second := write(CommittedMax)
	require.True(t, second.left)
	require.Less(t, second.bytes, 5<<20)
	require.Len(t, text(t, r), CommittedMax)
	sweep(t, r, at+2, 1<<30)
	require.Len(t, r.state, 1+CommittedMax+(CommittedMax+segmentEntries-1)/segmentEntries)
	require.Len(t, text(t, r), CommittedMax)
}

// outcome is what came of one of the longest lists.
type outcome struct {
	bytes int
	left  bool
}

// The limits of blocks: one length of ids, their number, and a week without a new one.
func TestBlockLimits(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, stage("aa", "1"), 10))
	require.ErrorIs(t, r.commit(t, stage("aaa", "1"), 12), storageerr.InvalidBlobOrBlock)
	require.ErrorIs(t, stage("aaa", "1").Admit(r, 12), storageerr.InvalidBlobOrBlock)
	leased := stage("ab", "1")
	leased.Lease = &lease.ID{}
	require.ErrorIs(t, r.commit(t, leased, 12), storageerr.LeaseNotPresentOnBlob)
	require.ErrorIs(t, r.commit(t, stage("ab", ""), 12), ErrMalformed)

	full := Staging{Session: 10, Last: 12, Count: StagedMax, IDLength: 2}
	r.state[string(testName("a").keyOf([]byte{rowStaging}))] = appendStaging(nil, &full)
	require.ErrorIs(t, r.commit(t, stage("ab", "1"), 14), storageerr.BlockCountExceedsLimit)
	require.NoError(t, r.commit(t, stage("aa", "22"), 14), "one that is there is replaced")

	mixed := named(Latest, "aa", "bbb")
	require.ErrorIs(t, r.commit(t, mixed, 16), storageerr.InvalidBlobOrBlock)
	two := named(Latest, "aa")
	two.Blocks = append(two.Blocks, Named{Uncommitted, "aa"})
	require.ErrorIs(t, r.commit(t, two, 16), storageerr.InvalidBlockList)

	week := geo.Timestamp(14) + 7*24*3600*geo.TicksPerSecond
	_, live, _, err := GetStaging(r, testName("a"), week)
	require.NoError(t, err)
	require.True(t, live)
	week += 2
	require.ErrorIs(t, r.commit(t, named(Latest, "aa"), week), storageerr.InvalidBlockList)
	require.ErrorIs(t, r.commit(t, &DeleteBlob{Command: Command{Name: testName("a")}, Uncommitted: true}, week), storageerr.BlobNotFound)
	fresh := stage("longer", "1")
	require.NoError(t, r.commit(t, fresh, week))
	require.True(t, fresh.Left)
	sweep(t, r, week, 1<<20)
	require.Len(t, r.state, 2)
}

// Blocks alone are no blob: reads and old versions' deletes find none, and conditions
// see none.
func TestUncommittedBlob(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, stage("aa", "1"), 10))
	_, err := GetBlob(r, testName("a"))
	require.ErrorIs(t, err, storageerr.BlobNotFound)
	require.ErrorIs(t, r.commit(t, &DeleteBlob{Command: Command{Name: testName("a")}}, 12), storageerr.BlobNotFound)
	require.ErrorIs(t, r.commit(t, &SetMetadata{Command: Command{Name: testName("a")}}, 12), storageerr.BlobNotFound)
	l := listing()
	require.Empty(t, listAll(t, r, l, 10))
	l.Uncommitted = true
	require.Equal(t, []string{"a"}, listAll(t, r, l, 10))

	c := &asked{answer: storageerr.ConditionNotMet}
	w := named(Latest, "aa")
	w.Conditions = c
	require.ErrorIs(t, r.commit(t, w, 14), storageerr.ConditionNotMet)
	require.Equal(t, asked{creates: true, answer: c.answer}, *c)
	c.answer = nil
	require.NoError(t, r.commit(t, w, 14))
	require.False(t, w.Left)
	require.Equal(t, geo.Timestamp(14), w.Modified)
	require.ErrorIs(t, r.commit(t, &DropDead{Command: Command{Name: testName("a")}, Rows: [][]byte{listRow(14, 0)}}, 16), ErrMalformed)
	require.NoError(t, r.commit(t, &DeleteBlob{Command: Command{Name: testName("a")}}, 16))
	sweep(t, r, 18, 1<<20)
	require.Empty(t, r.state)
}

// Windows begin at any offset, end at their bounds, and put together are the payload,
// whether it is inline, in chunks or in blocks of both; the payload of a
// blob that was replaced, and of dropped rows, is ErrReplaced.
// It holds invariant 8.
func TestWindowAt(t *testing.T) {
	r := &scanned{state: state{}}
	var want []extent.Ref
	w := named(Latest)
	at := geo.Timestamp(10)
	for i := range 700 {
		id := fmt.Sprintf("%03d", i)
		var refs []extent.Ref
		length := uint32(0)
		for c := range i%4 + 1 {
			ref := extent.Ref{ID: extent.ChunkID{byte(i), byte(i >> 8), byte(c)}, Length: uint32(10 + c), CRC: 1}
			refs = append(refs, ref)
			length += ref.Length
		}
		p := stage(id, "")
		p.Block = Block{Length: length, Chunks: refs}
		at += 2
		require.NoError(t, r.commit(t, p, at))
		want = append(want, refs...)
		w.Blocks = append(w.Blocks, Named{Latest, id})
	}
	require.NoError(t, r.commit(t, w, at+2))
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	for _, off := range []uint64{0, 1, 9, 10, 5000, b.Length - 1} {
		got, next := []extent.Ref(nil), off
		for next < b.Length {
			win, err := WindowAt(r, testName("a"), &b, next, b.Length)
			require.NoError(t, err)
			require.LessOrEqual(t, win.Start, next)
			require.LessOrEqual(t, len(win.Parts), windowPartsMax)
			for _, p := range win.Parts {
				got = append(got, p.Chunk)
			}
			next = win.End
		}
		skip, start := 0, uint64(0)
		for start+uint64(want[skip].Length) <= off {
			start += uint64(want[skip].Length)
			skip++
		}
		require.Equal(t, want[skip:], got, "from %d", off)
	}
	one, err := WindowAt(r, testName("a"), &b, 10, 11)
	require.NoError(t, err)
	require.Len(t, one.Parts, 1)

	require.NoError(t, r.commit(t, put("a", "new"), at+4))
	sweep(t, r, at+6, 1<<20)
	_, err = WindowAt(r, testName("a"), &b, 0, b.Length)
	require.ErrorIs(t, err, ErrReplaced)
	plain := Blob{Length: 21, Chunks: want[1:3]}
	win, err := WindowAt(r, testName("a"), &plain, 12, 21)
	require.NoError(t, err)
	require.Equal(t, Window{Start: 10, End: 21, Parts: []Part{{Chunk: want[2]}}}, win)
	require.True(t, bytes.Equal([]byte("new"), []byte(text(t, r))))
}

// The longest Put Blob and the longest block, in chunks as the front end cuts them, fit
// one change with the chunks it names.
func TestLongestBodies(t *testing.T) {
	refs := func(mib int) []extent.Ref {
		out := make([]extent.Ref, mib)
		for i := range out {
			out[i] = extent.Ref{ID: extent.ChunkID{byte(i), byte(i >> 8)}, Length: ChunkBytesMax, CRC: 1}
		}
		return out
	}
	whole := &PutBlob{Command: Command{Name: testName("a")}, Blob: Blob{Length: 5000 << 20, Chunks: refs(5000)}}
	block := &PutBlock{Command: Command{Name: testName("a")}, ID: "i", Block: Block{Length: BlockBytesMax, Chunks: refs(4000)}}
	for _, w := range []services.Write{whole, block} {
		e, err := w.Evaluate(state{}, 10)
		require.NoError(t, err)
		encoded, err := change.AppendRecord(nil, &change.Record{
			Account: "acct", Partition: w.Partition().Append(nil), Ops: e.Ops, Chunks: e.Chunks,
		})
		require.NoError(t, err)
		require.Less(t, len(encoded), 256<<10)
		require.NotEmpty(t, e.Chunks)
	}
}

// A short list over a long one is not looked up while the range waits, but prepared again;
// a preparation ends with its request.
func TestShortListOverLongOne(t *testing.T) {
	r := &scanned{state: state{}}
	at := geo.Timestamp(10)
	long := named(Uncommitted)
	for i := range replanMax + segmentEntries {
		at += 2
		id := fmt.Sprintf("%05d", i)
		require.NoError(t, r.commit(t, stage(id, "x"), at))
		long.Blocks = append(long.Blocks, Named{Uncommitted, id})
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, long.Prepare(gone, r, at), context.Canceled)
	require.NoError(t, long.Prepare(t.Context(), r, at))
	at += 2
	require.NoError(t, r.commit(t, long, at))

	short := named(Committed, "00001", "00002")
	_, err := short.Evaluate(r, at+2)
	require.ErrorIs(t, err, ErrOvertaken)
	require.NoError(t, short.Prepare(t.Context(), r, at))
	require.NoError(t, r.commit(t, short, at+2))
	require.Equal(t, "xx", text(t, r))
}
