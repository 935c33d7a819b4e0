package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// maxresults has a default and a cap, and is refused where it is no positive number
// (protocol/blob.md S1, 7.1).
func TestParsePage(t *testing.T) {
	for text, want := range map[string]int{
		"": PageItemsMax, "1": 1, "5000": PageItemsMax, "5001": PageItemsMax, "99999999999999999999": PageItemsMax,
	} {
		page, err := ParsePage("", "", text, nil)
		require.NoError(t, err, text)
		require.Equal(t, want, page.Items, text)
	}
	for text, code := range map[string]string{
		"0": "OutOfRangeQueryParameterValue", "-1": "OutOfRangeQueryParameterValue", "five": "InvalidQueryParameterValue", "1.5": "InvalidQueryParameterValue",
	} {
		_, err := ParsePage("", "", text, nil)
		known, ours := storageerr.Of(err)
		require.True(t, ours, text)
		require.Equal(t, code, known.Code, text)
	}
	page, err := ParsePage("a", NewMarker("a/b"), "", storageerr.OutOfRangeInput)
	require.NoError(t, err)
	require.Equal(t, Page{Prefix: "a", From: "a/b", Items: PageItemsMax}, page)
	_, err = ParsePage("", "no marker", "", storageerr.OutOfRangeInput)
	require.Equal(t, storageerr.OutOfRangeInput, err)
}
