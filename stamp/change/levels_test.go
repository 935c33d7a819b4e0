package change

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/feature"
)

// Levels stay what docs/format/change.md shows. What is active is at most the floor; a later version is named as such, also
// for an entry that has them (R1).
func TestLevels(t *testing.T) {
	b := AppendLevels(nil, Levels{Floor: 3, Active: 2})
	require.Equal(t, "01"+"03000000"+"02000000", hex.EncodeToString(b))
	got, err := ParseLevels(b)
	require.NoError(t, err)
	require.Equal(t, Levels{Floor: 3, Active: 2}, got)
	_, err = ParseLevels(b[:8])
	require.ErrorIs(t, err, ErrMalformed)

	var builder Builder
	builder.Closed(4)
	builder.Levels(Levels{Floor: 3, Active: 2})
	group := builder.Finish(GroupID{7, 12}, GroupID{7, 11}, 0)
	require.NoError(t, Understood(group), "whether the floor is known is for the range to say")
	require.Equal(t, feature.Level(3), FloorOf(group))
	require.Equal(t, feature.Base, FloorOf(goldenGroup(t)))

	b[0]++
	_, err = ParseLevels(b)
	require.ErrorIs(t, err, ErrVersion)
	builder.Raw(PartLevels, b)
	require.ErrorIs(t, Understood(builder.Finish(GroupID{7, 12}, GroupID{7, 11}, 0)), ErrVersion)
}
