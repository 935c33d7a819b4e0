package blobs

import (
	"fmt"
	"maps"
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
	"antipode/stamp/feature"
)

// copyOf returns the copy of a blob, or of a snapshot, onto blob "a".
func copyOf(t require.TestingT, r *scanned, n Name, b Blob) *CopyBlob {
	w := &CopyBlob{Command: Command{Name: testName("a")}, Blob: Blob{
		MD5: b.MD5, Properties: b.Properties, Metadata: b.Metadata,
		Copied: &Copied{ID: [16]byte{1}, Source: "http://source", Bytes: b.Length},
	}}
	w.Begin(w.Blob.Copied.ID)
	if !b.InRows() {
		w.Blob.Inline, w.Blob.Chunks, w.Blob.Length = b.Inline, b.Chunks, b.Length
		return w
	}
	if b.Appended != nil {
		w.Blob.Appended = &Appended{Sealed: b.Appended.Sealed}
	}
	for off := uint64(0); off < b.Length; {
		blocks, next, err := BlocksAt(r, n, &b, off, w.Has)
		require.NoError(t, err)
		require.Greater(t, next, off)
		w.Add(blocks)
		off = next
	}
	return w
}

func none(string) bool { return false }

func blobAt(t require.TestingT, r *scanned, name string) Blob {
	b, err := GetBlob(r, testName(name))
	require.NoError(t, err)
	return b
}

// underway is a copy in steps of TestR9SnapshotsModel.
type underway struct {
	w    *CopyBlob
	next *kept
	// rows are those of its blocks, zero if none was staged, or another write has ended it.
	rows int
}

// begin begins a copy of the blob or of a snapshot onto the blob, in place of one under way.
func (u *underway) begin(rt *rapid.T, r *scanned, base *kept, snaps map[geo.Timestamp]*kept) {
	from := slices.Sorted(maps.Keys(snaps))
	if base != nil {
		from = append(from, 0)
	}
	if len(from) == 0 {
		return
	}
	at := rapid.SampledFrom(from).Draw(rt, "source")
	b, source := blobAt(rt, r, "a"), base
	if at != 0 {
		var err error
		b, err = GetSnapshot(r, testName("a"), at)
		require.NoError(rt, err)
		source = snaps[at]
	}
	u.w, u.next = copyOf(rt, r, testName("a"), b), &kept{text: source.text, listed: source.listed, list: new(int)}
	u.w.Begin([16]byte{byte(rapid.IntRange(1, 3).Draw(rt, "copy"))})
	if source.listed {
		u.next.blocks = map[string]*string{}
		for id, b := range source.blocks {
			own := *b
			u.next.blocks[id] = &own
		}
	}
}

// stage returns the next step, nil if there is none.
func (u *underway) stage() *StageCopy {
	if u.w == nil || len(u.w.blocks) == 0 {
		return nil
	}
	s := &StageCopy{Command: Command{Name: u.w.Name}, ID: u.w.id, Session: u.w.session, Blocks: u.w.blocks[:1]}
	u.w.blocks = u.w.blocks[1:]
	return s
}

func (u *underway) staged(s *StageCopy) {
	if s.Session == 0 {
		u.rows = 0
	}
	u.rows += len(s.Blocks)
	u.w.Staged(s)
}

// A copy has the content, properties, metadata and block list of its source, in other rows: it stays as it is whatever
// becomes of the source, and keeps lease, snapshots and tier of what it replaces. Its change names all chunks (R3).
func TestCopyBlob(t *testing.T) {
	r := &scanned{state: state{}}
	source := func(name string) Command { return Command{Name: testName(name)} }
	chunked := stage("i2", "")
	chunked.Block = Block{Length: 9, Chunks: []extent.Ref{{ID: extent.ChunkID{7}, Length: 9}}}
	for at, w := range []*PutBlock{stage("i1", "one"), chunked, stage("i3", "three")} {
		w.Command = source("s")
		require.NoError(t, r.commit(t, w, geo.Timestamp(1+at)))
	}
	list := named(Latest, "i1", "i2", "i1", "i3")
	list.Command, list.Blob.MD5, list.Blob.Metadata = source("s"), []byte{1}, []Pair{{Name: "k", Value: "v"}}
	list.Blob.Properties.ContentType = "a/b"
	require.NoError(t, r.commit(t, list, 5))

	over := put("a", "old")
	over.Blob.Tier = TierCool
	require.NoError(t, r.commit(t, over, 6))
	require.NoError(t, r.commit(t, snapshot(), 7))
	require.NoError(t, r.commit(t, stage("x", "uncommitted"), 8))
	require.NoError(t, r.commit(t, acquire(lease.ID{1}, 0), 9))

	w := copyOf(t, r, testName("s"), blobAt(t, r, "s"))
	w.LeaseNeeded = true
	require.ErrorIs(t, r.commit(t, w, 10), storageerr.LeaseIDMissing)
	w.Lease = &lease.ID{1}
	effect, err := w.Evaluate(r, 10)
	require.NoError(t, err)
	require.Equal(t, chunked.Block.Chunks, effect.Chunks)
	require.Equal(t, feature.Blobs, effect.Level)
	require.NoError(t, r.commit(t, w, 10))
	require.Equal(t, geo.Timestamp(10), w.Modified)
	require.True(t, w.Left)
	b := blobAt(t, r, "a")
	require.Equal(t, &Copied{ID: [16]byte{1}, Source: "http://source", Bytes: 20, Ended: 10}, b.Copied)
	require.Equal(t, []any{TierCool, uint64(1), lease.ID{1}, "a/b", []byte{1}, uint64(20)},
		[]any{b.Tier, b.Snapshots.Count, b.Lease.ID, b.Properties.ContentType, b.MD5, b.Length})
	require.Equal(t, list.Blob.Metadata, b.Metadata)
	_, live, there, err := GetStaging(r, testName("a"), 10)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false}, []bool{live, there})
	gone := remove(SnapshotsRefuse)
	gone.Command = source("s")
	require.NoError(t, r.commit(t, gone, 11))
	for k := range r.state { // As DropDead does it.
		if strings.HasPrefix(k, string(testName("s").keyOf(nil))) {
			delete(r.state, k)
		}
	}
	sweep(t, r, 12, 3*deadWork)
	info, err := CommittedBlocks(r, testName("a"), &b, 0)
	require.NoError(t, err)
	require.Equal(t, []BlockInfo{{"i1", 3}, {"i2", 9}, {"i1", 3}, {"i3", 5}}, info)
	win, err := WindowAt(r, testName("a"), &b, 0, b.Length)
	require.NoError(t, err)
	require.Equal(t, []Part{{Inline: []byte("one")}, {Chunk: chunked.Block.Chunks[0]}, {Inline: []byte("one")}, {Inline: []byte("three")}}, win.Parts)
}

// What is copied of an append blob grows by itself.
func TestCopyAppendBlob(t *testing.T) {
	r := &scanned{state: state{}}
	create := &PutBlob{Command: Command{Name: testName("s")}, Append: true}
	require.NoError(t, r.commit(t, create, 1))
	add := func(name, text string) *AppendBlock {
		return &AppendBlock{Command: Command{Name: testName(name)}, Block: Block{Length: uint32(len(text)), Inline: []byte(text)}}
	}
	for i := range geo.Timestamp(2*copyBlocksMax + 1) {
		require.NoError(t, r.commit(t, add("s", fmt.Sprintf("%04d", i)), 2+i))
	}
	early := blobAt(t, r, "s")
	require.NoError(t, r.commit(t, add("s", "more"), 1000))
	for _, other := range []*PutBlob{put("a", "x"), {Command: Command{Name: testName("a")}, Append: true}} {
		require.NoError(t, r.commit(t, other, 1001))
		w := copyOf(t, r, testName("s"), early)
		if !other.Append {
			require.ErrorIs(t, r.commit(t, w, 1002), storageerr.InvalidBlobType)
			w.AnyType = true
			require.NoError(t, r.commit(t, snapshot(), 1002))
			require.ErrorIs(t, r.commit(t, w, 1003), storageerr.SnapshotsPresent)
			require.NoError(t, r.commit(t, removeSnapshot(1002), 1004))
		}
		require.NoError(t, r.commit(t, w, 1005))
		require.NoError(t, r.commit(t, add("a", "own"), 1006))
		b := blobAt(t, r, "a")
		require.Equal(t, uint32(2*copyBlocksMax+2), b.Appended.Blocks)
		require.NotNil(t, b.Copied, "an append leaves it")
		content := text(t, r)
		require.True(t, strings.HasPrefix(content, "000000010002"))
		require.True(t, strings.HasSuffix(content, "0512own"))
		require.Len(t, content, int(early.Length)+3)
		sweep(t, r, 1007, 50*deadWork)
		require.Equal(t, content, text(t, r))
	}
	sealed := early
	sealed.Appended = &Appended{Session: early.Appended.Session, Blocks: early.Appended.Blocks, Sealed: true}
	require.NoError(t, r.commit(t, copyOf(t, r, testName("s"), sealed), 1010))
	require.ErrorIs(t, r.commit(t, add("a", "own"), 1011), storageerr.BlobIsSealed)
}

// A copy of more than one change takes: each stays far below the longest record, and nothing of it is read before the last.
func TestCopyInSteps(t *testing.T) {
	r := &scanned{state: state{}}
	const blocks = 3000
	list := named(Latest)
	list.Command = Command{Name: testName("s")}
	for i := range blocks {
		w := stage(fmt.Sprintf("%06d", i), "")
		w.Command = list.Command
		for c := range 16 {
			w.Block.Chunks = append(w.Block.Chunks, extent.Ref{ID: extent.ChunkID{byte(i), byte(i >> 8), byte(c)}, Length: 1 << 20})
			w.Block.Length += 1 << 20
		}
		require.NoError(t, r.commit(t, w, geo.Timestamp(1+i)))
		list.Blocks = append(list.Blocks, Named{Latest, w.ID})
	}
	list.Blocks = append(list.Blocks, list.Blocks[:100]...) // Named again.
	require.NoError(t, list.Prepare(t.Context(), r, 5000))
	require.NoError(t, r.commit(t, list, 5000))
	require.NoError(t, r.commit(t, put("a", "old"), 5001))

	copies := func() (*CopyBlob, int) {
		b := blobAt(t, r, "s")
		w := &CopyBlob{Command: Command{Name: testName("a")}}
		w.Begin([16]byte{9})
		steps, at := 0, geo.Timestamp(6000)
		for off := uint64(0); off < b.Length; {
			blocks, next, err := BlocksAt(r, testName("s"), &b, off, w.Has)
			require.NoError(t, err)
			off = next
			if full := w.Add(blocks); !full {
				continue
			}
			for s := w.Stage(); s != nil; s = w.Stage() {
				effect, err := s.Evaluate(r, at)
				require.NoError(t, err)
				require.Equal(t, feature.Blobs, effect.Level)
				require.Less(t, sizeOf(effect), 2*stageBytes)
				require.Len(t, effect.Chunks, 16*(len(effect.Ops)-1), "R3: all chunks of the blocks are named")
				require.NoError(t, r.commit(t, s, at))
				w.Staged(s)
				steps, at = steps+1, at+1
			}
		}
		return w, steps
	}
	w, steps := copies()
	require.Greater(t, steps, 3)
	require.Equal(t, "old", text(t, r))
	sweep(t, r, 7000, 1000*deadWork)
	effect, err := w.Evaluate(r, 7001)
	require.NoError(t, err)
	require.Less(t, sizeOf(effect), change.RecordBytesMax/2)
	require.NoError(t, r.commit(t, w, 7001))
	b, source := blobAt(t, r, "a"), blobAt(t, r, "s")
	require.Equal(t, source.Length, b.Length)
	require.Len(t, b.List.Segments, len(source.List.Segments))
	sweep(t, r, 7002, 1000*deadWork)
	for off := uint64(0); off < b.Length; {
		got, next, err := BlocksAt(r, testName("a"), &b, off, none)
		require.NoError(t, err)
		want, _, err := BlocksAt(r, testName("s"), &source, off, none)
		require.NoError(t, err)
		require.Equal(t, want, got)
		off = next
	}
}

func sizeOf(e services.Effect) (n int) {
	for _, op := range e.Ops {
		n += len(op.Row) + len(op.Value)
	}
	return n + refLen*len(e.Chunks)
}

// A copy in steps ends by every write that replaces the blob or deletes it, and by no other.
func TestCopyOvertaken(t *testing.T) {
	a := testName("a")
	tags := &SetTags{Command: Command{Name: a}, Tags: []Pair{{Name: "k"}}}
	other := &StageCopy{Command: Command{Name: a}, ID: [16]byte{8}, Blocks: []CopyBlock{{"o", Block{Length: 1, Inline: []byte("x")}}}}
	for name, c := range map[string]struct {
		w    services.Write
		want error
	}{
		"put blob": {put("a", "new"), ErrOvertaken}, "list": {named(Latest), ErrOvertaken}, "delete": {remove(SnapshotsRefuse), ErrOvertaken},
		"other copy": {other, ErrOvertaken}, "block": {stage("i9", "x"), nil}, "snapshot": {snapshot(), nil}, "tags": {tags, nil},
		"metadata": {&SetMetadata{Command: Command{Name: a}}, nil}, "snapshots": {remove(SnapshotsOnly), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &scanned{state: state{}}
			require.NoError(t, r.commit(t, put("a", "old"), 1))
			w := &CopyBlob{Command: Command{Name: a}}
			w.Begin([16]byte{9})
			u := &underway{w: w}
			w.Add([]CopyBlock{{"i1", Block{Length: 3, Inline: []byte("one")}}, {"i2", Block{Length: 3, Inline: []byte("two")}}})
			first := u.stage()
			require.NoError(t, r.commit(t, first, 2))
			u.staged(first)
			require.NoError(t, r.commit(t, c.w, 3))
			sweep(t, r, 4, 50*deadWork)
			require.ErrorIs(t, r.commit(t, u.stage(), 5), c.want)
			require.ErrorIs(t, r.commit(t, w, 6), c.want)
			if c.want == nil {
				require.Equal(t, "onetwo", text(t, r))
				_, live, _, err := GetStaging(r, a, 6)
				require.NoError(t, err)
				require.False(t, live)
			}
		})
	}
	// Nothing of it is a blob, or uncommitted blocks.
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, other, 1))
	_, err := GetBlob(r, a)
	require.ErrorIs(t, err, storageerr.BlobNotFound)
	uncommitted := remove(SnapshotsRefuse)
	uncommitted.Uncommitted = true
	require.ErrorIs(t, r.commit(t, uncommitted, 2), storageerr.BlobNotFound)
	l := listing()
	l.Uncommitted = true
	require.Empty(t, listAll(t, r, l, 2))
	require.NoError(t, r.commit(t, stage("i1", "x"), 3))
	require.Equal(t, []string{"a"}, listAll(t, r, l, 2))
	only := remove(SnapshotsOnly)
	only.Uncommitted = true
	require.ErrorIs(t, r.commit(t, only, 4), storageerr.BlobNotFound, "it asks for snapshots alone")
	require.NoError(t, r.commit(t, uncommitted, 5))
	sweep(t, r, 6, 50*deadWork)
	require.Empty(t, r.state)
}

// The copy on record goes with what describes the content, and stays with what does not.
func TestCopiedOnRecord(t *testing.T) {
	a := Command{Name: testName("a")}
	for name, c := range map[string]struct {
		w    services.Write
		want bool
	}{
		"metadata": {&SetMetadata{Command: a}, false}, "properties": {&SetProperties{Command: a}, false}, "put": {put("a", "x"), false},
		"list": {named(Latest), false}, "tags": {&SetTags{Command: a}, true}, "lease": {acquire(lease.ID{1}, 15), true},
		"block": {stage("i", "x"), true}, "snapshot": {snapshot(), true},
	} {
		r := &scanned{state: state{}}
		require.NoError(t, r.commit(t, copyOf(t, r, testName("a"), Blob{Length: 3, Inline: []byte("abc")}), 1))
		require.NoError(t, r.commit(t, c.w, 2))
		b := blobAt(t, r, "a")
		require.Equal(t, c.want, b.Copied != nil, name)
		if s, is := c.w.(*SnapshotBlob); is {
			kept, err := GetSnapshot(r, testName("a"), s.Snapshot)
			require.NoError(t, err)
			require.Equal(t, b.Copied, kept.Copied)
		}
	}
}

// What a source has read of it at once is bounded: a block that is named again is read once, and long blocks come few at a time.
func TestBlocksAtIsBounded(t *testing.T) {
	r := &scanned{state: state{}}
	list := named(Latest)
	long := Block{}
	for i := range 4000 {
		long.Chunks = append(long.Chunks, extent.Ref{ID: extent.ChunkID{byte(i), byte(i >> 8)}, Length: 1 << 20})
		long.Length += 1 << 20
	}
	for i := range 9 {
		w := stage(fmt.Sprintf("%02d", i), "")
		w.Block = long
		require.NoError(t, r.commit(t, w, geo.Timestamp(1+i)))
	}
	for i := range 2000 {
		list.Blocks = append(list.Blocks, Named{Latest, fmt.Sprintf("%02d", i%9)})
	}
	require.NoError(t, list.Prepare(t.Context(), r, 50))
	require.NoError(t, r.commit(t, list, 50))
	b, w := blobAt(t, r, "a"), &CopyBlob{Command: Command{Name: testName("b")}}
	w.Begin([16]byte{1})
	calls, ids := 0, ""
	for off := uint64(0); off < b.Length; calls++ {
		blocks, next, err := BlocksAt(r, testName("a"), &b, off, w.Has)
		require.NoError(t, err)
		rows := 0
		for _, block := range blocks {
			ids += block.ID
			rows += block.rowBytes()
			require.Equal(t, long.Length, block.Length)
		}
		require.Less(t, rows, stageBytes+4000*2*refLen+100)
		for w.Add(blocks); ; {
			s := w.Stage()
			if s == nil {
				break
			}
			require.NoError(t, r.commit(t, s, geo.Timestamp(60+calls)))
			w.Staged(s)
		}
		off = next
	}
	require.Less(t, calls, 20)
	require.Len(t, w.seen, 9)
	require.NoError(t, r.commit(t, w, 100))
	copied, got := blobAt(t, r, "b"), ""
	for part := range copied.List.Segments {
		info, err := CommittedBlocks(r, testName("b"), &copied, part)
		require.NoError(t, err)
		for _, i := range info {
			got += i.ID
		}
	}
	require.Equal(t, ids, got)
	require.Equal(t, b.Length, copied.Length)
}

// A copy that breaks off is ended, and leaves nothing; one that was committed, or that another write has ended, is left alone. So
// are uncommitted blocks.
func TestCopyEnds(t *testing.T) {
	staged := func(r *scanned, id byte, at geo.Timestamp) *CopyBlob {
		w := &CopyBlob{Command: Command{Name: testName("a")}}
		w.Begin([16]byte{id})
		require.Nil(t, w.End(), "nothing was staged")
		u := &underway{w: w}
		w.Add([]CopyBlock{{"i1", Block{Length: 3, Inline: []byte("one")}}, {"i2", Block{Length: 3, Inline: []byte("two")}}})
		first := u.stage()
		require.NoError(t, r.commit(t, first, at))
		w.Staged(first)
		return w
	}
	r := &scanned{state: state{}}
	w := staged(r, 1, 1)
	end := w.End()
	require.NoError(t, r.commit(t, end, 2))
	require.True(t, end.Left)
	sweep(t, r, 3, 50*deadWork)
	require.Empty(t, r.state)
	require.ErrorIs(t, r.commit(t, w, 4), ErrOvertaken)

	require.NoError(t, r.commit(t, stage("x", "uncommitted"), 5))
	before := maps.Clone(r.state)
	require.NoError(t, r.commit(t, staged(r, 2, 6).End(), 7))
	sweep(t, r, 8, 50*deadWork)
	require.Equal(t, before, r.state)

	old, w := staged(r, 3, 9), staged(r, 4, 10)
	require.NoError(t, r.commit(t, old.End(), 11))
	require.NoError(t, r.commit(t, w, 12))
	require.Equal(t, "onetwo", text(t, r))
	end = w.End()
	require.NoError(t, r.commit(t, end, 13))
	require.False(t, end.Left)
	require.Equal(t, "onetwo", text(t, r))

	// A copy by a single change over one under way leaves the blocks of the latter dead.
	staged(r, 5, 14)
	over := copyOf(t, r, testName("a"), Blob{Length: 1, Inline: []byte("x")})
	require.NoError(t, r.commit(t, put("a", "plain"), 15))
	sweep(t, r, 16, 50*deadWork)
	staged(r, 6, 17)
	require.NoError(t, r.commit(t, over, 18))
	require.True(t, over.Left)
	sweep(t, r, 19, 50*deadWork)
	require.Len(t, r.state, 1)
}
