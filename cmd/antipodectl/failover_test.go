package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// A plan names what is not known of a service as such, and not as an empty word.
func TestR19PlanOfUnknownServices(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Account{Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south"})
	})
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) {
		none, some := uint64(0), uint64(7)
		_ = json.NewEncoder(w).Encode(admin.Lag{
			Services: []admin.ServiceLag{
				{ServiceStatus: admin.ServiceStatus{Service: "blob"}},
				{ServiceStatus: admin.ServiceStatus{Service: "queue", Status: admin.Live}, LagRecords: &some, AtLeast: true},
				{ServiceStatus: admin.ServiceStatus{Service: "table", Status: admin.Live}, LagRecords: &none, AtLeast: true},
			},
			Silent: []admin.SilentLocation{{Location: "north", Reason: "refused"}},
		})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	_, out, _ := ctl(srv.URL, "failover", "check", "pictures")
	require.Contains(t, out, "blob       in a state that is not known, how far is not known\n")
	require.Contains(t, out, "queue      live, at least 7 records not there; what north has committed since it last answered is not known\n")
	require.Contains(t, out, "table      live, what north has committed since it last answered is not known\n")
	require.Contains(t, out, "blocked    north does not answer: refused; see docs/runbooks/target-down.md\n")
	require.Contains(t, out, "otherwise  antipodectl failover unplanned pictures shows what would be lost, if north is gone\n")
	require.Equal(t, 1, strings.Count(out, "blocked "), "what follows from the silence is no cause")
}

// A plan asks for the status and the lag side by side, since both wait for a location that is paused. It asks nothing
// more of a location that did not answer.
func TestPlanAsksSideBySide(t *testing.T) {
	status, lag := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Account{Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south"})
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		meet(t, status, lag)
		_ = json.NewEncoder(w).Encode(admin.Status{Version: admin.StatusVersion})
	})
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) {
		meet(t, lag, status)
		_ = json.NewEncoder(w).Encode(admin.Lag{Silent: []admin.SilentLocation{{Location: "south", Reason: "no answer in time"}}})
	})
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(http.ResponseWriter, *http.Request) { t.Error("it would wait for south again") })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	_, out, _ := ctl(srv.URL, "failover", "start", "pictures", "--dry-run")
	require.Contains(t, out, "blocked    south does not answer: no answer in time; see docs/runbooks/target-down.md\n")
}

// meet holds an answer back until another one is asked for, too.
func meet(t *testing.T, mine, other chan struct{}) {
	t.Helper()
	close(mine)
	select {
	case <-other:
	case <-time.After(5 * time.Second):
		t.Error("one was asked after the other")
	}
}

// The port of a process that is paused is named, with what to do.
func TestSilentPort(t *testing.T) {
	for form, want := range map[string]string{
		"text": "antipodectl: http://north:1 takes calls and does not answer: its process may be paused, or its machine too busy: see both, " +
			"or name another port with --admin URL; nothing was changed\n",
		"json": `{"error":{"code":"NoAnswer","message":"http://north:1 takes calls`,
	} {
		var errOut strings.Builder
		c, err := admin.New("http://north:1", nil)
		require.NoError(t, err)
		tool := newTool(func(string) string { return "" }, io.Discard, &errOut)
		tool.client, tool.output = c, form
		tool.complain(fmt.Errorf("ask: %w", admin.ErrSilent))
		require.Contains(t, errOut.String(), want)
	}
}

// R19: a plan asks whether the other location answers, and changes nothing. It promises no move without loss beside what blocks
// one; an older program, which does not know the question, blocks nothing.
func TestR19PlanAsksTheOtherLocation(t *testing.T) {
	refusal, link, said := http.StatusServiceUnavailable, admin.Link{}, "south does not answer"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{Version: admin.StatusVersion, Link: link})
	})
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Account{Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south"})
	})
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Lag{Services: []admin.ServiceLag{{ServiceStatus: admin.ServiceStatus{Service: "blob", Status: admin.Live}}}})
	})
	mux.HandleFunc("GET /v1/accounts/pictures/geo", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.GeoReplication{Stats: &admin.GeoReplicationStats{CanFailover: true, CanPlannedFailover: true}})
	})
	mux.HandleFunc("GET /v1/accounts/pictures/keys", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(admin.Keys{}) })
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, r *http.Request) {
		var in admin.UpdateAccount
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Failover == nil || !in.Failover.DryRun {
			t.Errorf("not a dry run: %+v %v", in, err)
		}
		w.WriteHeader(refusal)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "ServerBusy", Message: said}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, args := range [][]string{{"check", "pictures"}, {"start", "pictures"}, {"start", "pictures", "--yes"}, {"plan", "pictures"}, {"planned", "pictures"}} {
		code, out, errOut := ctl(srv.URL, append([]string{"failover"}, args...)...)
		require.NotContains(t, out, "nothing is lost", args)
		require.Contains(t, out+errOut, "south does not answer", args)
		require.Equal(t, args[0] == "start" || args[0] == "planned", code == command.Failed, args)
	}
	link = admin.Link{State: admin.LinkDelayed, DelaySeconds: 4}
	_, out, errOut := ctl(srv.URL, "failover", "start", "pictures")
	const delays = "an operator delays the link by 4s: antipodectl link heal"
	require.Contains(t, out, "link       "+delays+"\nblocked    south does not answer\n", "in front of what follows from it")
	require.Contains(t, errOut, "is blocked, nothing was changed: "+delays+"; south does not answer")
	link = admin.Link{}
	said = `could not plan a failover of account "pictures": south does not answer in time; nothing was changed: see antipodectl status`
	_, out, errOut = ctl(srv.URL, "failover", "start", "pictures")
	require.Contains(t, out, "blocked    south does not answer in time: see antipodectl status\n", "once, and without what the plan is of")
	require.Contains(t, errOut, "is blocked, nothing was changed: south does not answer in time: see antipodectl status\n")
	_, out, _ = ctl(srv.URL, "account", "show", "pictures")
	require.Contains(t, out, "failover: planned not possible now, unplanned possible", "as the plan says it")
	refusal = http.StatusBadRequest
	_, out, _ = ctl(srv.URL, "account", "show", "pictures")
	require.Contains(t, out, "failover: planned possible, unplanned possible")
	_, out, _ = ctl(srv.URL, "failover", "check", "pictures")
	require.Contains(t, out, "; nothing is lost\n")
	require.NotContains(t, out, "blocked")
}

// Beside a primary that answers, an unplanned failover is shown with the planned one, which loses nothing, or with what it
// would lose where that is blocked; not beside one that does not answer.
func TestUnplannedPointsToPlanned(t *testing.T) {
	status, lag := admin.Live, admin.ServiceLag{}
	mux := http.NewServeMux()
	account := admin.AccountInfo{Account: admin.Account{Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south"}}
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(account) })
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) {
		lag.ServiceStatus = admin.ServiceStatus{Service: "blob", Status: status}
		_ = json.NewEncoder(w).Encode(admin.Lag{Services: []admin.ServiceLag{lag}})
	})
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.AccountUpdated{AccountInfo: account})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	const hint = "north answers, and nothing blocks a planned failover, which loses nothing: antipodectl failover start pictures\n"
	_, out, _ := ctl(srv.URL, "failover", "unplanned", "pictures")
	require.Contains(t, out, hint)
	require.Contains(t, out, nothingChanged)
	status = admin.Unavailable
	_, out, _ = ctl(srv.URL, "failover", "unplanned", "pictures")
	require.NotContains(t, out, "planned failover")
	behind := uint64(26)
	lag.LagRecords = &behind
	_, out, _ = ctl(srv.URL, "failover", "unplanned", "pictures")
	require.Contains(t, out, "north answers: what it has acknowledged and is not there would be lost; first mend what blocks a planned failover: "+
		"antipodectl failover check pictures\n")
	lag.AtLeast = true
	_, out, _ = ctl(srv.URL, "failover", "unplanned", "pictures")
	require.NotContains(t, out, "answers", "the primary was not asked")
}

// R19: a location that does not exist has no failover, and no plan; the port of one location alone knows no other.
func TestR19FailoverOfAnUnknownLocation(t *testing.T) {
	all := []admin.Location{{Name: "north"}, {Name: "south"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			_ = json.NewEncoder(w).Encode(admin.Status{Locations: all})
			return
		}
		_ = json.NewEncoder(w).Encode(admin.LocationFailover{})
	}))
	defer srv.Close()
	for _, line := range [][]string{
		{"plan", "--location", "east"},
		{"plan", "--location", "north", "--to", "east"},
		{"show", "--location", "east"},
		{"end", "--location", "east"},
		{"planned", "--location", "east", "--yes"},
	} {
		code, _, errOut := ctl(srv.URL, append([]string{"failover"}, line...)...)
		require.Equal(t, command.Failed, code, line)
		require.Contains(t, errOut, "there is no location east: there are north and south", line)
	}
	code, out, _ := ctl(srv.URL, "failover", "show", "--location", "north")
	require.Zero(t, code)
	require.Contains(t, out, "there was no failover")
	all = all[1:]
	code, _, errOut := ctl(srv.URL, "failover", "check", "--location", "north")
	require.Zero(t, code, errOut)
}

// Plans, refusals and explanations do not print what a server of an earlier version passes on of gRPC.
func TestPlansHaveNoRawErrors(t *testing.T) {
	const raw = "north: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:1: refused\""
	silent := []admin.SilentLocation{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Account{Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south"})
	})
	mux.HandleFunc("GET /v1/accounts/pictures/lag", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(admin.Lag{Silent: silent}) })
	mux.HandleFunc("GET /v1/accounts/pictures/why", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Why{
			Account: "pictures", Silent: []admin.SilentLocation{{Location: "north", Reason: raw}},
			Services: []admin.ServiceWhy{{
				ServiceStatus: admin.ServiceStatus{Service: "blob", Reason: raw}, Causes: []admin.Cause{{Stage: admin.StageUnknown, Detail: "not known: " + raw}},
			}},
		})
	})
	mux.HandleFunc("POST /v1/accounts/pictures/update", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "ServerBusy", Message: raw}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, list := range [][]admin.SilentLocation{nil, {{Location: "north", Reason: raw}}} {
		silent = list
		for _, line := range [][]string{{"failover", "check"}, {"failover", "start"}, {"failover", "end"}, {"why"}} {
			_, out, errOut := ctl(srv.URL, append(line, "pictures")...)
			require.Contains(t, out+errOut, "north: dial tcp 127.0.0.1:1: refused", line)
			require.NotContains(t, out+errOut, "desc =", line)
		}
	}
}
