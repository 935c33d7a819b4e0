package directory

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/failover/rejoin"
	"antipode/services/catalog"
)

// R22: that the catalog comes first reaches the present primary, and is an error for one of a former version.
func TestR22CatalogFirstOverTheLink(t *testing.T) {
	t.Parallel()
	out, err := peerAnswerOf(nil, rejoin.ErrCatalogLost)
	require.NoError(t, err)
	require.NotEmpty(t, out.Code)
	body, err := json.Marshal(out)
	require.NoError(t, err)
	require.ErrorIs(t, NewRemotePeer(answers(body)).Rejoin(t.Context(), catalog.Account{Name: "acct"}), rejoin.ErrCatalogLost)
}
