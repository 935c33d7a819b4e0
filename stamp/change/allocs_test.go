//go:build !race

package change

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// A header of the stream of the one before makes nothing new, and a frame makes one buffer. The race detector makes more.
func TestRecordsMakeNothingNew(t *testing.T) {
	r := Record{
		Epoch: geo.Epoch{Number: 1, Location: "north"}, Account: "account", Partition: []byte("p"),
		Ops: []Op{{Row: []byte("row"), Value: make([]byte, 1000)}},
	}
	b, err := AppendRecord(nil, &r)
	require.NoError(t, err)
	var names Names
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = names.ParseHeader(b) }))
	f := Frame{Origin: "north", Records: [][]byte{b, b, b}, Closed: &Closed{Origin: "north"}}
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { AppendFrame(nil, &f) }))
	var group Builder
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		group.Reserve(4 * len(b))
		group.Raw(PartReceived, b)
		group.Raw(PartReceived, b)
		group.Raw(PartReceived, b)
		group.Finish(GroupID{}, GroupID{}, 0)
	}))
}

// A made-up count is not more parts than there is room for.
func TestCountOfParts(t *testing.T) {
	var b Builder
	b.Raw(PartReceived, []byte("one"))
	b.Raw(PartReceived, nil)
	g, err := ParseGroup(b.Finish(GroupID{}, GroupID{}, 0))
	require.NoError(t, err)
	require.Equal(t, 2, g.Count())
	g.count = 1 << 31
	require.Equal(t, 2, g.Count())
}
