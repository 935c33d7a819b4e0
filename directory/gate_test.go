package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// Any bytes are a gate to set that encodes and decodes to itself, or an error.
func FuzzParseSetGate(f *testing.F) {
	f.Add(setGate{"acct", change.Gate{Epoch: geo.Epoch{Number: 3, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := parseSetGate(b)
		if err != nil {
			return
		}
		again, err := parseSetGate(first.Encode())
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}
