package change

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/test/golden"
)

var _ = flag.Bool("rewrite", false, "add missing lines to the golden files")

// What the golden files hold.
var (
	goldenEpoch     = geo.Epoch{Number: 3, Location: "north"}
	goldenStream    = geo.Stream{Account: "acct", Epoch: goldenEpoch, Range: 4, Lane: 6}
	goldenPartition = keys.Partition{
		Service: geo.Table, Account: "acct", Container: "people",
		Generation: keys.Generation{Epoch: 1, Created: 17_000_000_000_000_000}, Object: "Smith",
	}

	goldenRecords = map[string]Record{
		"set": {
			Epoch: goldenEpoch, Range: 4, Incarnation: 0x401, Lane: goldenPartition.Lane(), Service: geo.Table, Account: "acct",
			Seq: 1, CommitTime: 17_000_000_000_000_002, Partition: goldenPartition.Append(nil),
			Ops: []Op{{Row: keys.AppendString(nil, "Ben"), Value: []byte("v1")}},
		},
		"set, delete and a chunk": {
			Epoch: goldenEpoch, Range: 4, Lane: goldenPartition.Lane(), Service: geo.Table, Account: "acct",
			Seq: 2, Prev: 0x1122334455667788, CommitTime: 17_000_000_000_000_004, Partition: goldenPartition.Append(nil),
			Ops: []Op{
				{Row: []byte{}, Value: []byte{}},
				{Row: keys.AppendString(nil, "Ben"), Delete: true},
			},
			Chunks: []extent.Ref{{ID: extent.ChunkID{0: 0xc0, 15: 0xff}, Length: 4096, CRC: 0xdeadbeef}},
		},
		"not shipped": {Lane: 31, Service: geo.Blob, Account: "lrs", Epoch: geo.Epoch{Number: 1}, CommitTime: 2, Partition: []byte{}},
	}

	goldenClosed = map[string]Closed{
		"delta": {Origin: "north", Range: 4, T0: 17_000_000_000_000_000, T: 17_000_000_000_000_004, Heads: []StreamHead{
			{Account: "acct", Epoch: goldenEpoch, Lane: 6, Seq: 2, Hash: 0x1122334455667788},
			{Account: "other", Epoch: geo.Epoch{Number: 1, Location: "north"}, Lane: 31, Seq: 300, Hash: 1},
		}},
		"full": {
			Origin: "north", Range: 4, Incarnation: 0x401, Full: true, T: 17_000_000_000_000_004,
			Span: geo.Span{Start: "\x02\x04", End: "\x02\x05"}, Descriptor: 1,
		},
		"received": {Origin: "north", Range: 4, T: 17_000_000_000_000_004},
		"ahead of the clock": {
			Origin: "north", Range: 4, T0: 23_000_000_000_000_000, T: 23_000_000_000_000_004, Wall: 17_000_000_000_000_002,
			Heads: []StreamHead{{Account: "acct", Epoch: goldenEpoch, Lane: 6, Seq: 2, Hash: 0x1122334455667788}},
		},
	}

	goldenCursors = map[string]Cursor{
		"at its head": {Applied: geo.Head{Seq: 2, Hash: 0x1122334455667788}, Time: 17_000_000_000_000_002, Incarnation: 0x401},
		"behind": {Applied: geo.Head{Seq: 2, Hash: 0x1122334455667788}, Sync: 17_000_000_000_000_004, Pairs: []Pair{
			{T: 17_000_000_000_000_006, Head: geo.Head{Seq: 5, Hash: 0x55}}, {T: 17_000_000_000_000_008, Head: geo.Head{Seq: 9, Hash: 0x99}},
		}},
		"behind, ahead of the clock": {
			Applied: geo.Head{Seq: 2, Hash: 0x1122334455667788}, Sync: 23_000_000_000_000_004, SyncWall: 17_000_000_000_000_004, Pairs: []Pair{
				{23_000_000_000_000_006, geo.Head{Seq: 5, Hash: 0x55}, 17_000_000_000_000_006}, {T: 23_000_000_000_000_008, Head: geo.Head{Seq: 9, Hash: 0x99}},
			},
		},
	}

	goldenGates = map[string]Gate{
		"absent":                {},
		"primary, numbered":     {Epoch: goldenEpoch, Role: RolePrimary, Open: true, Numbered: true},
		"primary, not numbered": {Epoch: goldenEpoch, Role: RolePrimary, Open: true},
		"primary, closed":       {Epoch: goldenEpoch, Role: RolePrimary, Numbered: true},
		"primary, turned":       {Epoch: goldenEpoch, Role: RolePrimary, Numbered: true, Turn: 3},
		"secondary":             {Epoch: goldenEpoch, Role: RoleSecondary, Open: true},
		"primary, not agreed":   {Epoch: goldenEpoch, Role: RolePrimary, Open: true, Agreed: 2},
	}

	goldenImage = Image{
		Epoch: goldenEpoch, Next: goldenPartition.Append(nil),
		Copied: ImageSize{Rows: 2, Bytes: 300, Payload: 4 << 20}, Total: ImageSize{Rows: 5, Bytes: 900, Payload: 8 << 20},
	}
	goldenCompared = geo.Incarnation(0x0000_0400_0000_0003)
	goldenStop     = Stop{
		Reason: StopForked, Here: geo.Head{Seq: 3, Hash: 0x33}, There: geo.Head{Seq: 2, Hash: 0x1122334455667788},
		At: 17_000_000_000_000_004,
	}

	goldenHead       = geo.Head{Seq: 2, Hash: 0x1122334455667788}
	goldenOutboxHead = OutboxHead{Head: goldenHead, Volume: Volume{Bytes: 0x1234, Payload: 0x56789a}}
	goldenApplied    = AppliedState{EntryID: geo.EntryID{Term: 7, Index: 258}, Group: GroupID{7, 12}, Last: 17_000_000_000_000_004}
)

func goldenRecord(t testing.TB, name string) []byte {
	r := goldenRecords[name]
	b, err := AppendRecord(nil, &r)
	require.NoError(t, err)
	return b
}

// goldenGroup holds one part of each kind.
func goldenGroup(t testing.TB) []byte {
	var b Builder
	for _, name := range []string{"set", "set, delete and a chunk"} {
		r := goldenRecords[name]
		_, err := b.Record(&r)
		require.NoError(t, err)
	}
	received := goldenRecord(t, "set")
	r, err := ParseRecord(received)
	require.NoError(t, err)
	b.Received(received, &r, true)
	b.Received(received, &r, false)
	b.Closed(17_000_000_000_000_006)
	c := goldenClosed["delta"]
	b.ReceivedClosed(&c)
	b.Gate("acct", goldenGates["primary, numbered"])
	b.Generation(keys.ClosedGeneration(4, geo.Table, "acct", "people", goldenPartition.Generation))
	b.Trim(goldenStream, goldenOutboxHead)
	b.Stop(goldenStream, goldenStop)
	b.Image("acct", goldenImage)
	b.Compared(goldenCompared)
	b.Base(received)
	return b.Finish(GroupID{7, 12}, GroupID{7, 11}, 257)
}

func goldenWholeImage() Image {
	m := Image{Epoch: goldenEpoch, Copied: goldenImage.Total, Total: goldenImage.Total}
	for lane := range geo.LaneCount {
		m.Done = append(m.Done, geo.Seq(100*lane))
	}
	return m
}

func goldenSmallGroup(t testing.TB) []byte {
	var b Builder
	r := goldenRecords["set"]
	_, err := b.Record(&r)
	require.NoError(t, err)
	return b.Finish(GroupID{7, 12}, GroupID{7, 11}, 0)
}

// goldenWipe wipes the generation of goldenPartition.
func goldenWipe() []byte {
	var b Builder
	b.Wipe(goldenWiped())
	return b.Finish(GroupID{7, 13}, GroupID{7, 12}, 257)
}

func goldenWiped() (lower, upper []byte) {
	lower = keys.AppendContainer(nil, geo.Table, "acct", "people", goldenPartition.Generation)
	return lower, keys.PrefixEnd(lower)
}

func goldenFrames(t testing.TB) map[string]Frame {
	c := goldenClosed["delta"]
	records := [][]byte{goldenRecord(t, "set"), goldenRecord(t, "set, delete and a chunk")}
	return map[string]Frame{
		"records and closed": {Origin: "north", Range: 4, Records: records, Closed: &c},
		"record alone":       {Origin: "north", Range: 4, Records: records[:1]},
		"closed alone":       {Origin: "north", Range: 4, Closed: &c},
		// Of a location that was upgraded first: the receiver stops one stream (R11).
		"a record of version 2": {
			Origin: "north", Range: 4, Records: [][]byte{records[0], edit(records[1], setByte(0, 2)), records[0]}, Closed: &c,
		},
		"a closed record of version 3": {Origin: "north", Range: 4, Records: records, LaterClosed: []byte{3, 0xff, 0, 1}},
	}
}

// goldenGateAgreed holds a gate of an epoch that the other location may not know of.
func goldenGateAgreed() []byte {
	var b Builder
	b.Gate("acct", goldenGates["primary, not agreed"])
	return b.Finish(GroupID{7, 12}, GroupID{7, 11}, 0)
}

// The bytes of version 1 stay what they are: every format is written as its golden
// file holds it. docs/format/change.md walks through one of each.
func TestGolden(t *testing.T) {
	var record, group, frame, closed, cursor, gate []golden.Case
	for _, name := range []string{"set", "set, delete and a chunk", "not shipped"} {
		b := goldenRecord(t, name)
		record = append(record, golden.Hex(name, b), golden.Case{Name: "hash of " + name, Value: fmt.Sprintf("%016x", uint64(HashOf(b)))})
	}
	var empty Builder
	group = append(group, golden.Hex("one record", goldenSmallGroup(t)), golden.Hex("every part", goldenGroup(t)),
		golden.Hex("no parts", empty.Finish(GroupID{1, 1}, GroupID{}, 0)), golden.Hex("wipe", goldenWipe()), golden.Hex("gate that is not agreed", goldenGateAgreed()))
	frames := goldenFrames(t)
	for _, name := range []string{"records and closed", "record alone", "closed alone", "a record of version 2", "a closed record of version 3"} {
		f := frames[name]
		frame = append(frame, golden.Hex(name, AppendFrame(nil, &f)))
	}
	for _, name := range []string{"delta", "full", "received", "ahead of the clock"} {
		c := goldenClosed[name]
		closed = append(closed, golden.Hex(name, AppendClosed(nil, &c)))
	}
	for _, name := range []string{"at its head", "behind", "behind, ahead of the clock"} {
		c := goldenCursors[name]
		cursor = append(cursor, golden.Hex(name, AppendCursor(nil, &c)))
	}
	for _, name := range []string{"absent", "primary, numbered", "primary, not numbered", "primary, closed", "primary, turned", "secondary", "primary, not agreed"} {
		gate = append(gate, golden.Hex(name, AppendGate(nil, goldenGates[name])))
	}
	golden.Require(t, "testdata/record.golden", record)
	golden.Require(t, "testdata/group.golden", group)
	golden.Require(t, "testdata/frame.golden", frame)
	golden.Require(t, "testdata/closed.golden", closed)
	golden.Require(t, "testdata/cursor.golden", cursor)
	golden.Require(t, "testdata/gate.golden", gate)
	golden.Require(t, "testdata/head.golden", []golden.Case{
		golden.Hex("head", AppendHead(nil, goldenHead)),
		golden.Hex("none", AppendHead(nil, geo.Head{})),
	})
	golden.Require(t, "testdata/outbox.golden", []golden.Case{
		golden.Hex("head", AppendOutboxHead(nil, goldenOutboxHead)),
		golden.Hex("row", AppendOutboxRow(nil, goldenOutboxHead.Volume, []byte("record"))),
	})
	golden.Require(t, "testdata/stop.golden", []golden.Case{
		golden.Hex("forked", AppendStop(nil, goldenStop)),
		golden.Hex("none", AppendStop(nil, Stop{})),
	})
	golden.Require(t, "testdata/image.golden", []golden.Case{
		golden.Hex("under way", AppendImage(nil, goldenImage)),
		golden.Hex("complete", AppendImage(nil, goldenWholeImage())),
		golden.Hex("none", AppendImage(nil, Image{})),
	})
	golden.Require(t, "testdata/lost.golden", []golden.Case{
		golden.Hex("answers", AppendAnswers(nil, &goldenAnswers)),
		golden.Hex("change", AppendLost(nil, goldenLost)),
		golden.Hex("claim", AppendLostClaim(nil, goldenClaim)),
	})
	golden.Require(t, "testdata/applied.golden", []golden.Case{
		golden.Hex("applied", AppendApplied(nil, goldenApplied)),
		golden.Hex("nothing", AppendApplied(nil, AppliedState{})),
	})
}

// goldenBytes is one value of a golden file.
func goldenBytes(t testing.TB, file, name string) []byte {
	t.Helper()
	text, ok := golden.Read(t, "testdata/"+file+".golden")[name]
	require.True(t, ok, "%s: %s", file, name)
	return golden.Bytes(t, text)
}

// Each decoder still reads its frozen golden files as the values that wrote them.
func TestGoldenIsRead(t *testing.T) {
	for name, want := range goldenRecords {
		b := goldenBytes(t, "record", name)
		got, err := ParseRecord(b)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
		h, err := ParseHeader(b)
		require.NoError(t, err, name)
		require.Equal(t, Header{want.Stream(), want.Seq, want.Prev, want.CommitTime, want.Incarnation}, h, name)
	}
	for name, want := range goldenFrames(t) {
		got, err := ParseFrame(goldenBytes(t, "frame", name))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for name, want := range goldenClosed {
		got, err := ParseClosed(goldenBytes(t, "closed", name))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for name, want := range goldenCursors {
		got, err := ParseCursor(goldenBytes(t, "cursor", name))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for name, want := range goldenGates {
		got, err := ParseGate(goldenBytes(t, "gate", name))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	head, err := ParseHead(goldenBytes(t, "head", "head"))
	require.NoError(t, err)
	require.Equal(t, goldenHead, head)
	place, err := ParseOutboxHead(goldenBytes(t, "outbox", "head"))
	require.NoError(t, err)
	require.Equal(t, goldenOutboxHead, place)
	before, encoded, err := ParseOutboxRow(goldenBytes(t, "outbox", "row"))
	require.NoError(t, err)
	require.Equal(t, goldenOutboxHead.Volume, before)
	require.Equal(t, "record", string(encoded))
	answers, err := ParseAnswers(goldenBytes(t, "lost", "answers"))
	require.NoError(t, err)
	require.Equal(t, goldenAnswers, answers)
	lost, err := ParseLost(goldenBytes(t, "lost", "change"))
	require.NoError(t, err)
	require.Equal(t, goldenLost, lost)
	claim, err := ParseLostClaim(goldenBytes(t, "lost", "claim"))
	require.NoError(t, err)
	require.Equal(t, goldenClaim, claim)
	stop, err := ParseStop(goldenBytes(t, "stop", "forked"))
	require.NoError(t, err)
	require.Equal(t, goldenStop, stop)
	image, err := ParseImage(goldenBytes(t, "image", "under way"))
	require.NoError(t, err)
	require.Equal(t, goldenImage, image)
	image, err = ParseImage(goldenBytes(t, "image", "complete"))
	require.NoError(t, err)
	require.Equal(t, goldenWholeImage(), image)
	applied, err := ParseApplied(goldenBytes(t, "applied", "applied"))
	require.NoError(t, err)
	require.Equal(t, goldenApplied, applied)
	requireGoldenGroup(t, goldenBytes(t, "group", "every part"))
	wiping, err := ParseGroup(goldenBytes(t, "group", "wipe"))
	require.NoError(t, err)
	require.NoError(t, wiping.Parts(func(kind PartKind, body []byte) error {
		require.Equal(t, PartWipe, kind)
		lower, upper, err := ParseWipe(body)
		wantLower, wantUpper := goldenWiped()
		require.Equal(t, wantLower, lower)
		require.Equal(t, wantUpper, upper)
		return err
	}))
}

func requireGoldenGroup(t *testing.T, b []byte) {
	g, err := ParseGroup(b)
	require.NoError(t, err)
	require.Equal(t, GroupID{7, 12}, g.ID)
	require.Equal(t, GroupID{7, 11}, g.Pred)
	require.EqualValues(t, 257, g.Answered)
	var kinds []PartKind
	require.NoError(t, g.Parts(func(kind PartKind, body []byte) error {
		kinds = append(kinds, kind)
		switch kind {
		case PartChange, PartReceived, PartReceivedCursor, PartReceivedBase:
			_, err := ParseRecord(body)
			require.NoError(t, err)
		case PartClosed:
			ts, err := ParseClosedTime(body)
			require.NoError(t, err)
			require.EqualValues(t, 17_000_000_000_000_006, ts)
		case PartReceivedClosed:
			c, err := ParseClosed(body)
			require.NoError(t, err)
			require.Equal(t, goldenClosed["delta"], c)
		case PartGate:
			a, gate, err := ParseGatePart(body)
			require.NoError(t, err)
			require.EqualValues(t, "acct", a)
			require.Equal(t, goldenGates["primary, numbered"], gate)
		case PartGeneration:
			require.Equal(t, keys.ClosedGeneration(4, geo.Table, "acct", "people", goldenPartition.Generation), body)
		case PartTrim:
			s, to, err := ParseTrim(body)
			require.NoError(t, err)
			require.Equal(t, goldenStream, s)
			require.Equal(t, goldenOutboxHead, to)
		case PartStop:
			s, why, err := ParseStopPart(body)
			require.NoError(t, err)
			require.Equal(t, goldenStream, s)
			require.Equal(t, goldenStop, why)
		case PartImage:
			a, m, err := ParseImagePart(body)
			require.NoError(t, err)
			require.EqualValues(t, "acct", a)
			require.Equal(t, goldenImage, m)
		case PartCompared:
			as, err := ParseCompared(body)
			require.NoError(t, err)
			require.EqualValues(t, goldenCompared, as)
		}
		return nil
	}))
	require.Equal(t, []PartKind{
		PartChange, PartChange, PartReceived, PartReceivedCursor, PartClosed,
		PartReceivedClosed, PartGate, PartGeneration, PartTrim, PartStop, PartImage, PartCompared, PartReceivedBase,
	}, kinds)
	require.True(t, NamesChunks(b))
	refs, err := GroupChunks(b)
	require.NoError(t, err)
	require.Equal(t, goldenRecords["set, delete and a chunk"].Chunks, refs)
}

var (
	goldenAnswers = Answers{
		Term: 3, After: 100, Pending: []AnswerPending{{Index: 17, Last: 130}, {Index: 18, Last: 140}}, Spans: []AnswerSpan{{After: 10, Last: 90}, {After: 100, Last: 120}},
	}
	goldenLost = Lost{
		At: 1001, Surely: true, Bytes: 300, Payload: 4096, Partition: []byte("partition"),
		Ops: []Op{{Row: []byte("set"), Value: []byte{}}, {Row: []byte("gone"), Delete: true}},
	}
	goldenClaim = LostClaim{
		Version: 1, Number: 7, Location: "south", Kept: 2001, Changes: 5, Perhaps: 1, Incomplete: true, Since: 999, Why: "it was set back",
		Streams: []LostStream{{Number: 6, Lane: 3, After: 10, To: 15}},
	}
)
