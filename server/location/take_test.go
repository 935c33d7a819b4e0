package location

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/primary"
	"antipode/replication/verify"
)

// R16: a unit of too many rows at the secondary comes without them, and is not one that the secondary does not have: that
// one is deleted at the primary.
func TestR16LargeUnitIsNoDeletedOne(t *testing.T) {
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
