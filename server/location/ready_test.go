package location

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// A location is ready once the statistics of all accounts that have their secondary there are live. Those whose copy
// is made do not count: that may take days.
func TestNotLive(t *testing.T) {
	t.Parallel()
	lag := 0.1
	live := wire.ServiceStatus{Service: "blob", Status: wire.Live, LagSeconds: &lag}
	account := func(services ...wire.ServiceStatus) wire.AccountStatus {
		return wire.AccountStatus{Account: wire.Account{Name: "acct", Secondary: "south"}, Services: services}
	}
	for says, list := range map[string][]wire.AccountStatus{
		"no account is made yet": nil,
		"":                       {account(live), account(wire.ServiceStatus{Status: wire.Bootstrap}), account(wire.ServiceStatus{Status: wire.Unavailable, Reason: "bootstrap"})},
		"Last Sync Time of acct is not known yet":                                   {account()},
		"Last Sync Time of acct (table) is not known yet":                           {account(live, wire.ServiceStatus{Service: "table", Status: wire.Unavailable, Reason: "not-heard"})},
		"Last Sync Time of acct (table) is not known: forked: antipodectl why acct": {account(live, wire.ServiceStatus{Service: "table", Status: wire.Unavailable, Reason: "forked"})},
	} {
		require.Equal(t, says, NotLive("south", list))
	}
	require.Empty(t, NotLive("north", []wire.AccountStatus{account()}))
}
