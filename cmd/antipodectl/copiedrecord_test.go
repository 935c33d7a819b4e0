package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// R20: the plan of an unplanned failover has what is under way from the primary where that answers: the secondary's copy of the record
// may stand still. It names a primary that answers, too.
func TestR20PlanHasTheOperationOfThePrimary(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	d.lag.Services[0].Status = admin.Unavailable // Its disk is full.
	behind := d.account
	behind.FailoverPhase, behind.Operation = admin.FailoverTaken, "the failover to this location"
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.AccountUpdated{AccountInfo: behind, Loss: d.loss})
	})
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.account) })
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.lag) })
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.status) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	const answers = "northcentralus answers: what it has acknowledged and is not there would be lost; first mend what blocks a planned failover"
	_, out, errOut := ctl(srv.URL, "failover", "unplanned", "pictures")
	require.NotContains(t, out, "under way", errOut)
	require.Contains(t, out, answers)

	d.account.FailoverPhase, d.account.Operation = admin.FailoverDraining, "a planned failover"
	_, out, _ = ctl(srv.URL, "failover", "unplanned", "pictures")
	require.Contains(t, out, "under way: a planned failover\n")
	require.Contains(t, out, answers)

	d.lags(false) // The primary does not answer: then what its copy has is all that is known.
	_, out, _ = ctl(srv.URL, "failover", "unplanned", "pictures")
	require.Contains(t, out, "under way: the failover to northcentralus\n")

	behind.FailoverPhase, behind.Operation = admin.FailoverClaiming, "an unplanned failover to this location"
	d.lags(true)
	_, out, _ = ctl(srv.URL, "failover", "unplanned", "pictures")
	require.Contains(t, out, "under way: an unplanned failover to southcentralus\n", "the primary does not know of it")
}
