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

// A location whose events are missing, since it does not answer, is named beside those of the other one.
func TestEventsNameWhoIsSilent(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.EventList{
			Events: []admin.Event{{Number: 1, Location: "southcentralus", Kind: "disk-full", Node: "southcentralus-1"}}, Silent: []string{"northcentralus"},
		})
	}))
	defer srv.Close()
	code, out, errOut := ctl(srv.URL, "events")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, "disk-full")
	require.Equal(t, "WARNING: northcentralus does not answer: its events are missing\n", errOut)
	code, out, errOut = ctl(srv.URL, "events", "-o", "json")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, `"silent": [`)
	require.NotEmpty(t, errOut)
}
