package blobs

import (
	"bytes"
	"errors"
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

func create() *PutBlob { return &PutBlob{Command: Command{Name: testName("a")}, Append: true} }

func appended(content string) *AppendBlock {
	return &AppendBlock{Command: Command{Name: testName("a")}, Block: Block{Length: uint32(len(content)), Inline: []byte(content)}}
}

func sealing() *Seal { return &Seal{Command: Command{Name: testName("a")}} }

// The life of an append blob: made empty, appended to, sealed, then no more; each append has the offset at which the one before
// it ended, and moves the ETag, which a seal does not. A replacement of either type ends it.
//
// Capability: Blobs: Append blobs.
func TestAppend(t *testing.T) {
	r := &scanned{state: state{}}
	made := create()
	made.Blob.Properties.ContentType, made.Blob.MD5 = "text/x", []byte{1}
	require.NoError(t, r.commit(t, made, 10))
	require.Equal(t, geo.Timestamp(10), made.Modified)
	require.False(t, made.Left)
	require.Nil(t, made.Blob.Appended, "evaluated again it would have another session")
	require.Empty(t, text(t, r))

	for i, body := range []string{"one", "t", "three"} {
		w := appended(body)
		require.NoError(t, r.commit(t, w, geo.Timestamp(20+i)))
		require.Equal(t, []uint64{0, 3, 4}[i], w.Offset)
		require.Equal(t, uint32(i+1), w.Blocks)
		require.Equal(t, geo.Timestamp(20+i), w.Modified)
		require.False(t, w.Left)
		b, err := GetBlob(r, testName("a"))
		require.NoError(t, err)
		require.Equal(t, w.Modified, b.Modified)
	}
	require.Equal(t, "onetthree", text(t, r))
	require.ErrorIs(t, r.commit(t, appended(""), 25), ErrMalformed)
	require.NoError(t, r.commit(t, &SetMetadata{Command: Command{Name: testName("a")}, Metadata: []Pair{{Name: "k", Value: "v"}}}, 30))
	seal := sealing()
	require.NoError(t, r.commit(t, seal, 40))
	require.Equal(t, geo.Timestamp(30), seal.Modified)
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	require.Equal(t, Blob{
		Modified: 30, Created: 10, Length: 9, MD5: []byte{1}, Properties: Properties{ContentType: "text/x"},
		Metadata: []Pair{{Name: "k", Value: "v"}}, Appended: &Appended{Session: 10, Blocks: 3, Sealed: true},
	}, b)
	e, err := sealing().Evaluate(r, 50)
	require.NoError(t, err)
	require.Empty(t, e.Ops, "it is sealed already")
	require.ErrorIs(t, r.commit(t, appended("x"), 50), storageerr.BlobIsSealed)
	require.NoError(t, r.commit(t, &SetProperties{Command: Command{Name: testName("a")}}, 60))
	require.Equal(t, "onetthree", text(t, r))

	again := create()
	require.NoError(t, r.commit(t, again, 70))
	require.True(t, again.Left)
	require.NoError(t, r.commit(t, appended("new"), 80))
	require.Equal(t, "new", text(t, r))
	sweep(t, r, 90, 1<<20)
	require.Len(t, r.state, 2)
	require.Equal(t, "new", text(t, r), "the rows of the session are alive")

	plain := put("a", "block blob")
	require.NoError(t, r.commit(t, plain, 100))
	require.True(t, plain.Left)
	require.Equal(t, "block blob", text(t, r))
	sweep(t, r, 110, 1<<20)
	require.Len(t, r.state, 1)
}

// A blob of each type refuses what only the other type has, before its conditions; each may replace the other, and what was
// staged ends with that. A tier is not inherited by an append blob.
func TestTypes(t *testing.T) {
	r := &scanned{state: state{}}
	unmet := Guard{Conditions: &asked{answer: storageerr.ConditionNotMet}}
	require.ErrorIs(t, r.commit(t, appended("x"), 5), storageerr.BlobNotFound)
	require.ErrorIs(t, r.commit(t, sealing(), 5), storageerr.BlobNotFound)
	require.NoError(t, r.commit(t, stage("aa", "staged"), 8))
	require.ErrorIs(t, r.commit(t, appended("x"), 9), storageerr.BlobNotFound, "blocks alone are no blob")
	plain := put("a", "x")
	plain.Blob.Tier = TierCool
	require.NoError(t, r.commit(t, plain, 10))
	require.NoError(t, r.commit(t, stage("aa", "staged"), 12))
	for _, guard := range []Guard{{}, unmet} {
		a, s := appended("x"), sealing()
		a.Guard, s.Guard = guard, guard
		require.ErrorIs(t, r.commit(t, a, 20), storageerr.InvalidBlobType)
		require.ErrorIs(t, a.Admit(r, 20), storageerr.InvalidBlobType)
		require.ErrorIs(t, r.commit(t, s, 20), storageerr.InvalidBlobType)
	}
	made := create()
	require.NoError(t, r.commit(t, made, 30))
	require.True(t, made.Left, "what was staged")
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	require.Equal(t, TierDefault, b.Tier)
	_, _, there, err := GetStaging(r, testName("a"), 30)
	require.NoError(t, err)
	require.False(t, there)
	for _, guard := range []Guard{{}, unmet} {
		list, block := named(Latest), stage("aa", "x")
		list.Guard = guard
		require.ErrorIs(t, r.commit(t, block, 40), storageerr.InvalidBlobType)
		require.ErrorIs(t, block.Admit(r, 40), storageerr.InvalidBlobType)
		require.ErrorIs(t, r.commit(t, list, 40), storageerr.InvalidBlobType)
		require.ErrorIs(t, list.Prepare(t.Context(), r, 40), storageerr.InvalidBlobType)
	}
	require.NoError(t, r.commit(t, &SnapshotBlob{Command: Command{Name: testName("a")}}, 44))
	require.ErrorIs(t, r.commit(t, put("a", "x"), 46), storageerr.SnapshotsPresent)
	require.NoError(t, r.commit(t, create(), 48), "the same type")
	del := &DeleteBlob{Command: Command{Name: testName("a")}, Snapshots: SnapshotsInclude}
	require.NoError(t, r.commit(t, del, 50))
	require.NoError(t, r.commit(t, create(), 60))
	require.NoError(t, r.commit(t, appended("x"), 61))
	require.NoError(t, r.commit(t, del, 62))
	require.True(t, del.Left)
}

// What an append tests, in order: the blob, its type, the conditions of HTTP, the lease, the seal, the position, the size, the
// number of blocks. Each fault hides those after it, before the body is taken and at evaluation.
//
// Capability: Blobs: Append blobs.
func TestOrderOfAppend(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, create(), 10))
	require.NoError(t, r.commit(t, appended("hello"), 12))
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	b.Length, b.Appended.Blocks, b.Appended.Sealed = CommittedMax, CommittedMax, true
	b.Lease = lease.Lease{Kind: lease.KindTaken, ID: lease.ID{1}, Until: 0}
	store := func() {
		row, err := appendRow(nil, &b)
		require.NoError(t, err)
		r.state[string(testName("a").key())] = row
	}
	store()
	position, size := uint64(CommittedMax+1), uint64(CommittedMax)
	w, s := appended("x"), sealing()
	w.Guard = Guard{Conditions: &asked{answer: storageerr.ConditionNotMet}, LeaseNeeded: true, Early: true}
	w.Position, w.SizeMax = &position, &size
	s.Guard, s.Position = w.Guard, &position
	for _, step := range []struct {
		refuses storageerr.Row
		seal    bool // The seal tests it, too.
		mend    func()
	}{
		{storageerr.AppendBlobTooNew, true, func() { w.Early, s.Early = false, false }},
		{storageerr.ConditionNotMet, true, func() { w.Conditions, s.Conditions = nil, nil }},
		{storageerr.LeaseIDMissing, true, func() { w.Lease, s.Lease = &lease.ID{1}, &lease.ID{1} }},
		{storageerr.BlobIsSealed, false, func() { b.Appended.Sealed = false }},
		{storageerr.AppendPositionNotMet, true, func() { position-- }},
		{storageerr.MaxBlobSizeNotMet, false, func() { size++ }},
		{storageerr.AppendedBlocksExceedLimit, false, func() { b.Appended.Blocks-- }},
	} {
		require.ErrorIs(t, w.Admit(r, 20), step.refuses)
		require.ErrorIs(t, r.commit(t, w, 20), step.refuses)
		if step.seal {
			require.ErrorIs(t, r.commit(t, s, 20), step.refuses)
		}
		step.mend()
		store()
	}
	require.NoError(t, w.Admit(r, 20))
	require.NoError(t, r.commit(t, w, 20), "the last one")
	require.Equal(t, uint32(CommittedMax), w.Blocks)
	position++
	require.NoError(t, r.commit(t, s, 22))
}

// A write without the id after a lease ended forgets it (protocol/blob.md 17.4): an append and a seal do.
//
// Capability: Blobs: Append blobs.
func TestAppendForgetsLease(t *testing.T) {
	for _, w := range []services.Write{appended("x"), sealing()} {
		r := &scanned{state: state{}}
		require.NoError(t, r.commit(t, create(), 10))
		b, err := GetBlob(r, testName("a"))
		require.NoError(t, err)
		b.Lease = lease.Lease{Kind: lease.KindTaken, ID: lease.ID{1}, Seconds: 15, Until: 15}
		r.state[string(testName("a").key())], err = appendRow(nil, &b)
		require.NoError(t, err)
		require.NoError(t, r.commit(t, w, 20))
		b, err = GetBlob(r, testName("a"))
		require.NoError(t, err)
		require.Equal(t, lease.Lease{}, b.Lease)
	}
}

// The change of an append has the block and the blob's row. It names the block's chunks and no others, whatever was
// appended before. It needs the feature level of append blobs, and so does the change that makes the blob.
func TestAppendIsSmall(t *testing.T) {
	r := &scanned{state: state{}}
	e, err := create().Evaluate(r, 8)
	require.NoError(t, err)
	require.Equal(t, feature.Blobs, e.Level)
	require.NoError(t, r.commit(t, create(), 10))
	for i := range 100 {
		refs := make([]extent.Ref, 100) // The longest block of any version.
		for c := range refs {
			refs[c] = extent.Ref{ID: extent.ChunkID{byte(i), byte(c)}, Length: ChunkBytesMax, CRC: 1}
		}
		w := &AppendBlock{Command: Command{Name: testName("a")}, Block: Block{Length: 100 << 20, Chunks: refs}}
		e, err := w.Evaluate(r, geo.Timestamp(20+i))
		require.NoError(t, err)
		require.Equal(t, refs, e.Chunks)
		require.Len(t, e.Ops, 2)
		require.Equal(t, feature.Blobs, e.Level)
		encoded, err := change.AppendRecord(nil, &change.Record{Account: "acct", Partition: w.Partition().Append(nil), Ops: e.Ops, Chunks: e.Chunks})
		require.NoError(t, err)
		require.Less(t, len(encoded), 6<<10)
		require.NoError(t, r.commit(t, w, geo.Timestamp(20+i)))
	}
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	require.Equal(t, uint64(100*100<<20), b.Length)
	w, err := WindowAt(r, testName("a"), &b, b.Length-1, b.Length)
	require.NoError(t, err)
	require.Equal(t, Window{Start: b.Length - ChunkBytesMax, End: b.Length, Parts: []Part{{Chunk: extent.Ref{ID: extent.ChunkID{99, 99}, Length: ChunkBytesMax, CRC: 1}}}}, w)
	require.LessOrEqual(t, r.moves, 1, "a read begins at its offset, however many blocks are before it")
}

// journal is an append blob as protocol/blob.md 12 describes it.
type journal struct {
	exists, sealed bool
	content        string
	blocks         int
	// snapshots are what they have, by their times.
	snapshots map[geo.Timestamp]string
}

// Any sequence of creations, appends with and without conditions, seals, snapshots, replacements and deletions gives the
// content, offsets and counts of the model; a snapshot, and any state that the blob had since it was made, is read as it was, by
// any range; and what writes leave dead is dropped, and nothing that is read.
func TestAppendAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &scanned{state: state{}}
		m := journal{}
		var states []Blob // of the blob since it was made
		at := geo.Timestamp(100)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			at += 2
			switch rapid.IntRange(0, 13).Draw(rt, "step") {
			case 0:
				w := create()
				require.NoError(rt, r.commit(t, w, at))
				require.Equal(rt, m.exists, w.Left)
				m, states = journal{exists: true, snapshots: m.snapshots}, nil
			case 1:
				if w := put("a", "plain"); len(m.snapshots) > 0 {
					require.ErrorIs(rt, r.commit(t, w, at), storageerr.SnapshotsPresent)
					require.ErrorIs(rt, w.Admit(r, at), storageerr.SnapshotsPresent)
				} else {
					require.NoError(rt, r.commit(t, w, at))
					require.Equal(rt, m.exists, w.Left)
				}
				at += 2
				require.NoError(rt, r.commit(t, &DeleteBlob{Command: Command{Name: testName("a")}, Snapshots: SnapshotsInclude}, at))
				m, states = journal{}, nil
			case 2:
				require.Equal(rt, m.exists, r.commit(t, sealing(), at) == nil)
				m.sealed = m.exists
			case 3:
				sweep(t, r, at, 3*deadWork)
				want := m.blocks
				if m.exists {
					want++
				}
				if len(m.snapshots) == 0 {
					require.Len(rt, r.state, want)
				}
			case 4:
				w := &SnapshotBlob{Command: Command{Name: testName("a")}}
				require.Equal(rt, m.exists, r.commit(t, w, at) == nil)
				if m.exists {
					if m.snapshots == nil {
						m.snapshots = map[geo.Timestamp]string{}
					}
					m.snapshots[w.Snapshot] = m.content
				}
			default:
				m.append(rt, t, r, at)
			}
			for _, at := range slices.Sorted(maps.Keys(m.snapshots)) {
				s, err := GetSnapshot(r, testName("a"), at)
				require.NoError(rt, err)
				requireRange(rt, r, s, m.snapshots[at])
			}
			if !m.exists {
				continue
			}
			b, err := GetBlob(r, testName("a"))
			require.NoError(rt, err)
			require.Equal(rt, m.sealed, b.Appended.Sealed)
			require.Equal(rt, m.blocks, int(b.Appended.Blocks))
			states = append(states, b)
			earlier := rapid.SampledFrom(states).Draw(rt, "state")
			requireRange(rt, r, earlier, m.content[:earlier.Length])
		}
	})
}

// append appends, perhaps under conditions that hold or do not.
func (m *journal) append(rt *rapid.T, t *testing.T, r *scanned, at geo.Timestamp) {
	body := rapid.StringMatching("[a-z]{1,9}").Draw(rt, "body")
	w := appended(body)
	length := uint64(len(m.content))
	if rapid.Bool().Draw(rt, "position") {
		position := length + rapid.SampledFrom([]uint64{0, 0, 1}).Draw(rt, "off")
		w.Position = &position
	}
	if rapid.Bool().Draw(rt, "size") {
		size := length + rapid.Uint64Range(0, 10).Draw(rt, "size")
		w.SizeMax = &size
	}
	var want error
	switch {
	case !m.exists:
		want = storageerr.BlobNotFound
	case m.sealed:
		want = storageerr.BlobIsSealed
	case w.Position != nil && *w.Position != length:
		want = storageerr.AppendPositionNotMet
	case w.SizeMax != nil && *w.SizeMax < length+uint64(len(body)):
		want = storageerr.MaxBlobSizeNotMet
	}
	require.ErrorIs(rt, w.Admit(r, at), want)
	require.ErrorIs(rt, r.commit(t, w, at), want)
	if want == nil {
		m.content += body
		m.blocks++
		require.Equal(rt, length, w.Offset)
		require.Equal(rt, m.blocks, int(w.Blocks))
	}
}

// requireRange reads a range of a state of the blob, in windows.
func requireRange(t *rapid.T, r *scanned, b Blob, content string) {
	require.Equal(t, b.Length > 0, b.Appended.Blocks > 0)
	require.Len(t, content, int(b.Length))
	if b.Length == 0 {
		return
	}
	off := rapid.Uint64Range(0, b.Length-1).Draw(t, "from")
	end := rapid.Uint64Range(off+1, b.Length).Draw(t, "to")
	var got strings.Builder
	for at := off; at < end; {
		w, err := WindowAt(r, testName("a"), &b, at, end)
		require.NoError(t, err)
		require.LessOrEqual(t, w.Start, at)
		require.Greater(t, w.End, at)
		var parts []byte
		for i := range w.Parts {
			parts = append(parts, w.Parts[i].Inline...)
		}
		got.Write(parts[at-w.Start : min(w.End, end)-w.Start])
		at = w.End
	}
	require.Equal(t, content[off:end], got.String())
}

// Windows of an append blob end at their bounds, in blocks inline and in chunks; a block that is not there was replaced, and
// one that does not fit its neighbours or the blob is malformed.
func TestAppendWindows(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, create(), 10))
	var want bytes.Buffer
	for i := range 400 {
		body := fmt.Sprintf("%d.", i)
		require.NoError(t, r.commit(t, appended(body), geo.Timestamp(20+i)))
		want.WriteString(body)
	}
	long := strings.Repeat("x", InlineBytesMax)
	for i := range 9 {
		require.NoError(t, r.commit(t, appended(long), geo.Timestamp(500+i)))
		want.WriteString(long)
	}
	require.Equal(t, want.String(), text(t, r))
	b, err := GetBlob(r, testName("a"))
	require.NoError(t, err)
	first, err := WindowAt(r, testName("a"), &b, 0, b.Length)
	require.NoError(t, err)
	require.Len(t, first.Parts, windowPartsMax)
	last, err := WindowAt(r, testName("a"), &b, b.Length-9*InlineBytesMax, b.Length)
	require.NoError(t, err)
	require.Len(t, last.Parts, windowBytesMax/InlineBytesMax)

	at := func(end uint64) string { return string(testName("a").keyOf(appendedRow(10, end))) }
	for _, c := range []struct {
		change func(s state)
		want   error
	}{
		{func(s state) { delete(s, at(2)) }, ErrReplaced},                        // The first.
		{func(s state) { delete(s, at(6)) }, ErrReplaced},                        // One between.
		{func(s state) { s[at(5)] = s[at(4)] }, ErrMalformed},                    // One that begins within another.
		{func(s state) { s[at(4)] = s[at(b.Length)] }, ErrMalformed},             // Longer than what is before its end.
		{func(s state) { s[at(4)] = []byte{1} }, ErrMalformed},                   // No block.
		{func(s state) { s[at(2)+"\x00"] = s[at(2)] }, ErrMalformed},             // Another key.
		{func(s state) { s[at(b.Length-1)] = s[at(b.Length)] }, nil},             // Beyond what is read.
		{func(s state) { s[at(b.Length+1)] = s[at(b.Length)] }, nil},             // Appended since.
		{func(s state) { s[string(testName("b").key())] = s[at(2)] }, nil},       // Another blob.
		{func(s state) { s[string(testName("a").key())] = []byte("x") }, nil},    // Its row is not read again.
		{func(s state) { s[string(testName("a").keyOf([]byte{4}))] = nil }, nil}, // Nor another kind of row.
	} {
		other := &scanned{state: state{}}
		for k, v := range r.state {
			other.state[k] = v
		}
		c.change(other.state)
		_, err := WindowAt(other, testName("a"), &b, 0, 20)
		require.Equal(t, c.want == nil, err == nil, "%v", err)
		require.ErrorIs(t, err, c.want)
		require.Equal(t, errors.Is(c.want, ErrReplaced), errors.Is(err, ErrReplaced))
	}
	shorter := b
	shorter.Length = 3
	_, err = WindowAt(r, testName("a"), &shorter, 2, 3)
	require.ErrorIs(t, err, ErrMalformed, "it does not end where a block does")
}

// Any key and bytes of an appended block give one that lies within the 64 bits of an offset, or ErrMalformed.
func FuzzParseAppended(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 5}, []byte("\x01\x00\x05\x00\x00\x00hello"))
	f.Add([]byte{7: 4}, []byte("\x01\x00\x05\x00\x00\x00hello"))
	f.Add([]byte("id"), []byte{1})
	f.Fuzz(func(t *testing.T, id, v []byte) {
		b, start, err := parseAppended(id, v)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, appendedRow(1, start+uint64(b.Length))[9:], id)
	})
}

// The rows of the blob's own session are never dropped, whatever asks for it.
func TestAppendedIsNotDead(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, create(), 10))
	require.NoError(t, r.commit(t, appended("x"), 12))
	rows, next, err := Dead(t.Context(), r, testName("a"), nil, work(1<<20))
	require.NoError(t, err)
	require.Nil(t, next)
	require.Empty(t, rows)
	require.ErrorIs(t, r.commit(t, &DropDead{Command: Command{Name: testName("a")}, Rows: [][]byte{appendedRow(10, 1)}}, 14), ErrMalformed)
	require.NoError(t, r.commit(t, &DropDead{Command: Command{Name: testName("a")}, Rows: [][]byte{appendedRow(9, 1)}}, 14))
}

// The row of an append blob is described with its blocks, and that of a block with its session.
func TestDescribeAppended(t *testing.T) {
	all := goldenBlobs()
	for i, want := range map[int]string{
		11: "modified 1970-01-01T00:00:00.0000002Z, 0 bytes in 0 appended blocks of session 1970-01-01T00:00:00.0000002Z",
		12: "modified 1970-01-01T00:00:00.0000009Z, 8589934592 bytes in 50000 appended blocks of session 1970-01-01T00:00:00.0000002Z, sealed",
	} {
		row, err := appendRow(nil, &all[i])
		require.NoError(t, err)
		d, err := DescribeRow([]byte{rowBlob}, row)
		require.NoError(t, err)
		require.Equal(t, want, d.Detail)
	}
}

// Blocks that were staged ahead of an append blob, whatever the length of their ids, are dead behind it.
func TestStagedAheadOfAppendBlob(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, stage("i", "one"), 1))
	require.NoError(t, r.commit(t, create(), 2))
	require.NoError(t, r.commit(t, appended("ab"), 3))
	require.Len(t, r.state, 3)
	sweep(t, r, 4, 2*deadWork)
	require.Len(t, r.state, 2)
}

// Blocks appended after the last snapshot that is left are dropped once the blob is replaced. Blocks that snapshots
// share are kept until the last of those snapshots is gone.
//
// Capability: Blobs: Snapshots.
func TestAppendedBehindSnapshots(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, create(), 1))
	for at := geo.Timestamp(2); at < 8; at += 2 {
		require.NoError(t, r.commit(t, appended("ab"), at))
		require.NoError(t, r.commit(t, snapshot(), at+1))
	}
	require.NoError(t, r.commit(t, appended("cd"), 8))
	require.NoError(t, r.commit(t, create(), 9))
	for gone, rows := range []int{7, 5, 3, 1} { // The blob, and a snapshot with its block each.
		if gone > 0 {
			require.NoError(t, r.commit(t, removeSnapshot(geo.Timestamp(9-2*gone)), 10))
		}
		sweep(t, r, 11, 2*deadWork)
		require.Len(t, r.state, rows)
		for left := range 3 - gone {
			s, err := GetSnapshot(r, testName("a"), geo.Timestamp(3+2*left))
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("ab", left+1), textOf(t, r, &s))
		}
	}
}
