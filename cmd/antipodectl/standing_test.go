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

// R19: the plan of a planned failover names a cut link and ranges of the primary without a leader, with what to do.
// It does not ask streams, which cannot move then. Without a leader the unplanned one may be what is left.
func TestR19PlanNamesWhatStands(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.account) })
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.lag) })
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(d.status) })
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "ServerBusy", Message: "too few replicas, or the other location, answer"}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	plan := func() string {
		_, out, errOut := ctl(srv.URL, "failover", "check", "pictures")
		require.Contains(t, out, "account    pictures", errOut)
		return out
	}
	const cut = "blocked    an operator cut the link: antipodectl link heal\n"
	const unled = "blocked    northcentralus: no leader of range 3 queue: docs/runbooks/range-without-leader.md\n"
	const otherwise = "otherwise  antipodectl failover unplanned pictures shows what would be lost, if northcentralus is gone\n"
	out := plan()
	require.Equal(t, 1, asked)
	require.NotContains(t, out, cut)
	require.NotContains(t, out, otherwise)

	d.status.Link.State = admin.LinkCut
	require.Equal(t, 1, strings.Count(plan(), "link heal"))
	require.Contains(t, plan(), cut)
	require.NotContains(t, plan(), otherwise)
	d.status.Link.State = admin.LinkUp
	d.status.Locations[1].Ranges[2].LeaderView = nil
	require.NotContains(t, plan(), "no leader", "the other location is not the primary")
	asked = 0
	d.status.Locations[0].Ranges[2].LeaderView = nil
	require.Contains(t, plan(), unled+otherwise)
	require.NotContains(t, plan(), "too few replicas")
	require.Zero(t, asked)
}
