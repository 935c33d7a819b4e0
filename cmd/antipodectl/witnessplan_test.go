package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

const (
	silentThird = "the witness third:10300 does not answer southcentralus (witness: refused)"
	startThird  = "start the witness again (docs/runbooks/witness.md); if northcentralus is off and stays off: antipodectl failover unplanned "
)

// R21: an account whose claim the witness is to forget, and which does not answer, is always shown with the way out.
// The plan of another failover does not promise that --yes begins it, unless it does.
func TestR21AClaimThatStaysHasAWayOut(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	deadWitness(&d.status)
	a := &d.account.Account
	a.FailoverPhase, a.Operation = admin.FailoverWithdrawing, "the end of an unplanned failover without effect, whose claim the witness is to forget: late"
	a.OperationWaits = "witness: refused"
	d.status.Accounts = []admin.AccountStatus{{Account: *a}}
	url := d.port(t)
	for _, line := range []string{"status", "check", "account list", "account show pictures", "why pictures", "failover unplanned pictures --dry-run"} {
		_, got, errOut := ctl(url, strings.Fields(line)...)
		require.Contains(t, got, startThird+"pictures --yes --without-witness\n", "%s: %s", line, errOut)
	}
	_, got, _ := ctl(url, "failover", "unplanned", "pictures")
	require.Contains(t, got, "witness    "+silentThird+"\nwitness    until it has forgotten the claim of the failover that ended, another one begins "+
		"only with --without-witness: if northcentralus is off and stays off\n")
	require.Contains(t, got, "nothing was changed, and with --yes it is refused\n")
	require.NotContains(t, got, nothingChanged)
	for _, phase := range []string{admin.FailoverClaiming, admin.FailoverWithdrawing, admin.FailoverApplying} {
		a.FailoverPhase = phase
		code, _, errOut := ctl(url, "failover", "unplanned", "pictures")
		require.Equal(t, command.Failed, code, "as it would be with --yes")
		require.Contains(t, errOut, "an unplanned failover of pictures is under way, nothing was changed: the end of an unplanned failover")
		code, got, _ = ctl(url, "failover", "unplanned", "pictures", "--without-witness")
		require.Equal(t, phase == admin.FailoverApplying, code == command.Failed)
		require.Equal(t, phase != admin.FailoverApplying, strings.Contains(got, nothingChanged), got)
	}
}

// R21: the refusal to begin a failover of an account, since an earlier one waits for the witness, ends with the way out.
func TestR21ARefusalBesideAClaimHasAWayOut(t *testing.T) {
	a := admin.AccountInfo{Account: admin.Account{
		Name: "pictures", Primary: "northcentralus", Secondary: "southcentralus", FailoverPhase: admin.FailoverWithdrawing, Operation: "the end",
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(a) })
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "OperationInProgress", Message: "the end is under way"}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for waits, want := range map[string]string{"": "\n", "witness: refused": "; next: " + startThird + "pictures --yes --without-witness\n"} {
		a.OperationWaits = waits
		code, _, errOut := ctl(srv.URL, "failover", "unplanned", "pictures", "--yes")
		require.Equal(t, command.Failed, code)
		require.Equal(t, "antipodectl: the end is under way"+want, errOut)
	}
}

// R21: the failover of a location that waits for a witness names that, and the command that goes on without it: while the command
// waits, in failover show, and after an end, which leaves claims with the witness.
func TestR21AWaitingLocationHasAWayOut(t *testing.T) {
	s := manyAccounts(2)
	for i := range s.Accounts {
		s.Accounts[i].Primary, s.Accounts[i].Secondary = "northcentralus", "southcentralus"
	}
	now := admin.LocationFailover{
		From: "northcentralus", To: "southcentralus", Type: admin.FailoverUnplanned, Phase: admin.LocationMoving, Round: 1,
		Moving: map[string]int{admin.FailoverClaiming: 2},
	}
	over := now
	over.Phase, over.Moving, over.Waiting, over.Reason = admin.LocationOver, map[string]int{}, 2, "an operator ended it"
	looks, left := 0, 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { looks++; _ = json.NewEncoder(w).Encode(s) })
	answer := func(w http.ResponseWriter, _ *http.Request) {
		out := now
		if left--; left < 0 {
			out = over
		}
		_ = json.NewEncoder(w).Encode(out)
	}
	mux.HandleFunc("GET /v1/locations/southcentralus/failover", answer)
	mux.HandleFunc("POST /v1/locations/southcentralus/failover", answer)
	mux.HandleFunc("GET /v1/locations/northcentralus/failover", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.LocationFailover{})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	const next = startThird + "--location northcentralus --yes --without-witness\n"
	for _, dead := range []bool{false, true} {
		if dead {
			deadWitness(&s)
		}
		looks, left = 0, 100 // It is 50 s on the clock of the command.
		code, out, errOut := ctlWithoutWaits(t, srv.URL, "failover unplanned --location northcentralus --yes")
		require.Equal(t, command.Failed, code, out)
		require.Equal(t, map[bool]int{true: 1}[dead], strings.Count(errOut, "northcentralus: "+silentThird+"\nnorthcentralus: "+next), errOut)
		require.Less(t, looks, 10, "a status is of the whole cluster")

		left = 1
		_, out, _ = ctlWithoutWaits(t, srv.URL, "failover show --location northcentralus")
		require.Equal(t, dead, strings.Contains(out, "witness    "+silentThird+"\nnext       "+next), out)
		require.Equal(t, !dead, strings.Contains(out, "claiming   2 wait for the witness"), out)
		left = 1
		_, out, _ = ctlWithoutWaits(t, srv.URL, "failover show --location northcentralus -o json")
		require.Equal(t, dead, strings.Contains(out, `"witness": "`+silentThird), out)
		require.Contains(t, out, `"phase": "moving"`)
	}
	_, out, _ := ctlWithoutWaits(t, srv.URL, "failover show --location northcentralus")
	require.NotContains(t, out, "witness", "no account waits any more")
	for i := range s.Accounts {
		s.Accounts[i].FailoverPhase = admin.FailoverWithdrawing
	}
	left = 2
	code, out, errOut := ctlWithoutWaits(t, srv.URL, "failover end --location northcentralus")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "ended      an operator ended it\nwithdrawn  until the witness has forgotten the claims of 2 accounts, northcentralus refuses their writes\n"+
		"witness    "+silentThird+"\nnext       "+next)
}
