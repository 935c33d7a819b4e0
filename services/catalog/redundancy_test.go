package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A redundancy is named by itself or by its SKU, in any case; whatever else is refused. The secondary
// follows from it.
func TestParseRedundancy(t *testing.T) {
	for text, want := range map[string]Redundancy{
		"LRS": LRS, "lrs": LRS, "Standard_LRS": LRS, "GRS": GRS, "Standard_GRS": GRS, "RA-GRS": RAGRS, "ragrs": RAGRS, "standard_ragrs": RAGRS,
	} {
		got, err := ParseRedundancy(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "ZRS", "Standard_GZRS", "Premium_LRS", "RA GRS", "LRS "} {
		_, err := ParseRedundancy(text)
		require.ErrorContains(t, err, "is no redundancy", text)
	}
	a := Account{Primary: "north"}
	for r, secondary := range map[Redundancy]string{LRS: "", GRS: "south", RAGRS: "south"} {
		a.SetRedundancy(r, "south")
		require.EqualValues(t, secondary, a.Secondary)
		require.Equal(t, secondary != "", r.Geo())
		require.Equal(t, r == RAGRS, r.Readable())
	}
}
