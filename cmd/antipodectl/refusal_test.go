package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
)

// A planned failover whose plan says what blocks it is refused with the reasons before anything is changed, and so is its dry
// run; --dry-run wins over --yes.
func TestBlockedFailoverIsRefused(t *testing.T) {
	d := newDrilled(t)
	for _, line := range []string{"planned pictures", "planned pictures --yes --dry-run", "unplanned pictures --yes --dry-run"} {
		code, out, errOut := ctl(d.url, strings.Fields("failover "+line)...)
		require.Equal(t, exitOK, code, errOut)
		require.Contains(t, out, "nothing was changed")
	}
	d.blocked = true
	for _, line := range []string{"planned pictures --yes", "planned pictures --dry-run"} {
		code, _, errOut := ctl(d.url, strings.Fields("failover "+line)...)
		require.Equal(t, exitDiffers, code)
		require.Contains(t, errOut, "a planned failover of pictures is blocked, nothing was changed: an operation is under way: a bootstrap")
	}
	require.Empty(t, d.did)
}

// wholeServer answers the status of two locations; an account of the north has an operation under way. The failover of a
// location is over at once, and counted.
func wholeServer(t *testing.T, north, south admin.State, begun *int) string {
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
			_, _ = io.Copy(io.Discard, r.Body)
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
		url := wholeServer(t, c.north, c.south, &begun)
		code, out, errOut := ctl(url, "failover", c.line, "--location", "northcentralus", "--dry-run", "--yes")
		require.Zero(t, begun)
		require.Contains(t, out, "nothing was changed")
		require.Contains(t, out, "passed by  account pictures: an operation is under way: a bootstrap")
		require.Contains(t, errOut, c.blocked)
		require.Equal(t, c.blocked != "", code == exitDiffers)

		code, _, errOut = ctl(url, "failover", c.line, "--location", "northcentralus", "--yes")
		if c.blocked == "" {
			require.Equal(t, exitOK, code, errOut)
			require.Equal(t, 1, begun)
			continue
		}
		require.Equal(t, exitDiffers, code)
		require.Contains(t, errOut, "a failover of location northcentralus is blocked, nothing was changed: "+c.blocked)
		require.Zero(t, begun)
	}
}
