package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
)

// account show asks for one status, beside what else waits for a location, and whether the streams move only where nothing blocks a
// planned failover already: while they stand the answer to that takes seconds.
func TestAccountShowAsksOnce(t *testing.T) {
	for _, c := range []struct {
		stopped   string
		refused   bool
		want      string
		rehearsed int
	}{
		{"", false, "failover: planned possible, unplanned possible; then ", 1},
		{"", true, "failover: planned not possible now, unplanned possible; then ", 1},
		{"forked", false, "failover: planned not possible now, unplanned possible; then ", 0},
	} {
		var mu sync.Mutex
		asked := map[string]int{}
		both := make(chan struct{})
		mux := http.NewServeMux()
		answer := func(pattern string, doc any) {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				asked[pattern]++
				if asked["GET /v1/status"] == 1 && asked["GET /v1/accounts/pictures/geo"] == 1 && asked["GET /v1/accounts/pictures/lag"] == 0 {
					close(both)
				}
				mu.Unlock()
				if pattern == "GET /v1/status" || pattern == "GET /v1/accounts/pictures/geo" {
					select {
					case <-both:
					case <-time.After(5 * time.Second):
						t.Error("one was asked after the other")
					}
				}
				if pattern == "POST /v1/accounts/pictures/update" && c.refused {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_ = json.NewEncoder(w).Encode(doc)
			})
		}
		answer("GET /v1/accounts/pictures", admin.Account{Name: "pictures", Redundancy: "GRS", Primary: "north", Secondary: "south"})
		answer("GET /v1/accounts/pictures/keys", admin.Keys{})
		answer("GET /v1/status", admin.Status{Version: admin.StatusVersion})
		answer("GET /v1/accounts/pictures/geo", admin.GeoReplication{
			StatusOfPrimary: admin.LocationAvailable, StatusOfSecondary: admin.LocationAvailable,
			Stats: &admin.GeoReplicationStats{CanFailover: true, CanPlannedFailover: true},
		})
		answer("GET /v1/accounts/pictures/lag", admin.Lag{Streams: []admin.StreamLag{{Service: geo.Blob.String(), Stopped: c.stopped}}})
		answer("POST /v1/accounts/pictures/update", admin.ErrorDocument{Error: admin.Error{Code: "ServerBusy", Message: "south did not receive what was sent"}})
		srv := httptest.NewServer(mux)
		_, out, errOut := ctl(srv.URL, "account", "show", "pictures")
		require.Contains(t, out, c.want, errOut)
		require.Equal(t, 1, asked["GET /v1/status"])
		require.Equal(t, c.rehearsed, asked["POST /v1/accounts/pictures/update"])
		srv.Close()
	}
}
