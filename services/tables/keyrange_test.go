package tables

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Both ends are inside, an empty ToRK is the whole partition, and keys compare as tables order them.
func TestKeyRange(t *testing.T) {
	for _, c := range []struct {
		keys     KeyRange
		pk, rk   string
		isInside bool
	}{
		{KeyRange{Open: true}, "", "", true},
		{KeyRange{FromPK: "b", FromRK: "2", Open: true}, "b", "2", true},
		{KeyRange{FromPK: "b", FromRK: "2", Open: true}, "b", "1", false},
		{KeyRange{FromPK: "b", FromRK: "2", Open: true}, "c", "", true},
		{KeyRange{FromPK: "b", Open: true}, "a", "9", false},
		{KeyRange{ToPK: "b"}, "b", "9", true},
		{KeyRange{ToPK: "b"}, "c", "", false},
		{KeyRange{ToPK: "b", ToRK: "2"}, "b", "2", true},
		{KeyRange{ToPK: "b", ToRK: "2"}, "b", "3", false},
		{KeyRange{ToPK: "b", ToRK: "2"}, "a", "3", true},
		{KeyRange{FromPK: "\U00010000", ToPK: "\ue000"}, "\U00010001", "", true},
	} {
		require.Equal(t, c.isInside, c.keys.Contains(c.pk, c.rk), "%+v %q %q", c.keys, c.pk, c.rk)
	}
}
