package directory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// Any bytes are a gate to set that encodes and decodes to itself, or an error.
func FuzzParseSetGate(f *testing.F) {
	f.Add((&setGate{account: "acct", gate: change.Gate{Epoch: geo.Epoch{Number: 3, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}}).Encode())
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

// What a node answers about a name to free is what the caller learns, without the keys (R8).
func TestFreeTravels(t *testing.T) {
	sent := &free{name: "acct"}
	decoded, err := Commands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	there := decoded.(*free)
	require.Equal(t, sent, there)
	for _, found := range []*catalog.Account{nil, {Name: "acct", Primary: "north", Epoch: 3, Created: 4, Key1: []byte("k")}} {
		there.found = found
		require.NoError(t, sent.DecodeResult(there.EncodeResult()))
		require.Equal(t, found == nil, sent.found == nil)
		if found != nil {
			require.True(t, sent.found.SameCreation(found))
			require.Empty(t, sent.found.Key1)
		}
	}
	_, err = Commands()[kindFree]([]byte("No Account"))
	require.ErrorIs(t, err, errCommand)
	require.Error(t, sent.DecodeResult([]byte{0}))
}
