package tables

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/keys"
)

// Any bytes are a stored entity, which writes back to the same bytes, or malformed.
func FuzzParseValue(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendValue(nil, 637134336000000000, []byte{0}))
	f.Fuzz(func(t *testing.T, v []byte) {
		at, props, err := parseValue(v)
		if err != nil {
			require.ErrorIs(t, err, keys.ErrMalformed)
			return
		}
		require.Equal(t, v, appendValue(nil, at, props))
	})
}
