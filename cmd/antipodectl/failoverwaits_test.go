package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// R19: a planned failover that cannot go on names why while the command waits, once, also where only a status has it.
func TestR19APlannedFailoverThatWaitsSaysWhy(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	moving := d.account
	moving.FailoverPhase, moving.Operation = admin.FailoverDraining, "a planned failover to southcentralus"
	moved := d.account
	moved.Primary, moved.Secondary = "southcentralus", "northcentralus"
	waits := moving
	looks := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		out := d.account // It is planned by it.
		if looks++; looks > 100 {
			out = moved
		} else if looks > 1 {
			out = moving
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.lag) })
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		d.status.Accounts = []admin.AccountStatus{{Account: waits.Account}}
		_ = json.NewEncoder(w).Encode(d.status)
	})
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.AccountUpdated{AccountInfo: moving})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, why := range []string{"", "southcentralus does not answer"} {
		looks, waits.OperationWaits = 0, why
		_, out, errOut := ctlWithoutWaits(t, srv.URL, "failover start pictures --yes")
		require.Contains(t, out, "account pictures is at southcentralus", errOut)
		require.Equal(t, why != "", strings.Contains(errOut, "pictures: it cannot go on now: southcentralus does not answer ("), errOut)
		require.LessOrEqual(t, strings.Count(errOut, "cannot go on"), 1)
	}
}
