package cursor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R6: the greatest time of a source range is that of its closed records and of the records of all its
// streams, whichever is later, of that range and origin alone.
func TestR6Latest(t *testing.T) {
	r := &rig{t: t}
	r.r = &Received{
		id: testRange, cursors: map[geo.Account]map[geo.Stream]*change.Cursor{}, known: map[geo.SourceRange]Known{},
	}
	require.Zero(t, r.r.Latest(source))
	r.r.known[source] = Known{Incarnation: 1, Before: 20}
	require.EqualValues(t, 20, r.r.Latest(source))
	r.r.cursor(stream("a", 1)).Time = 19
	require.EqualValues(t, 20, r.r.Latest(source))
	r.r.cursor(stream("b", 2)).Time = 21
	require.EqualValues(t, 21, r.r.Latest(source), "an applied record that no closed record covers yet")
	other := stream("a", 1)
	other.Range++
	r.r.cursor(other).Time = 99
	require.EqualValues(t, 21, r.r.Latest(source), "another range")
	other = stream("a", 1)
	other.Epoch.Location = "south"
	r.r.cursor(other).Time = 99
	require.EqualValues(t, 21, r.r.Latest(source), "another origin")
}
