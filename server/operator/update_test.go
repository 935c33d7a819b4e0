package operator

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stats"
)

// The primary of an account changes it, whichever location answered first; the answer has the endpoints of the
// redundancy that the account has now.
func TestUpdateReachesThePrimary(t *testing.T) {
	north, south := newFake("north"), newFake("south")
	north.accounts = []wire.Account{{Name: "mail", Redundancy: "RA-GRS", Primary: "south", Secondary: "north"}}
	south.accounts = north.accounts
	for what, b := range backends(t, north, south) {
		a, err := b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Redundancy: "GRS"})
		require.NoError(t, err, what)
		require.Equal(t, "GRS", a.Redundancy)
		require.Equal(t, "not yet", a.Behind)
		require.Len(t, a.Endpoints, 3)
		require.Empty(t, a.Endpoints[0].Secondary)
		require.Contains(t, south.calls(), "update mail to GRS", what)
		require.NotContains(t, north.calls(), "update mail to GRS", what)
		_, err = b.UpdateAccount(t.Context(), "nobody", wire.UpdateAccount{Redundancy: "GRS"})
		require.True(t, notFound(err), what)
	}
}

// R17: the rebuild of an account whose copy stands since the clocks of both locations disagree is refused before the primary
// is asked, and only that: not one for another reason, nor one that is forced, nor another change.
func TestR17RebuildWaitsForTheClocks(t *testing.T) {
	mail := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south"}
	for _, c := range []struct {
		reason  stats.Reason
		update  wire.UpdateAccount
		refused bool
	}{
		{stats.Clock, wire.UpdateAccount{Rebuild: true}, true},
		{stats.Clock, wire.UpdateAccount{Rebuild: true, DryRun: true}, true},
		{stats.Clock, wire.UpdateAccount{Rebuild: true, Force: "mail"}, false},
		{stats.Clock, wire.UpdateAccount{Redundancy: "GRS"}, false},
		{stats.Forked, wire.UpdateAccount{Rebuild: true}, false},
	} {
		north, south := newFake("north"), newFake("south")
		north.accounts, south.accounts = []wire.Account{mail}, []wire.Account{mail}
		south.flow.Location = "south"
		south.flow.Services = []wire.ServiceStatus{{Service: "blob", Status: wire.Live}, {Service: "table", Reason: string(c.reason)}}
		for what, b := range backends(t, north, south) {
			north.calls()
			_, err := b.UpdateAccount(t.Context(), "mail", c.update)
			if !c.refused {
				require.NoError(t, err, "%s %+v", what, c)
				require.Contains(t, north.calls(), "update mail to "+c.update.Redundancy, what)
				continue
			}
			var refusal *wire.Error
			require.ErrorAs(t, err, &refusal, what)
			require.Equal(t, wire.CodeClocks, refusal.Code, what)
			require.Equal(t, http.StatusConflict, refusal.Status, what)
			require.Contains(t, refusal.Message, "clock-skew.md", what)
			require.Contains(t, refusal.Message, "account rebuild mail --force mail", what)
			require.NotContains(t, north.calls(), "update mail to ", what)
		}
	}
}

// A change of an account is at its primary first: while the other location has the former record, the
// account and the list show what the primary has, in either order.
func TestPrimaryKnowsChanges(t *testing.T) {
	now := wire.Account{Name: "mail", Redundancy: "LRS", Primary: "south", Operation: "the change to LRS"}
	before := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "south", Secondary: "north"}
	for range 10 {
		north, south := newFake("north"), newFake("south")
		north.accounts, south.accounts = []wire.Account{before}, []wire.Account{now}
		for what, b := range backends(t, north, south) {
			a, err := b.Account(t.Context(), "mail")
			require.NoError(t, err, what)
			require.Equal(t, now, a.Account, what)
			all, err := b.Accounts(t.Context())
			require.NoError(t, err, what)
			require.Len(t, all, 1, what)
			require.Equal(t, now, all[0].Account, what)
		}
	}
}

// R19, R20: after an unplanned failover of which the former primary has not heard, both take themselves for the primary: the
// account is as the one with the higher epoch has it, which is asked for changes, too, whichever answers first.
func TestR20HigherEpochIsThePrimary(t *testing.T) {
	before := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "north", Secondary: "south", Epoch: wire.Epoch{Number: 1, Location: "north"}}
	now := wire.Account{Name: "mail", Redundancy: "RA-GRS", Primary: "south", Secondary: "north", Epoch: wire.Epoch{Number: 2, Location: "south"}}
	for range 10 {
		north, south := newFake("north"), newFake("south")
		north.accounts, south.accounts = []wire.Account{before}, []wire.Account{now}
		for what, b := range backends(t, north, south) {
			a, err := b.Account(t.Context(), "mail")
			require.NoError(t, err, what)
			require.Equal(t, now, a.Account, what)
			_, err = b.UpdateAccount(t.Context(), "mail", wire.UpdateAccount{Redundancy: "GRS"})
			require.NoError(t, err, what)
			require.NotContains(t, north.calls(), "update mail to GRS", what)
		}
	}
}

// The status shows an account as its primary has it, and no services of one without a secondary.
func TestStatusTakesAccountsOfThePrimary(t *testing.T) {
	services := []wire.ServiceStatus{{Service: "table", Status: wire.Live}}
	of := func(redundancy string, secondary geo.Location) wire.Account {
		return wire.Account{Name: "mail", Redundancy: redundancy, Primary: "south", Secondary: secondary}
	}
	for _, c := range []struct {
		now  wire.Account
		want []wire.ServiceStatus
	}{{of("GRS", "north"), services}, {of("LRS", ""), nil}} {
		north, south := newFake("north"), newFake("south")
		north.status.Accounts = []wire.AccountStatus{{Account: of("RA-GRS", "north"), Services: services}}
		south.status.Accounts = []wire.AccountStatus{{Account: c.now}}
		for _, order := range [][]Location{{north, south}, {south, north}} {
			s, err := over(clock.System{}, order...).Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, []wire.AccountStatus{{Account: c.now, Services: c.want}}, s.Accounts)
		}
	}
}
