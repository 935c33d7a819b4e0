package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The position of a rewind is stored as any other field of an operation, whatever bytes the key has, and is left out where
// nothing is rewound.
func TestR22RewoundToIsStored(t *testing.T) {
	a := goldenAccount()
	a.Operation = &Operation{
		Kind: OperationTaken, Unplanned: true, Rewinding: true, Joined: true, Rewound: 1, RewoundTo: "k\x00\xff\"", RewoundRow: 7,
	}
	row, err := a.Encode()
	require.NoError(t, err)
	require.Contains(t, string(row), `"rewound_to":"6b00ff22","rewound_row":7`)
	got, err := ParseAccount(row)
	require.NoError(t, err)
	require.Equal(t, a.Operation, got.Operation)
	a.Operation = &Operation{Kind: OperationTaken}
	row, err = a.Encode()
	require.NoError(t, err)
	require.NotContains(t, string(row), "rewound")
}
