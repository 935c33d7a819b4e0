package change

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// Whichever records came before, a record and its header are decoded as alone.
func TestNamesOfManyRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var names Names
		for range rapid.IntRange(1, 5).Draw(t, "records") {
			r := drawRecord(t)
			r.Account = geo.Account(rapid.SampledFrom([]string{"a", "b", string(r.Account)}).Draw(t, "account"))
			b, err := AppendRecord(nil, &r)
			require.NoError(t, err)
			want, err := ParseRecord(b)
			require.NoError(t, err)
			got, err := names.ParseRecord(b)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, r.Account, got.Account)
			require.Equal(t, r.Epoch, got.Epoch)
			h, err := names.ParseHeader(b)
			require.NoError(t, err)
			require.Equal(t, r.Stream(), h.Stream)
			_, err = names.ParseRecord(b[:len(b)-1])
			require.Error(t, err)
			_, err = names.ParseHeader(b[:recHeader])
			require.Error(t, err)
		}
	})
}
