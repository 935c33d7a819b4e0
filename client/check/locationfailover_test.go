package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// The failover of a location is found while it goes on, also where all of its accounts wait for their turn; where it cannot go on,
// with the cause, once, and the command that is for all of its accounts.
func TestLocationFailover(t *testing.T) {
	const show = "antipodectl failover show --location north"
	unplanned := func(s *admin.Status) *admin.LocationFailover {
		s.Locations[1].Failover = &admin.LocationFailover{
			From: "north", To: "south", Type: admin.FailoverUnplanned, Phase: admin.LocationMoving, Waiting: 5, Moved: 3, Moving: map[string]int{admin.FailoverClaiming: 2},
		}
		for i := range 2 {
			s.Accounts[i].FailoverPhase = admin.FailoverClaiming
		}
		return s.Locations[1].Failover
	}
	silent := func(s *admin.Status) {
		s.Locations[1].Epochs = &admin.Epochs{Confirmed: true, By: "override", Witness: true, WitnessAddress: "w:1", Waiting: "refused"}
	}
	claims := func(s *admin.Status, why ...string) {
		for i := range why {
			s.Accounts[i].Operation, s.Accounts[i].OperationWaits = "an unplanned failover to this location", why[i]
		}
	}
	const without = "start the witness again (docs/runbooks/witness.md); if north is off and stays off: " +
		"antipodectl failover unplanned --location north --yes --without-witness"
	witness := Finding{
		Warning, "the witness w:1 does not answer south; south: writes go on without a lease, by an operator's word (refused)",
		"start the witness again: docs/runbooks/witness.md",
	}
	for name, c := range map[string]struct {
		breaks func(s *admin.Status)
		want   []Finding
	}{
		"it goes on": {func(s *admin.Status) { unplanned(s) }, []Finding{
			{Warning, "the unplanned failover of location north to south is under way: 2 moving, 3 moved; 5 accounts of it still to begin", show},
		}},
		"no account of it has begun": {func(s *admin.Status) {
			m := unplanned(s)
			m.Waiting, m.Moved, m.Moving = 7, 0, nil
			s.Accounts[0].FailoverPhase, s.Accounts[1].FailoverPhase = "", ""
		}, []Finding{
			{Warning, "the unplanned failover of location north to south is under way: 0 moving, 0 moved; 7 accounts of it still to begin", show},
		}},
		"accounts are refused": {func(s *admin.Status) {
			m := unplanned(s)
			m.Refused, m.RefusedAccounts = 2, []admin.RefusedFailover{{Account: "acct5", Why: "its copy is not whole"}, {Account: "acct6", Why: "busy"}}
		}, []Finding{{
			Warning, "the unplanned failover of location north to south is under way: 2 moving, 3 moved; 5 accounts of it still to begin; " +
				"refused until it goes through them again: 2, acct5: its copy is not whole", show,
		}}},
		"it waits for the witness": {func(s *admin.Status) {
			unplanned(s)
			silent(s)
			claims(s, "no witness", "no witness")
		}, []Finding{witness, {
			Warning, "2 accounts (acct0, acct1) cannot go on with the unplanned failover of location north to south: no witness; 5 accounts of it still to begin",
			without,
		}}},
		"it waits for two causes": {func(s *admin.Status) {
			unplanned(s)
			claims(s, "no leader", "no quorum")
		}, []Finding{
			{
				Warning, "account acct0 cannot go on with the unplanned failover of location north to south: no leader; 5 accounts of it still to begin",
				show + "; to end it: antipodectl failover end --location north",
			},
			{
				Warning, "account acct1 cannot go on with the unplanned failover of location north to south: no quorum",
				show + "; to end it: antipodectl failover end --location north",
			},
		}},
		"its end waits": {func(s *admin.Status) {
			unplanned(s).Phase = admin.LocationEnding
			claims(s, "no leader")
		}, []Finding{
			{Warning, "account acct0 cannot go on with the unplanned failover of location north to south: no leader; 5 accounts will stay", show},
		}},
		"it is ending": {func(s *admin.Status) { unplanned(s).Phase = admin.LocationEnding }, []Finding{
			{Warning, "the unplanned failover of location north to south is ending: 2 moving, 3 moved; 5 accounts will stay", show},
		}},
		"an account's own failover beside it": {func(s *admin.Status) {
			s.Locations[0].Failover = &admin.LocationFailover{From: "north", To: "south", Type: admin.FailoverPlanned, Phase: admin.LocationMoving, Waiting: 7}
			s.Accounts[4].FailoverPhase = admin.FailoverApplying
		}, []Finding{
			{Warning, "an unplanned failover of 1 account from north to south is under way, applying: acct4", "antipodectl account show acct4"},
			{Warning, "the planned failover of location north to south is under way: 0 moving, 0 moved; 7 accounts of it still to begin", show},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := well()
			c.breaks(&s)
			require.ElementsMatch(t, c.want, Status(s))
		})
	}
}
