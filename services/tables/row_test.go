package tables

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/keys"
)

// A walk reads each row as it is read alone, whichever rows it decoded before, and without its key if that is not asked for.
func TestRowTwin(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "ab", "b", "p0001", "partition 17", "é", "\x00", "a\x00b", "😀", "\uffff"})
	rapid.Check(t, func(t *rapid.T) {
		var row Row
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			table := rapid.SampledFrom([]string{"tbl", "other"}).Draw(t, "table")
			g := keys.Generation{Epoch: 1, Created: geo.Timestamp(rapid.IntRange(1, 2).Draw(t, "created"))}
			key := Bound("acct", table, g, text.Draw(t, "pk"), text.Draw(t, "rk"))
			value := appendValue(nil, geo.Timestamp(rapid.IntRange(1, 9).Draw(t, "at")), make([]byte, rapid.IntRange(0, 2*lineBytes).Draw(t, "props")))
			want, err := ParseRow(key, value)
			require.NoError(t, err)
			require.NoError(t, row.read(key, value))
			if rapid.Bool().Draw(t, "decoded") {
				got, err := row.Entity()
				require.NoError(t, err)
				require.Equal(t, want, *got)
			}
			want.PK, want.RK = "", ""
			require.Equal(t, want, *row.Values())
		}
		require.ErrorIs(t, row.read(nil, nil), keys.ErrMalformed)
		require.NoError(t, row.read([]byte("\x00no key"), appendValue(nil, 1, nil)))
		_, err := row.Entity()
		require.ErrorIs(t, err, keys.ErrMalformed)
	})
}
