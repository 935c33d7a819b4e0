package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// R16: units are read whole, with the cursors of the same state: rows that are there, a unit without rows, one that
// is too large for an answer. An answer has the first of those that are asked for, and the others are asked for again.
// What is no unit of the account is refused.
//
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16UnitsAreRead(t *testing.T) {
	w := newWorld()
	row := func(i int) string { return rowKey("t", "p", fmt.Sprint(i)) }
	w.far.set(row(1), "one")
	w.far.set(row(2), strings.Repeat("x", unitsBytesMax))
	w.far.set(row(4), strings.Repeat("y", UnitBytesMax+1))
	w.far.head(false, 3, geo.Head{Seq: 7, Hash: 8})
	read := func(rows ...int) ([]Unit, [geo.LaneCount]LaneHead) {
		var units [][]byte
		for _, i := range rows {
			units = append(units, []byte(row(i)))
		}
		got, heads, err := Units(context.Background(), w.remote, testRange, testAccount, testEpoch, units)
		require.NoError(t, err)
		return got, heads
	}
	one := Unit{Key: []byte(row(1)), Rows: []UnitRow{{[]byte(row(1)), []byte("one")}}}
	got, heads := read(1, 3)
	require.Equal(t, []Unit{one, {Key: []byte(row(3))}}, got)
	require.Equal(t, geo.Head{Seq: 7, Hash: 8}, heads[3].Head)
	require.Equal(t, geo.Head{Seq: 5, Hash: 9}, heads[4].Head)
	got, _ = read(1, 2, 3)
	require.Equal(t, []Unit{one}, got, "what fits")
	got, _ = read(2, 3)
	require.Len(t, got, 1, "the first in any case")
	require.Len(t, got[0].Rows[0].Value, unitsBytesMax)
	got, _ = read(4, 1)
	require.Equal(t, []Unit{{Key: []byte(row(4)), Large: true}, one}, got)

	for name, bad := range map[string][]byte{
		"no key": []byte("x"), "a container": containerPrefix("t"), "another account": []byte(strings.Replace(row(1), "acct", "bcct", 1)),
		"a partition of a table": partition("t", "p").Append(nil)[:20],
	} {
		_, _, err := Units(context.Background(), w.remote, testRange, testAccount, testEpoch, [][]byte{bad})
		require.ErrorIs(t, err, errQuestion, name)
	}
	asked := [][]byte{[]byte(row(1))}
	for _, bad := range [][]byte{nil, {0}, {0, 1}, {0, 1, 200, 1}, {0, 0, 0, 0}, {0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}} {
		_, err := parseUnits(bad, asked)
		require.ErrorIs(t, err, errMalformed, "%x", bad)
	}
	require.Empty(t, w.receiver.open)
}
