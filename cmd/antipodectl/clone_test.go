package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// drill --clone opens, shows and drops a clone, and says under which name it is reached and what it has. Flags of the
// other drill do not go with it.
//
// Capability: Failover: Drills of failovers.
func TestDrillClone(t *testing.T) {
	var asked []string
	doc := admin.Clone{
		Account: "pictures", Name: "pictures-drill", Location: "southcentralus", Node: "southcentralus-2", TookSeconds: 1.25,
		Cut:       []admin.CloneCut{{Service: "blob", LastSyncTime: admin.Time{Time: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}}, {Service: "table", Reason: "not-heard"}},
		Endpoints: []admin.CloneEndpoint{{Service: "blob", URL: "http://127.0.0.1:10000/pictures-drill"}},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q admin.OpenClone
		_ = json.NewDecoder(r.Body).Decode(&q)
		asked = append(asked, r.Method+" "+r.URL.Path)
		require.Contains(t, []float64{0, 3600, 7200}, q.ForSeconds)
		_ = json.NewEncoder(w).Encode(doc)
	}))
	defer srv.Close()
	run := func(args ...string) (code command.Code, out, errOut string) {
		var o, e bytes.Buffer
		tool := newTool(func(name string) string {
			return map[string]string{adminEnv: srv.URL, tokenEnv: "antipode-admin-" + string(bytes.Repeat([]byte("0"), 64))}[name]
		}, &o, &e)
		return tool.run(t.Context(), append([]string{"drill", "pictures"}, args...)), o.String(), e.String()
	}
	for _, bad := range [][]string{
		{"--for", "1h"},
		{"--drop"},
		{"--show"},
		{"--clone", "--yes"},
		{"--clone", "--within", "1s"},
		{"--clone", "--dry-run"},
		{"--clone", "--unplanned"},
		{"--clone", "--kill"},
		{"--clone", "--kill-command", "x", "--start-command", "y"},
		{"--clone", "--rebuild"},
		{"--clone", "--follow", "1m"},
		{"--clone", "--html", "x"},
		{"--clone", "--show", "--drop"},
		{"--clone", "--for", "25h"},
		{"--clone", "--for", "0s"},
		{"--clone", "--drop", "--for", "1h"},
	} {
		code, _, errOut := run(bad...)
		require.Equal(t, command.Usage, code, "%v: %s", bad, errOut)
	}
	require.Empty(t, asked)
	for _, args := range [][]string{{"--clone", "--for", "2h"}, {"--clone"}, {"--clone", "--show"}} {
		code, out, errOut := run(args...)
		require.Zero(t, code, errOut)
		require.Contains(t, out, "account    pictures-drill (keys of pictures)\n")
		require.Regexp(t, `(?m)^blob +2026-11-20T10:00:00.000Z +http://127.0.0.1:10000/pictures-drill$`, out)
		require.Regexp(t, `(?m)^table +unknown: not-heard +none$`, out)
	}
	code, out, _ := run("--clone", "--drop")
	require.Zero(t, code)
	require.Equal(t, "the clone pictures-drill is deleted\n", out)
	require.Equal(t, []string{
		"POST /v1/accounts/pictures/clone", "POST /v1/accounts/pictures/clone", "GET /v1/accounts/pictures/clone", "POST /v1/accounts/pictures/clone/drop",
	}, asked)
}
