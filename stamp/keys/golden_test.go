package keys

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/golden"
)

var _ = flag.Bool("rewrite", false, "add missing lines to the golden files")

const goldenPath = "testdata/keys.golden"

// Partitions whose keys and lanes are frozen.
var goldenPartitions = []Partition{
	{geo.Table, "acct", "people", Generation{1, 17_000_000_000_000_000}, "Smith"},
	{geo.Table, "acct", "people", Generation{2, 17_000_000_000_000_001}, "Smith"}, // The same lane: no generation in it.
	{geo.Table, "acct", "people", Generation{1, 17_000_000_000_000_000}, ""},
	{geo.Table, "acct", "people", Generation{1, 17_000_000_000_000_000}, "a\x00b"},
	{geo.Table, "acct", "people", Generation{1, 17_000_000_000_000_000}, "naïve \uffff"},
	{geo.Table, "acct", "people", Generation{1, 17_000_000_000_000_000}, "😀 \U0010ffff"},
	{geo.Table, "acct", "orders", Generation{1, 17_000_000_000_000_000}, "Smith"},
	{geo.Table, "devstoreaccount1", "people", Generation{1, 17_000_000_000_000_000}, "Smith"},
	{geo.Blob, "acct", "photos", Generation{1, 17_000_000_000_000_000}, "2026/07/a.jpg"},
	{geo.Blob, "acct", "$root", Generation{1, 17_000_000_000_000_000}, "index.html"},
	{geo.Queue, "acct", "jobs", Generation{1, 17_000_000_000_000_000}, ""},
	{geo.Queue, "acct", "jobs", Generation{1, 17_000_000_000_000_000}, "\x07"},
	{geo.Catalog, "acct", "", Generation{}, ""},
	{geo.Catalog, "acct", "", Generation{}, "table/people"},
	{geo.Service(255), "zzzzzzzzzzzzzzzzzzzzzzzz", "", Generation{^geo.EpochNumber(0), ^geo.Timestamp(0)}, ""},
}

var goldenStream = geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 3, Location: "north"}, Range: 4, Lane: 17}

// goldenCases are all keys of the golden file in its order.
func goldenCases() []golden.Case {
	var out []golden.Case
	add := func(name string, key []byte) { out = append(out, golden.Hex(name, key)) }
	for _, s := range []string{"", "a", "a\x00", "a\x01", "\x00\x00", "é", "\ud7ff", "\ue000", "\uffff", "𐀀", "\U0010ffff"} {
		add(fmt.Sprintf("string %+q", s), AppendString(nil, s))
	}
	add("uint64 258", AppendUint64(nil, 258))
	for _, p := range goldenPartitions {
		add("partition "+partitionName(p), p.Append(nil))
	}
	add("applied r4", Applied(4))
	add("gate r4 acct", Gate(4, "acct"))
	add("head r4 acct/3@north/r4/l17", Head(4, goldenStream))
	add("outbox r4 acct/3@north/r4/l17 #258", Outbox(4, goldenStream, 258))
	add("trimmed r4 acct/3@north/r4/l17", Trimmed(4, goldenStream))
	add("closed r4", Closed(4))
	add("members r4", Members(4))
	add("cursor r260 acct/3@north/r4/l17", Cursor(260, goldenStream))
	add("stop r260 acct/3@north/r4/l17", Stop(260, goldenStream))
	add("image r260 acct", Image(260, "acct"))
	add("compared r260", Compared(260))
	add("levels r1", Levels(1))
	add("retired r260", rangeKey(260, kindRetired))
	add("received r260 north r4", Received(260, "north", 4))
	add("generation r4 table acct people 1 17000000000000000", ClosedGeneration(4, geo.Table, "acct", "people",
		Generation{1, 17_000_000_000_000_000}))
	for _, p := range goldenPartitions {
		out = append(out, golden.Case{Name: "lane " + partitionName(p), Value: fmt.Sprint(p.Lane())})
	}
	return out
}

func partitionName(p Partition) string {
	return fmt.Sprintf("%s %s %q %d %d %+q", p.Service, p.Account, p.Container, p.Generation.Epoch, p.Generation.Created, p.Object)
}

// The keys and the lanes of version 1 stay what they are: every key is written as the
// golden file holds it. docs/format/keys.md walks through it.
func TestGolden(t *testing.T) { golden.Require(t, goldenPath, goldenCases()) }

// Each decoder still reads the frozen golden file as the values that wrote it.
func TestGoldenIsRead(t *testing.T) {
	lines := golden.Read(t, goldenPath)
	key := func(name string) []byte {
		b := golden.Bytes(t, lines[name])
		require.NotEmpty(t, b, name)
		return b
	}
	for _, want := range goldenPartitions {
		p, row, err := ParsePartition(append(key("partition "+partitionName(want)), "row"...))
		require.NoError(t, err)
		require.Equal(t, want, p)
		require.Equal(t, "row", string(row))
	}
	for _, name := range []string{"head r4", "trimmed r4", "cursor r260"} {
		s, rest, err := ParseStreamKey(key(name + " acct/3@north/r4/l17"))
		require.NoError(t, err)
		require.Equal(t, goldenStream, s)
		require.Empty(t, rest)
	}
	s, rest, err := ParseStreamKey(key("outbox r4 acct/3@north/r4/l17 #258"))
	require.NoError(t, err)
	require.Equal(t, goldenStream, s)
	n, rest, err := CutUint64(rest)
	require.NoError(t, err)
	require.EqualValues(t, 258, n)
	require.Empty(t, rest)
	a, err := ParseGateKey(key("gate r4 acct"))
	require.NoError(t, err)
	require.Equal(t, geo.Account("acct"), a)
}

// A table is found by its name in any case, the partition key only in its own
// (protocol/table.md 4.2; examples).
func TestTableContainer(t *testing.T) {
	require.Equal(t, TableContainer("people"), TableContainer("PeoPLE"))
	a := Partition{Service: geo.Table, Account: "acct", Container: TableContainer("PEOPLE"), Object: "Smith"}
	b := Partition{Service: geo.Table, Account: "acct", Container: TableContainer("people"), Object: "smith"}
	require.NotEqual(t, a.Append(nil), b.Append(nil))
}

// All 32 lanes take their share of partitions: none is left out and none gets twice
// its part (R10; 32,000 partition keys as clients make them).
func TestLanesSpread(t *testing.T) {
	var count [geo.LaneCount]int
	for i := range 32_000 {
		p := Partition{Service: geo.Table, Account: "acct", Container: "people", Object: fmt.Sprintf("customer-%06d", i)}
		count[p.Lane()]++
	}
	for lane, n := range count {
		require.InDelta(t, 1000, n, 300, "lane %d", lane)
	}
}
