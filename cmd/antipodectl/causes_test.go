package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// The plan of a failover of a location that is dead fits a screen of 80 columns and 24 rows with 61 accounts, with the error below
// it: accounts are grouped by what keeps them.
func TestPlanOfADeadLocationFitsAScreen(t *testing.T) {
	s := manyAccounts(61)
	s.Version = admin.StatusVersion
	dead := &s.Locations[0]
	dead.State, dead.Ranges = admin.Unreachable, nil
	for i := range dead.Nodes {
		dead.Nodes[i].State = admin.Unreachable
	}
	deadWitness(&s)
	for i := range s.Accounts {
		if i < 30 {
			s.Accounts[i].Operation = fmt.Sprintf("the first copy of its data at the other location (bootstrap), at %d %%", i)
		}
	}
	out := admin.LocationFailover{From: drillNorth, To: drillSouth, Type: admin.FailoverUnplanned, Waiting: 61, Refused: 61, Unchecked: 3, Moving: map[string]int{}}
	for i, a := range s.Accounts[:20] {
		why := fmt.Sprintf("the copy is not whole: range %d of account %s was recovered with a loss", i%4+1, a.Name)
		if i == 7 {
			why = "an operation is under way: a bootstrap"
		}
		out.RefusedAccounts = append(out.RefusedAccounts, admin.RefusedFailover{Account: a.Name, Why: why})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			_ = json.NewEncoder(w).Encode(s)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	defer srv.Close()
	for _, line := range []string{"failover unplanned", "failover start", "failover check"} {
		code, got, errOut := ctl(srv.URL, append(strings.Fields(line), "--location", "northcentralus")...)
		require.Equal(t, line == "failover check", code == command.Done)
		require.LessOrEqual(t, rowsOfScreen(got+errOut), screenRows, got+errOut)
		if line != "failover start" {
			require.Contains(t, got, "refused    19 accounts, such as accountwithalongname0000: the copy is not whole: range 1 of account")
			require.Contains(t, got, map[bool]string{
				true:  "refused    account accountwithalongname0007: an operation is under way: a bootstrap\nrefused    41 more accounts\n",
				false: "refused    42 more accounts\n",
			}[line == "failover unplanned"], "as many causes as fit")
		}
		if line != "failover unplanned" {
			require.Contains(t, got, "passed by  30 accounts, such as accountwithalongname0000: an operation is under way: the first copy of its data")
		}
		require.Equal(t, line == "failover unplanned", strings.Contains(got, "nothing was changed, and with --yes no account begins to move\n"), got)
		require.Contains(t, got, "services   61 live, 0 not; oldest Last Sync Time not known\n")
	}
	_, got, _ := ctl(srv.URL, "failover", "check", "--location", "northcentralus", "--output", "json")
	require.Contains(t, got, `"account accountwithalongname0019: an operation is under way: the first copy`, "programs get the first 20")
	require.Contains(t, got, `"10 more accounts with an operation under way"`)
}

// Of more causes than there are lines for the accounts are counted, with what shows them.
func TestCausesBeyondTheLines(t *testing.T) {
	var list []admin.RefusedFailover
	for _, why := range []string{"b", "c", "d", "e", "c", "f"} {
		list = append(list, admin.RefusedFailover{Account: "x", Why: why})
	}
	var out strings.Builder
	writeCauses(&out, "passed by", list, len(list), causesMost, ": antipodectl account list")
	require.Equal(t, "passed by  2 accounts, such as x: c\npassed by  account x: b\npassed by  account x: d\npassed by  2 more accounts: antipodectl account list\n", out.String())
}
