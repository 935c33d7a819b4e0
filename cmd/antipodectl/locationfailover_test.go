package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// R20: the plan of an unplanned failover of a location beside one that is under way names that, and that --yes is refused.
func TestR20LocationPlanBesideAnotherOne(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{
			Locations: []admin.Location{{Name: "north", State: admin.Unreachable}, {Name: "south", State: admin.Running}},
			Accounts:  []admin.AccountStatus{{Account: admin.Account{Name: "pictures", Primary: "north", Secondary: "south"}}},
		})
	})
	mux.HandleFunc("POST /v1/locations/south/failover", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "StorageAccountOperationInProgress", Message: "one of north is under way"}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	code, out, errOut := ctl(srv.URL, "failover", "unplanned", "--location", "north")
	require.Equal(t, command.Failed, code)
	require.Contains(t, out, "blocked    one of north is under way\n")
	require.Contains(t, out, "nothing was changed, and with --yes it is refused\n")
	require.Contains(t, errOut, "nothing was changed: one of north is under way")
	_, out, _ = ctl(srv.URL, "failover", "check", "--location", "north")
	require.Contains(t, out, "unplanned  which accounts would be refused is not known: one of north is under way\n")
}

// R19: before a planned failover of a location the command asks that location whether the streams move. Where they stand the plan
// names that, and --yes begins nothing. An older program, which does not know the question, blocks nothing.
func TestR19LocationFailoverAsksWhetherStreamsMove(t *testing.T) {
	refusal, begun := http.StatusServiceUnavailable, 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{
			Locations: []admin.Location{{Name: "north", State: admin.Running}, {Name: "south", State: admin.Running}},
			Accounts:  []admin.AccountStatus{{Account: admin.Account{Name: "pictures", Primary: "north", Secondary: "south"}}},
		})
	})
	mux.HandleFunc("POST /v1/locations/south/failover", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.LocationFailover{From: "north", To: "south", Waiting: 1})
	})
	mux.HandleFunc("POST /v1/locations/north/failover", func(w http.ResponseWriter, r *http.Request) {
		var in admin.Failover
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Type != admin.FailoverPlanned {
			t.Errorf("not a planned failover: %+v %v", in, err)
		}
		if !in.DryRun {
			begun++
			_ = json.NewEncoder(w).Encode(admin.LocationFailover{
				From: "north", To: "south", Type: admin.FailoverPlanned, Phase: admin.LocationOver, Waiting: 250, Moving: map[string]int{},
				Reason: "249 accounts, such as a: it stood: antipodectl why a\naccount b: it is full: antipodectl account show b",
			})
			return
		}
		w.WriteHeader(refusal)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "ServerBusy", Message: "south did not receive what the queue range had sent"}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, args := range [][]string{{"plan"}, {"planned"}, {"planned", "--yes"}} {
		code, out, errOut := ctl(srv.URL, append(append([]string{"failover"}, args...), "--location", "north")...)
		require.Contains(t, out+errOut, "south did not receive what the queue range had sent", args)
		require.Equal(t, args[0] == "planned", code == command.Failed, args)
		require.NotContains(t, out, nothingChanged, "with --yes it would be refused")
	}
	require.Zero(t, begun)

	refusal = http.StatusBadRequest
	_, out, _ := ctl(srv.URL, "failover", "check", "--location", "north")
	require.NotContains(t, out, "blocked")

	// Of one that moves nothing each cause has a line, and the error has all of them in one.
	code, out, errOut := ctl(srv.URL, "failover", "start", "--location", "north", "--yes")
	require.Equal(t, command.Failed, code)
	require.Equal(t, 1, begun)
	require.Contains(t, out, "ended      249 accounts, such as a: it stood: antipodectl why a\nended      account b: it is full: antipodectl account show b\n")
	require.Contains(t, errOut, "antipodectl: 250 accounts are still at north: 249 accounts, such as a: it stood: antipodectl why a; account b: it is full: ")
}

// A location that the status shows as unreachable is not asked for its failover: the status has waited for it. It is named where no
// other one knows of the failover.
func TestShowAsksNoLocationThatIsSilent(t *testing.T) {
	south := admin.LocationFailover{From: "north", To: "south", Phase: admin.LocationOver, Moving: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{Locations: []admin.Location{{Name: "north", State: admin.Unreachable}, {Name: "south", State: admin.Running}}})
	})
	mux.HandleFunc("GET /v1/locations/south/failover", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(south) })
	mux.HandleFunc("GET /v1/locations/north/failover", func(http.ResponseWriter, *http.Request) { t.Error("it would wait for north again") })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	_, out, errOut := ctl(srv.URL, "failover", "show", "--location", "north")
	require.Contains(t, out, "location   north to south", errOut)
	south.From = ""
	code, _, errOut := ctl(srv.URL, "failover", "show", "--location", "north")
	require.Equal(t, command.Failed, code)
	require.Equal(t, "antipodectl: north does not answer: whether it knows of a failover of location north is not known: docs/runbooks/target-down.md\n", errOut)
}
