package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
)

// whyDocument is an account of which one service is well, one waits for payload, and one is stopped.
func whyDocument(now admin.Time) admin.Why {
	seconds := func(f float64) *float64 { return &f }
	lane := func(l geo.Lane) *geo.Lane { return &l }
	then := admin.Time{Time: now.Add(-12 * time.Second)}
	return admin.Why{
		Account: "pictures", Primary: "southcentralus", Secondary: "northcentralus", ThresholdSeconds: 1,
		Services: []admin.ServiceWhy{
			{
				ServiceStatus:     admin.ServiceStatus{Service: "blob", Status: admin.Live, LastSyncTime: then, LagSeconds: seconds(12), StreamsBehind: 9},
				More:              8,
				CaughtUpInSeconds: seconds(30.5),
				Causes: []admin.Cause{{
					Stage: admin.StageWaiting, Location: "northcentralus", Range: 2, Service: "blob", Stream: "pictures/1@southcentralus/r2/l11", Lane: lane(11),
					SyncTime: then, For: "payload", Detail: "record #7 waits for its payload, which is fetched from the primary", Error: "disk full", Seconds: seconds(11.25),
				}},
			},
			{ServiceStatus: admin.ServiceStatus{Service: "queue", Status: admin.Live, LastSyncTime: now, LagSeconds: seconds(0.25)}, OK: true},
			{
				ServiceStatus: admin.ServiceStatus{Service: "table", Status: admin.Unavailable, Reason: "forked"},
				Causes: []admin.Cause{
					{
						Stage: admin.StageStopped, Location: "northcentralus", Range: 4, Service: "table", Stream: "pictures/1@southcentralus/r4/l17", Lane: lane(17),
						Detail: "forked; an operator has to decide: antipodectl fork show pictures/1@southcentralus/r4/l17",
					},
					{Stage: admin.StageLink, Location: "northcentralus", Detail: "nothing comes from the primary, which could not be asked"},
				},
			},
		},
		Silent: []admin.SilentLocation{{Location: "southcentralus", Reason: "no node of location southcentralus answers on its admin port"}},
	}
}

// Each cause is one line, however many services, lanes and records have it, and however long its error is.
func TestWhyHasALineForEachCause(t *testing.T) {
	away := admin.Cause{
		Stage: admin.StageLink, Location: "south", Detail: "calls to the primary fail",
		Error: "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error\n\twhile dialing: refused\"",
	}
	y := admin.Why{Account: "pictures", Primary: "north", Secondary: "south"}
	for _, service := range []string{"blob", "queue", "table"} {
		s := admin.ServiceWhy{ServiceStatus: admin.ServiceStatus{Service: service, Status: admin.Live}, Causes: []admin.Cause{away}}
		for lane := range geo.Lane(3) {
			if service == "blob" {
				s.Causes = append(s.Causes, admin.Cause{
					Stage: admin.StageStopped, Location: "south", Range: 2, Service: "blob", Stream: "pictures/1@north/r2/l" + fmt.Sprint(lane), Lane: &lane,
					Detail: "forked; antipodectl fork show pictures/1@north/r2/l" + fmt.Sprint(lane),
				})
				s.More = 29
			}
		}
		y.Services = append(y.Services, s)
	}
	var b strings.Builder
	writeWhy(&b, y)
	require.Equal(t, `pictures: north to south
blob   live
queue  live
table  live
link (blob, queue, table): calls to the primary fail (refused); at south
stopped (blob): forked; antipodectl fork show pictures/1@north/r2/l0; lane 0 of range 2 (blob) at south; and 31 more: antipodectl lag pictures
`, b.String())
}

// why asks for the status beside what holds Last Sync Time back, since both wait for a location that is paused; programs get no
// status.
func TestWhyAsksSideBySide(t *testing.T) {
	for _, form := range []string{"text", "json"} {
		status, why := make(chan struct{}), make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
			meet(t, status, why)
			_ = json.NewEncoder(w).Encode(admin.Status{Version: admin.StatusVersion})
		})
		mux.HandleFunc("GET /v1/accounts/pictures/why", func(w http.ResponseWriter, _ *http.Request) {
			if form == "text" {
				meet(t, why, status)
			}
			_ = json.NewEncoder(w).Encode(admin.Why{Account: "pictures"})
		})
		srv := httptest.NewServer(mux)
		code, out, errOut := ctl(srv.URL, "why", "pictures", "--output", form)
		require.Zero(t, code, errOut)
		require.Equal(t, form == "text", strings.Contains(out, "health   all is well\n"), out)
		srv.Close()
	}
}
