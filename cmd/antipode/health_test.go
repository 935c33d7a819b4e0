package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// replicas is the status of the location north: of each range, which nodes its leader counts, and those in sync.
func replicas(ranges ...[]admin.Standing) admin.Status {
	l := admin.Location{Name: "north"}
	for i, at := range ranges {
		r := admin.Range{Service: "table"}
		r.Range++
		if at != nil {
			r.LeaderView = &admin.LeaderView{Leader: at[0].Node, Standings: ranges[i]}
		}
		l.Ranges = append(l.Ranges, r)
	}
	return admin.Status{Locations: []admin.Location{{Name: "south"}, l}}
}

// A node is in sync when each range has a leader, and each leader that counts a replica of the node counts it in sync.
//
// Capability: Deploy: `antipode health`.
func TestNodeInSync(t *testing.T) {
	in, out := admin.Standing{Node: "north-1", InSync: true}, admin.Standing{Node: "north-1"}
	other := admin.Standing{Node: "north-2", InSync: true}
	behind := admin.Standing{Node: "north-2"}
	require.NoError(t, nodeInSync(replicas([]admin.Standing{other, in}, []admin.Standing{in, behind}), "north-1"))
	require.NoError(t, nodeInSync(replicas([]admin.Standing{in}, []admin.Standing{other}), "north-1"), "no replica of one range")
	require.ErrorContains(t, nodeInSync(replicas([]admin.Standing{in}, []admin.Standing{other, out}), "north-1"), "not in sync")
	require.ErrorContains(t, nodeInSync(replicas([]admin.Standing{in}, nil), "north-1"), "no leader")
	require.ErrorContains(t, nodeInSync(replicas([]admin.Standing{other}), "north-1"), "no leader counts")
	require.ErrorContains(t, nodeInSync(replicas([]admin.Standing{in}), "south-1"), "no leader counts")
	require.ErrorContains(t, nodeInSync(replicas([]admin.Standing{in}), "north"), "--in-sync")
}

// The command exits with an error if nothing answers, if the answer is not 200, and if the node is not in sync.
//
// Capability: Deploy: `antipode health`.
func TestHealth(t *testing.T) {
	code, inSync := http.StatusOK, true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(code)
			return
		}
		_, _ = fmt.Fprintf(w, `{"locations":[{"name":"north","ranges":[{"service":"table","leader":"north-2",
			"standings":[{"node":"north-1","in_sync":%t}]}]}]}`, inSync)
	}))
	defer s.Close()
	run := func(args ...string) error {
		cmd := healthCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(args)
		return cmd.ExecuteContext(t.Context())
	}
	require.NoError(t, run(s.URL))
	require.NoError(t, run("--in-sync", "north-1", s.URL))
	t.Setenv("ANTIPODE_NODE", "north-1")
	require.NoError(t, run("--in-sync-env", "ANTIPODE_NODE", s.URL))
	require.ErrorContains(t, run("--in-sync-env", "ANTIPODE_NODES", s.URL), "the environment has no")
	inSync = false
	require.ErrorContains(t, run("--in-sync-env", "ANTIPODE_NODE", s.URL), "not in sync")
	require.NoError(t, run(s.URL))
	require.ErrorContains(t, run("--in-sync", "north-1", s.URL), "not in sync")
	code = http.StatusServiceUnavailable
	require.ErrorContains(t, run(s.URL), "answers 503")
	s.Close()
	require.ErrorContains(t, run(s.URL), "does not answer")
}
