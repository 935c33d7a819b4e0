package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// The start of a location returns when the location serves, prints every five seconds what it
// waits for, and fails after --wait with what is missing. The start of a node prints that the node
// runs. The test port serves after a number of requests, and each pause moves the clock.
func TestStartWaits(t *testing.T) {
	const reason = "the queue range has no leader yet"
	for _, c := range []struct {
		name, line  string
		questions   int
		code        command.Code
		out, errOut string
	}{
		{"serves", "location start northcentralus", 21, command.Done, "northcentralus is running\n", "waiting: northcentralus: " + reason + " (5s)\nwaiting: northcentralus: " + reason + " (10s)\n"},
		{"never serves", "location start northcentralus --wait 6s", 1000, command.Failed, "", "waiting: northcentralus: " + reason + " (5s)\n" +
			"antipodectl: northcentralus does not serve yet and goes on starting: " + reason + "; see antipodectl status\n"},
		{
			"not waited for", "location start northcentralus --wait 0", 1000, command.Failed, "",
			"antipodectl: northcentralus does not serve yet and goes on starting: " + reason + "; see antipodectl status\n",
		},
		{"node", "node start northcentralus-2", 3, command.Done, "northcentralus-2 is running\n", ""},
		{
			"lone node", "node start northcentralus-2 --wait 1s", 1000, command.Done,
			"northcentralus-2 is running; its location does not serve yet: " + reason + "\n", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			mux := http.NewServeMux()
			answer := func(doc any) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc) }
			}
			mux.Handle("POST /v1/locations/northcentralus/start", answer(admin.Changed{Name: "northcentralus", State: admin.Starting, Waiting: reason}))
			mux.Handle("POST /v1/nodes/northcentralus-2/start", answer(admin.Changed{Name: "northcentralus-2", State: admin.Running, Waiting: reason}))
			mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
				l := admin.LocationReadiness{Name: "northcentralus", Reason: reason}
				if asked++; asked > c.questions {
					l.Serving, l.Reason = true, "Last Sync Time of pictures (blob) is not known yet"
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = json.NewEncoder(w).Encode(admin.Readiness{Locations: []admin.LocationReadiness{{Name: "southcentralus"}, l}})
			})
			srv := httptest.NewServer(mux)
			defer srv.Close()
			var out, errOut bytes.Buffer
			tl := newTool(func(string) string { return srv.URL }, &out, &errOut)
			now := time.Duration(0)
			tl.mono = func() time.Duration { return now }
			tl.after = func(d time.Duration) <-chan time.Time {
				now += d
				passed := make(chan time.Time, 1)
				passed <- time.Time{}
				return passed
			}
			code := tl.run(context.Background(), strings.Fields(c.line))
			require.Equal(t, c.code, code, errOut.String())
			require.Equal(t, c.out, out.String())
			require.Equal(t, c.errOut, errOut.String())
		})
	}
}
