package change

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// The encoder refuses what a decoder would refuse, and leaves what was before it as
// it was (table).
func TestAppendRecordRefuses(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, spoil := range map[string]func(r *Record){
		"no account":         func(r *Record) { r.Account = "" },
		"long account":       func(r *Record) { r.Account = geo.Account(long) },
		"long location":      func(r *Record) { r.Epoch.Location = geo.Location(long) },
		"long partition":     func(r *Record) { r.Partition = make([]byte, 1<<16) },
		"lane out of bounds": func(r *Record) { r.Lane = geo.LaneCount },
		"too large":          func(r *Record) { r.Ops = []Op{{Value: make([]byte, RecordBytesMax)}} },
	} {
		r := goldenRecords["set"]
		spoil(&r)
		out, err := AppendRecord([]byte("before"), &r)
		require.ErrorIs(t, err, ErrMalformed, name)
		require.Equal(t, "before", string(out), name)

		var b Builder
		b.Closed(1)
		before := b.Mark()
		_, err = b.Record(&r)
		require.ErrorIs(t, err, ErrMalformed, name)
		require.Equal(t, before, b.Mark(), name)
	}
}

// The largest record there may be is written and read; one byte more is refused on
// both sides (the limit of RecordBytesMax).
func TestRecordBytesMax(t *testing.T) {
	r := goldenRecords["set"]
	r.Ops = []Op{{Value: make([]byte, RecordBytesMax-200)}}
	b, err := AppendRecord(nil, &r)
	require.NoError(t, err)
	r.Ops[0].Value = make([]byte, RecordBytesMax-200+RecordBytesMax-len(b))
	b, err = AppendRecord(nil, &r)
	require.NoError(t, err)
	require.Len(t, b, RecordBytesMax)
	_, err = ParseRecord(b)
	require.NoError(t, err)

	b = append(b[:len(b)-crcLen], 0)
	binary.LittleEndian.PutUint32(b[recLength:], RecordBytesMax+1)
	_, err = recordLen(append(b, 0, 0, 0, 0))
	require.ErrorIs(t, err, ErrMalformed)
}

// A name or a cursor that its length byte cannot hold stops the program instead of
// being written as another one (a bug of the caller).
func TestTooLongPanics(t *testing.T) {
	long := strings.Repeat("x", 256)
	require.Panics(t, func() { AppendClosed(nil, &Closed{Origin: geo.Location(long)}) })
	require.Panics(t, func() { AppendFrame(nil, &Frame{Origin: geo.Location(long)}) })
	require.Panics(t, func() { AppendGate(nil, Gate{Epoch: geo.Epoch{Location: geo.Location(long)}}) })
	require.Panics(t, func() { AppendCursor(nil, &Cursor{Pairs: make([]Pair, PairsMax+1)}) })
}

// edit returns b, which ends with its checksum, changed by f and with the right
// checksum again.
func edit(b []byte, f func(body []byte) []byte) []byte {
	return sealed(f(bytes.Clone(b[:len(b)-crcLen])))
}

func setByte(at int, v byte) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] = v
		return b
	}
}

// A record whose checksum is right and which no encoder wrote is refused all the same,
// a later version by its own name (table).
func TestParseRecordRefuses(t *testing.T) {
	b := goldenRecord(t, "set")
	tail := len(b) - crcLen // One op, no chunks: the count of chunks is the last byte.
	op := tail - 1 - len("\x01\x05Ben\x00\x01\x02v1")
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"version 2":          {edit(b, setByte(0, 2)), ErrVersion},
		"version 0":          {edit(b, setByte(0, 0)), ErrMalformed},
		"reserved byte":      {edit(b, setByte(1, 1)), ErrMalformed},
		"lane out of bounds": {edit(b, setByte(recLane, geo.LaneCount)), ErrMalformed},
		"length too small":   {edit(b, setByte(recLength, byte(len(b)-1))), ErrMalformed},
		"unknown op":         {edit(b, setByte(op, 3)), ErrMalformed},
		"no account":         {edit(b, func(b []byte) []byte { b[recHeader+6] = 0; return b }), ErrMalformed},
		"many ops":           {edit(b, setByte(op-1, 0x7f)), ErrMalformed},
		"many chunks":        {edit(b, setByte(tail-1, 1)), ErrMalformed},
		"number in long form": {edit(b, func(b []byte) []byte {
			b = append(b[:len(b)-1], 0x80, 0x00)
			b[recLength]++
			return b
		}), ErrMalformed},
		"byte after the chunks": {edit(b, func(b []byte) []byte {
			b[recLength]++
			return append(b, 0)
		}), ErrMalformed},
		"wrong checksum": {append(bytes.Clone(b[:tail]), 1, 2, 3, 4), ErrChecksum},
		"empty":          {nil, ErrMalformed},
	} {
		_, err := ParseRecord(c.b)
		require.ErrorIs(t, err, c.want, name)
	}
}

// The same for frames: one that names more records than it holds, or has flags of
// another version, is refused (table).
func TestParseFrameRefuses(t *testing.T) {
	frame := goldenBytes(t, "frame", "records and closed")
	count := 6 + 1 + len("north")
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"version 2":               {edit(frame, setByte(0, 2)), ErrVersion},
		"version 0":               {edit(frame, setByte(0, 0)), ErrMalformed},
		"unknown flag":            {edit(goldenBytes(t, "frame", "record alone"), setByte(1, 2)), ErrMalformed},
		"closed not announced":    {edit(frame, setByte(1, 0)), ErrMalformed},
		"record over the end":     {edit(frame, setByte(count+1, 0x7f)), ErrMalformed},
		"more records than bytes": {edit(frame, setByte(count, 0x7f)), ErrMalformed},
		"one record more":         {edit(goldenBytes(t, "frame", "record alone"), setByte(count, 2)), ErrMalformed},
		"one record less":         {edit(goldenBytes(t, "frame", "record alone"), setByte(count, 0)), ErrMalformed},
		"wrong checksum":          {setByte(len(frame)-1, frame[len(frame)-1]^1)(bytes.Clone(frame)), ErrChecksum},
		"empty":                   {nil, ErrMalformed},
	} {
		_, err := ParseFrame(c.b)
		require.ErrorIs(t, err, c.want, name)
	}
}

// A record that cannot be decoded, inside a frame whose own checksum is right, hides none of the
// others, whatever is wrong with it: its version and with it its layout, its length, or its bytes. The
// reason to stop is its version only if its checksum is right (R11).
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11FrameOneBadRecord(t *testing.T) {
	good := goldenRecord(t, "set")
	flipped := func(at int) []byte { return setByte(at, good[at]^0x80)(bytes.Clone(good)) }
	for name, c := range map[string]struct {
		bad  []byte
		want error
		stop StopReason
	}{
		"checksum":          {flipped(recPrev), ErrChecksum, StopPoison},
		"length":            {flipped(recLength), ErrMalformed, StopPoison},
		"damaged version":   {flipped(0), ErrVersion, StopPoison},
		"version 0":         {edit(good, setByte(0, 0)), ErrMalformed, StopPoison},
		"version 2":         {edit(good, setByte(0, 2)), ErrVersion, StopVersion},
		"another layout":    {sealed([]byte{2, 1, 2, 3}), ErrMalformed, StopVersion},
		"lane out of range": {edit(good, setByte(recLane, geo.LaneCount)), ErrMalformed, StopPoison},
		"four bytes":        {[]byte{2, 0, 0, 0}, ErrMalformed, StopPoison},
		"nothing":           {[]byte{}, ErrMalformed, StopPoison},
	} {
		f, err := ParseFrame(AppendFrame(nil, &Frame{Origin: "north", Range: 4, Records: [][]byte{good, c.bad, good}}))
		require.NoError(t, err, name)
		require.Equal(t, [][]byte{good, c.bad, good}, f.Records, name)
		_, err = ParseRecord(f.Records[1])
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, c.stop, Undecodable(f.Records[1]), name)
	}
}

// The same for groups: flags and reserved bytes of another version, parts over the end
// and bytes behind the last part are refused (table).
func TestParseGroupRefuses(t *testing.T) {
	group := goldenSmallGroup(t)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"version 2":      {edit(group, setByte(0, 2)), ErrVersion},
		"version 0":      {edit(group, setByte(0, 0)), ErrMalformed},
		"unknown flag":   {edit(group, setByte(1, 2)), ErrMalformed},
		"reserved byte":  {edit(group, setByte(2, 1)), ErrMalformed},
		"one part more":  {edit(group, setByte(groupCount, 2)), ErrMalformed},
		"one part less":  {edit(group, setByte(groupCount, 0)), ErrMalformed},
		"part too long":  {edit(group, setByte(groupHeader+1, 0xff)), ErrMalformed},
		"wrong checksum": {setByte(8, 9)(bytes.Clone(group)), ErrChecksum},
		"empty":          {nil, ErrMalformed},
	} {
		_, err := GroupChunks(c.b)
		require.ErrorIs(t, err, c.want, name)
	}
	require.False(t, NamesChunks(nil))
}

// The span of a wipe has keys, and nothing stands behind it (table).
func TestParseWipeRefuses(t *testing.T) {
	lower, upper, err := ParseWipe([]byte("\x01a\x01b"))
	require.NoError(t, err)
	require.Equal(t, "a b", string(lower)+" "+string(upper))
	for name, body := range map[string]string{
		"empty": "", "no end": "\x01a", "no keys": "\x01a\x01a", "backwards": "\x01b\x01a", "over the end": "\x01a\x02b",
		"byte behind it": "\x01a\x01bc", "number in long form": "\x81\x00a\x01b",
	} {
		_, _, err := ParseWipe([]byte(body))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

// Where the wall stands in a closed record, and that of the sync time in a cursor (docs/format/change.md).
const (
	closedWall     = 30
	cursorSyncWall = 42
)

// What carries no checksum is held to its limits too: lanes, roles, versions and
// the number of pairs (R13; table).
func TestSmallRefuses(t *testing.T) {
	closed := goldenBytes(t, "closed", "delta")
	lane := bytes.Index(closed, []byte("\x05north\x06")) + 6
	_, err := ParseClosed(setByte(lane, geo.LaneCount-1)(bytes.Clone(closed)))
	require.NoError(t, err)
	_, err = ParseClosed(setByte(lane, geo.LaneCount)(bytes.Clone(closed)))
	require.ErrorIs(t, err, ErrMalformed)

	most := AppendCursor(nil, &Cursor{Pairs: make([]Pair, PairsMax)})
	_, err = ParseCursor(most)
	require.NoError(t, err)
	more := append(setByte(17, PairsMax+1)(most), make([]byte, 16)...)
	_, err = ParseCursor(more)
	require.ErrorIs(t, err, ErrMalformed)

	for at, b := range map[int]byte{1: 3, 2: 16} { // A role, a flag.
		_, err = ParseGate(setByte(at, b)(goldenBytes(t, "gate", "secondary")))
		require.ErrorIs(t, err, ErrVersion)
	}
	_, _, err = ParseGatePart(append([]byte{0}, goldenBytes(t, "gate", "secondary")...))
	require.ErrorIs(t, err, ErrMalformed, "no account")
	_, err = ParseClosed(setByte(0, 3)(goldenBytes(t, "closed", "delta")))
	require.ErrorIs(t, err, ErrVersion)
	walled := goldenBytes(t, "closed", "ahead of the clock")
	copy(walled[closedWall:], make([]byte, 8))
	_, err = ParseClosed(walled)
	require.ErrorIs(t, err, ErrMalformed, "version 2 without a wall")
	cursor := AppendCursor(nil, &Cursor{Sync: 7, SyncWall: 5, Pairs: []Pair{{T: 9}}})
	_, err = ParseCursor(setByte(cursorSyncWall, 0)(cursor))
	require.ErrorIs(t, err, ErrMalformed, "version 2 without a wall")
	_, err = ParseClosed(setByte(0, 0)(goldenBytes(t, "closed", "delta")))
	require.ErrorIs(t, err, ErrMalformed)
	_, err = ParseClosedTime(make([]byte, 9))
	require.ErrorIs(t, err, ErrMalformed)
	for file, name := range map[string]string{
		"cursor": "behind", "gate": "secondary", "head": "head", "applied": "applied",
	} { // R4: they are no damage, an upgrade mends them.
		parse := map[string]func([]byte) ([]byte, error){
			"cursor": reencodeCursor, "gate": reencodeGate, "head": reencodeHead, "applied": reencodeApplied,
		}[file]
		later := map[bool]byte{true: 3, false: 2}[file == "cursor"]
		_, err := parse(setByte(0, later)(goldenBytes(t, file, name)))
		require.ErrorIs(t, err, ErrVersion, "%s of version %d", file, later)
		_, err = parse(setByte(0, 0)(goldenBytes(t, file, name)))
		require.ErrorIs(t, err, ErrMalformed, "%s of version 0", file)
	}
}

// A made-up count is refused before anything is allocated for it (invariant 8).
func TestCountsAllocateNothing(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<40)
	b := goldenRecord(t, "not shipped")
	record := edit(b, func(b []byte) []byte {
		b = append(b[:len(b)-2], huge...) // In place of no ops and no chunks.
		binary.LittleEndian.PutUint32(b[recLength:], uint32(len(b)+crcLen))
		return b
	})
	_, err := ParseRecord(record)
	require.ErrorIs(t, err, ErrMalformed)

	frame := AppendFrame(nil, &Frame{Origin: "north", Range: 4})
	_, err = ParseFrame(edit(frame, func(b []byte) []byte { return append(b[:len(b)-1], huge...) }))
	require.ErrorIs(t, err, ErrMalformed)

	closed := AppendClosed(nil, &Closed{Origin: "north", Range: 4})
	_, err = ParseClosed(append(closed[:len(closed)-1], huge...))
	require.ErrorIs(t, err, ErrMalformed)
}
