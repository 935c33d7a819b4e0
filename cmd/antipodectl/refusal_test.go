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
	"antipode/geo"
)

// A planned failover whose plan says what blocks it is refused with the reasons before anything is changed, and so is its dry
// run; --dry-run wins over --yes.
func TestBlockedFailoverIsRefused(t *testing.T) {
	d := newDrilled(t)
	for _, line := range []string{"planned pictures", "planned pictures --yes --dry-run", "unplanned pictures --yes --dry-run"} {
		code, out, errOut := ctl(d.url, strings.Fields("failover "+line)...)
		require.Equal(t, command.Done, code, errOut)
		require.Contains(t, out, nothingChanged)
	}
	d.blocked = true
	for _, line := range []string{"planned pictures --yes", "planned pictures --dry-run"} {
		code, out, errOut := ctl(d.url, strings.Fields("failover "+line)...)
		require.Equal(t, command.Failed, code)
		require.NotContains(t, out, nothingChanged)
		require.Contains(t, errOut, "a planned failover of pictures is blocked, nothing was changed: an operation is under way: a bootstrap")
	}
	code, out, _ := ctl(d.url, "drill", "pictures")
	require.Equal(t, command.Failed, code)
	require.NotContains(t, out, "--yes moves")
	require.Empty(t, d.did)
}

// wholeServer answers the status of two locations; an account of the north has an operation under way. The failover of a
// location is over at once, and counted. checked is the answer to a dry run of an unplanned one; empty: there is none.
func wholeServer(t *testing.T, north, south admin.State, begun *int, checked admin.LocationFailover) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{
			Version:   admin.StatusVersion,
			Locations: []admin.Location{{Name: drillNorth, State: north}, {Name: drillSouth, State: south}},
			Accounts: []admin.AccountStatus{{Account: admin.Account{
				Name: "pictures", Redundancy: "RA-GRS", Primary: drillNorth, Secondary: drillSouth, Operation: "a bootstrap",
			}}},
		})
	})
	for _, l := range []geo.Location{drillNorth, drillSouth} {
		mux.HandleFunc("POST /v1/locations/"+string(l)+"/failover", func(w http.ResponseWriter, r *http.Request) {
			var in admin.Failover
			_ = json.NewDecoder(r.Body).Decode(&in)
			switch {
			case in.DryRun && in.Type == admin.FailoverUnplanned && checked.From == "":
				http.Error(w, `{"error":{"code":"Busy","message":"busy"}}`, http.StatusServiceUnavailable)
				return
			case in.DryRun:
				_ = json.NewEncoder(w).Encode(checked)
				return
			}
			*begun++
			_ = json.NewEncoder(w).Encode(admin.LocationFailover{From: drillNorth, To: drillSouth, Phase: admin.LocationOver})
		})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// The failover of a location is refused where the plan says what blocks all of it: a location that does not run. That is the
// present one for a planned failover alone. Accounts that are passed over block nothing.
func TestBlockedLocationFailoverIsRefused(t *testing.T) {
	for _, c := range []struct {
		line         string
		north, south admin.State
		blocked      string
	}{
		{"planned", admin.Running, admin.Running, ""},
		{"planned", admin.Stopped, admin.Running, "location northcentralus is stopped"},
		{"planned", admin.Running, admin.Unreachable, "location southcentralus is unreachable"},
		{"unplanned", admin.Stopped, admin.Running, ""},
		{"unplanned", admin.Stopped, admin.Unreachable, "location southcentralus is unreachable"},
	} {
		begun := 0
		url := wholeServer(t, c.north, c.south, &begun, admin.LocationFailover{})
		code, out, errOut := ctl(url, "failover", c.line, "--location", "northcentralus", "--dry-run", "--yes")
		require.Zero(t, begun)
		require.Equal(t, c.blocked != "", strings.Contains(out, "nothing was changed, and with --yes it is refused\n"), out)
		require.Equal(t, c.blocked == "", strings.Contains(out, nothingChanged), out)
		require.Equal(t, c.line == "planned", strings.Contains(out, "passed by  account pictures: an operation is under way: a bootstrap"))
		require.Contains(t, errOut, c.blocked)
		require.Equal(t, c.blocked != "", code == command.Failed)

		code, _, errOut = ctl(url, "failover", c.line, "--location", "northcentralus", "--yes")
		if c.blocked == "" {
			require.Equal(t, command.Done, code, errOut)
			require.Equal(t, 1, begun)
			continue
		}
		require.Equal(t, command.Failed, code)
		require.Contains(t, errOut, "a failover of location northcentralus is blocked, nothing was changed: "+c.blocked)
		const otherwise = "if it will not be back soon: antipodectl failover unplanned --location northcentralus --to southcentralus\n"
		require.Equal(t, c.line == "planned" && c.north != admin.Running, strings.HasSuffix(errOut, "; "+otherwise), errOut)
		require.Equal(t, c.line == "planned" && c.north != admin.Running, strings.Contains(out, otherwise), out)
		require.Zero(t, begun)
	}
}

// A plan names the other kind of failover where that is the one to think of, and what blocks a planned one although both
// locations run: a cut link, and a location that leads no range.
func TestWholePlanNamesTheOtherFailover(t *testing.T) {
	s := manyAccounts(2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Version = admin.StatusVersion
		if r.URL.Path == "/v1/status" {
			_ = json.NewEncoder(w).Encode(s)
			return
		}
		_ = json.NewEncoder(w).Encode(admin.LocationFailover{From: drillNorth, To: drillSouth, Waiting: 2})
	}))
	defer srv.Close()
	plan := func(line string) string {
		_, out, _ := ctl(srv.URL, strings.Fields("failover "+line+" --location northcentralus")...)
		return out
	}
	const planned = "northcentralus serves: a planned failover loses nothing: antipodectl failover check --location northcentralus\n"
	const unplanned = "if it will not be back soon: antipodectl failover unplanned --location northcentralus --to southcentralus\n"
	require.Contains(t, plan("unplanned"), planned)
	require.NotContains(t, plan("plan"), unplanned)
	require.NotContains(t, plan("plan"), "blocked")

	const delays = "link       an operator delays the link by 4s: antipodectl link heal\n"
	s.Link.State = admin.LinkCut
	require.Contains(t, plan("plan"), "blocked    an operator cut the link: antipodectl link heal\n")
	require.NotContains(t, plan("unplanned"), "is blocked", "it does not need the link")
	s.Link.State, s.Link.DelaySeconds = admin.LinkDelayed, 4
	require.Contains(t, plan("plan"), delays)
	s.Link.State = admin.LinkUp
	require.NotContains(t, plan("plan"), "delays")
	for i := range s.Locations[0].Ranges {
		s.Locations[0].Ranges[i].LeaderView = nil
	}
	require.Contains(t, plan("plan"), "blocked    location northcentralus leads no range\n"+unplanned)
	require.NotContains(t, plan("unplanned"), planned)
	s.Locations[0].State = admin.Unreachable
	require.Contains(t, plan("plan"), "blocked    location northcentralus is unreachable: docs/runbooks/target-down.md\n"+unplanned)
	s.Accounts = nil
	require.NotContains(t, plan("plan"), unplanned)
}

// The plan of an unplanned failover of a location names the accounts that the other location would refuse, counts them, and ends
// with exit code 1. It begins nothing. A location that cannot say keeps nobody from the failover itself.
func TestWholePlanNamesRefusedAccounts(t *testing.T) {
	checked := admin.LocationFailover{
		From: drillNorth, To: drillSouth, Waiting: 30, Refused: 21, Unchecked: 4, Moving: map[string]int{},
		RefusedAccounts: []admin.RefusedFailover{{Account: "pictures", Why: "a range was recovered with a loss"}},
	}
	begun := 0
	url := wholeServer(t, admin.Stopped, admin.Running, &begun, checked)
	for line, exits := range map[string]command.Code{"unplanned": command.Failed, "plan": command.Done} {
		code, out, errOut := ctl(url, "failover", line, "--location", "northcentralus")
		require.Equal(t, exits, code)
		require.Contains(t, out, "unplanned  21 accounts would be refused\n")
		require.Contains(t, out, "refused    account pictures: a range was recovered with a loss\n")
		require.Contains(t, out, "refused    20 more accounts\n")
		require.Contains(t, out, "unplanned  of 4 accounts it is not known: ranges do not answer\n")
		if exits != command.Done {
			require.Contains(t, errOut, "21 accounts of northcentralus would be refused, nothing was changed")
		}
		code, out, _ = ctl(url, "failover", line, "--location", "northcentralus", "--output", "json")
		require.Equal(t, exits, code)
		var p wholePlan
		require.NoError(t, json.Unmarshal([]byte(out), &p))
		require.Equal(t, 21, p.Unplanned.Refused)
		require.Len(t, p.Unplanned.Accounts, 1)
	}
	require.Zero(t, begun)
	code, out, _ := ctl(url, "failover", "start", "--location", "northcentralus", "--dry-run")
	require.Equal(t, command.Failed, code)
	require.NotContains(t, out, "would be refused", "of a planned one")
	require.NotContains(t, out, "would stay")

	url = wholeServer(t, admin.Stopped, admin.Running, &begun, admin.LocationFailover{From: drillNorth, To: drillSouth})
	_, out, _ = ctl(url, "failover", "unplanned", "--location", "northcentralus")
	require.Contains(t, out, "unplanned  0 accounts would be refused\nunplanned  1 account would stay: the other location knows of no copy\n")

	// An account whose failover is under way, or waits to be forgotten by the witness, has a copy.
	for _, waiting := range []int{0, 1} {
		url = wholeServer(t, admin.Stopped, admin.Running, &begun, admin.LocationFailover{
			From: drillNorth, To: drillSouth, Waiting: waiting, Moving: map[string]int{admin.FailoverWithdrawing: 1 - waiting},
		})
		_, out, _ = ctl(url, "failover", "unplanned", "--location", "northcentralus")
		require.NotContains(t, out, "would stay")
		require.Equal(t, waiting == 0, strings.Contains(out, "unplanned  1 account would not begin one: it is under way already, 1 withdrawing\n"), out)
	}

	url = wholeServer(t, admin.Stopped, admin.Running, &begun, admin.LocationFailover{})
	code, out, errOut := ctl(url, "failover", "unplanned", "--location", "northcentralus")
	require.Equal(t, command.Done, code, errOut)
	require.Contains(t, out, "unplanned  which accounts would be refused is not known: ")
}
