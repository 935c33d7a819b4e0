package admin

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// R22: lost changes are shown and dropped at the location that is named, of one account, with the token alone.
func TestR22LostIsAskedOfALocation(t *testing.T) {
	f := newFake()
	file, err := OpenTokenFile(filepath.Join(t.TempDir(), "data", TokenFileName))
	require.NoError(t, err)
	srv := httptest.NewServer(Handler(f, prometheus.NewRegistry(), Options{TokenFile: file}))
	defer srv.Close()
	c, err := wire.New(srv.URL, srv.Client())
	require.NoError(t, err)
	out, err := c.Lost(t.Context(), south, wire.LostQuery{Account: "mail"})
	require.NoError(t, err)
	require.Equal(t, wire.Lost{Location: south, Changes: []wire.LostChange{{Key: "02"}}}, out)
	d, err := c.DropLost(t.Context(), south, wire.DropLost{Account: "mail"})
	require.NoError(t, err)
	require.Equal(t, 1, d.Dropped)
	require.Equal(t, []string{"lost mail at southcentralus", "drop lost mail at southcentralus"}, f.calls())
	_, err = c.Lost(t.Context(), south, wire.LostQuery{Account: "no/account"})
	require.ErrorContains(t, err, "account is the name of one")
	_, err = c.DropLost(t.Context(), south, wire.DropLost{})
	require.ErrorContains(t, err, "account is the name of one")
	require.Len(t, f.calls(), 2)
}
