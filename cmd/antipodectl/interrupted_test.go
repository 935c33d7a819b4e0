package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// After an interruption "nothing was changed" is printed if a command had sent reads and dry runs alone, else that it may have been
// done.
func TestInterruptedSaysWhetherAnythingWasAsked(t *testing.T) {
	const nothing, maybe = "interrupted: nothing was changed\n", "interrupted: the operation may have been done, look at antipodectl status\n"
	for _, c := range []struct{ line, at, want string }{
		{"node wait-in-sync north-1", "GET /v1/status", nothing},
		{"status", "GET /v1/status", nothing},
		{"failover start pictures --yes", "GET /v1/accounts/pictures/lag", nothing},
		{"failover start pictures --yes", "POST /v1/accounts/pictures/update dry", nothing},
		{"failover start pictures --yes", "POST /v1/accounts/pictures/update", maybe},
		{"failover check --location north", "POST /v1/locations/north/failover dry", nothing},
		{"failover start --location north --yes", "POST /v1/locations/north/failover", maybe},
		{"link cut", "POST /v1/link/cut", maybe},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			call := r.Method + " " + r.URL.Path
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"dry_run":true`) {
				call += " dry"
			}
			if call == c.at {
				interrupt()
				<-r.Context().Done()
				return
			}
			switch r.URL.Path {
			case "/v1/status":
				_ = json.NewEncoder(w).Encode(admin.Status{
					Version:   admin.StatusVersion,
					Locations: []admin.Location{{Name: "north", State: admin.Running}, {Name: "south", State: admin.Running}},
					Accounts:  []admin.AccountStatus{{Account: admin.Account{Name: "pictures", Primary: "north", Secondary: "south"}}},
				})
			default:
				_ = json.NewEncoder(w).Encode(admin.Account{Name: "pictures", Primary: "north", Secondary: "south"})
			}
		}))
		var out, errOut bytes.Buffer
		env := func(name string) string {
			return map[string]string{adminEnv: srv.URL, tokenEnv: "antipode-admin-" + strings.Repeat("0", 64)}[name]
		}
		require.NotZero(t, newTool(env, &out, &errOut).run(ctx, strings.Fields(c.line)), c)
		require.Equal(t, "antipodectl: "+c.want, errOut.String(), c)
		srv.Close()
		interrupt()
	}
}
