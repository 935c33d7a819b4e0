package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
	"antipode/services/storageerr"
)

// While it is not known whether a node has the clone of an account, its clients are to ask again; where none has it they are
// denied as for an account that does not exist, and do not come again.
func TestCloneThatMayBeElsewhere(t *testing.T) {
	t.Parallel()
	var err error = storageerr.ServerBusy.Saying("a node does not say")
	f := startFrontEnd(t, api.Options{Location: "north", Leader: ledHere, Clone: func(name geo.Account, _ geo.Service) (*api.Server, string, error) {
		require.Equal(t, geo.Account("acct"), name)
		return nil, "", err
	}})
	ask := func() answer {
		return send(t, signed(t, http.MethodGet, f.url+"/acct"+geo.CloneSuffix+"/things", nil))
	}
	a := ask()
	require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
	require.Contains(t, a.body, "a node does not say")
	require.NotEmpty(t, a.header.Get("Retry-After"))
	err = nil
	a = ask()
	require.Equal(t, http.StatusForbidden, a.status, a.body)
	require.Equal(t, "AuthenticationFailed", a.code)
}
