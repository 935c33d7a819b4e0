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

// R20: the plan of an unplanned failover of a location that serves offers a planned one only where nothing blocks that: else it
// names what does, and that something is lost.
func TestR20LocationPlanOffersWhatCanGo(t *testing.T) {
	s, stands := manyAccounts(2), false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Version = admin.StatusVersion
		if r.URL.Path == "/v1/status" {
			_ = json.NewEncoder(w).Encode(s)
			return
		}
		if strings.Contains(r.URL.Path, string(drillNorth)) && r.Method == http.MethodPost && stands {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "ServerBusy", Message: "south received nothing"}})
			return
		}
		_ = json.NewEncoder(w).Encode(admin.LocationFailover{From: drillNorth, To: drillSouth, Waiting: 2})
	}))
	defer srv.Close()
	plan := func() string {
		_, out, _ := ctl(srv.URL, "failover", "unplanned", "--location", "northcentralus")
		return out
	}
	const offered = "a planned failover loses nothing"
	const lost = "northcentralus serves: what it has acknowledged and is not at southcentralus would be lost; " +
		"first mend what blocks a planned failover: antipodectl failover check --location northcentralus\n"
	require.Contains(t, plan(), offered)

	s.Link.State = admin.LinkCut
	require.Contains(t, plan(), "planned    blocked: an operator cut the link: antipodectl link heal\n"+lost)
	require.NotContains(t, plan(), offered)
	s.Link.State, stands = admin.LinkUp, true
	require.Contains(t, plan(), "planned    blocked: south received nothing\n"+lost)
	require.NotContains(t, plan(), offered)
	stands, s.Locations[1].State = false, admin.Unreachable
	require.Contains(t, plan(), lost)
	require.NotContains(t, plan(), offered)
}

// R20, R21: the plan for a location names, as the one for an account does, that both locations will take writes.
func TestR20LocationPlanNamesAPrimaryThatGoesOn(t *testing.T) {
	d := newDoomed()
	d.lags(true)
	d.status.Link.State = admin.LinkCut
	d.status.Accounts = []admin.AccountStatus{{Account: d.account.Account}}
	url := d.port(t)
	for by, want := range map[string]bool{"override": true, "policy": true, "witness": false, "exchange": false} {
		for i := range d.status.Locations {
			d.status.Locations[i].Epochs = &admin.Epochs{Confirmed: true, By: by}
		}
		_, out, errOut := ctl(url, "failover", "unplanned", "--location", "northcentralus")
		require.Contains(t, out, "planned    blocked: an operator cut the link", errOut)
		require.Equal(t, want, strings.Contains(out, "northcentralus takes writes by an operator's word, and goes on: after this failover both locations take "+
			"writes, until northcentralus is stopped, or reaches southcentralus; what it takes meanwhile is not in the copy\n"), "%s: %s", by, out)
	}
}
