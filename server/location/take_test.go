package location

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/primary"
	"antipode/replication/verify"
)

// R16: a unit of too many rows at the secondary comes without them, and is not one that the secondary does not have: that
// one is deleted at the primary.
func TestR16LargeUnitIsNoDeletedOne(t *testing.T) {
	t.Parallel()
	key := []byte("unit")
	got, bytes := unitToTake(key, &verify.Unit{Key: key, Large: true})
	require.Equal(t, primary.TakeUnit{Key: key, Large: true}, got)
	require.Zero(t, bytes)
	got, _ = unitToTake(key, &verify.Unit{Key: key})
	require.Equal(t, primary.TakeUnit{Key: key}, got)
	rows := []verify.UnitRow{{Key: []byte("unit1"), Value: []byte("v")}, {Key: []byte("unit2"), Value: []byte("vv")}}
	got, bytes = unitToTake(key, &verify.Unit{Key: key, Rows: rows})
	want := []primary.TakeRow{{Key: []byte("unit1"), Value: []byte("v")}, {Key: []byte("unit2"), Value: []byte("vv")}}
	require.Equal(t, primary.TakeUnit{Key: key, Rows: want}, got)
	require.EqualValues(t, 13, bytes)
}

// R16: what the secondary has is that of its side only if it settles the stream from the base of the settlement, and has
// come to it.
func TestR16TakeIsFromTheBase(t *testing.T) {
	t.Parallel()
	base := geo.Head{Seq: 9, Hash: 4}
	for _, c := range []struct {
		at verify.LaneHead
		ok bool
	}{
		{verify.LaneHead{Head: base, Stopped: "settling", Base: base}, true},
		{verify.LaneHead{Head: geo.Head{Seq: 12}, Stopped: "settling", Base: base}, true},
		{verify.LaneHead{Head: geo.Head{Seq: 12}}, false},
		{verify.LaneHead{Head: geo.Head{Seq: 12}, Stopped: "forked", Base: base}, false},
		{verify.LaneHead{Head: geo.Head{Seq: 8}, Stopped: "settling", Base: base}, false},
		{verify.LaneHead{Head: geo.Head{Seq: 12}, Stopped: "settling", Base: geo.Head{Seq: 3, Hash: 4}}, false},
		{verify.LaneHead{Head: geo.Head{Seq: 12}, Stopped: "settling", Base: geo.Head{Seq: 9, Hash: 5}}, false},
		{verify.LaneHead{Head: geo.Head{Seq: 12}, Stopped: "settling"}, false},
	} {
		require.Equal(t, c.ok, settlesFrom(c.at, base) == nil, c)
	}
}
