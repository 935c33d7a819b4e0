package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
)

// A way back moves all accounts of a location. Its plan names those that did not come with the last failover of the other one,
// where a location that runs knows of that, and nothing else: not those without a copy, and not for a failover the other way.
func TestR19PlanNamesAccountsThatDidNotCome(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) admin.Time { return admin.Time{Time: began.Add(time.Duration(minutes) * time.Minute)} }
	of := func(name geo.Account, last admin.Time, secondary geo.Location) admin.AccountStatus {
		return admin.AccountStatus{Account: admin.Account{Name: name, Primary: "south", Secondary: secondary, LastFailover: last}}
	}
	north := admin.Running
	rows := map[string]admin.LocationFailover{
		"north": {From: "north", To: "south", Begun: at(0)},
		"south": {From: "north", To: "south", Begun: at(-60)},
	}
	accounts := []admin.AccountStatus{
		of("came", at(1), "north"), of("made", admin.Time{}, "north"), of("before", at(-30), "north"), of("alone", admin.Time{}, ""),
		of("other1", at(-90), "north"), of("other2", admin.Time{}, "north"),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{
			Locations: []admin.Location{{Name: "north", State: north}, {Name: "south", State: admin.Running}}, Accounts: accounts,
		})
	})
	mux.HandleFunc("GET /v1/locations/{at}/failover", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(rows[r.PathValue("at")])
	})
	mux.HandleFunc("POST /v1/locations/{at}/failover", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.LocationFailover{Waiting: 5})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	plan := func(args ...string) string {
		_, out, errOut := ctl(srv.URL, append([]string{"failover"}, args...)...)
		require.Contains(t, out, "south: 5 accounts with a copy", errOut)
		return out
	}
	const want = "moves too  4 accounts that did not come with the failover of north of 2026-03-01T12:00:00.000Z: made, before, other1, 1 more; " +
		"to leave them: docs/runbooks/location-failover.md\n"
	for _, verb := range []string{"plan", "planned", "unplanned"} {
		require.Contains(t, plan(verb, "--location", "south"), want, verb)
	}
	_, out, _ := ctl(srv.URL, "failover", "check", "--location", "south", "--output", "json")
	var p wholePlan
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	require.Equal(t, &residents{at(0), []geo.Account{"made", "before", "other1", "other2"}}, p.Residents)

	rows["north"], rows["south"] = rows["south"], rows["north"]
	require.Contains(t, plan("plan", "--location", "south"), want, "the last one counts, wherever its row is")
	rows["north"], rows["south"] = rows["south"], rows["north"]

	north = admin.Unreachable // The south has an earlier one.
	require.Contains(t, plan("unplanned", "--location", "south"), "3 accounts that did not come with the failover of north of 2026-03-01T11:00:00.000Z")
	rows["south"] = admin.LocationFailover{From: "south", To: "north", Begun: at(0)}
	require.NotContains(t, plan("unplanned", "--location", "south"), "moves too", "none is known")
	rows["south"], accounts = admin.LocationFailover{From: "north", To: "south", Begun: at(-120)}, append(accounts[:1:1], accounts[2], accounts[4], accounts[0], accounts[0])
	require.NotContains(t, plan("unplanned", "--location", "south"), "moves too", "all came")
}
