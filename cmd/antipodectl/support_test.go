package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// planted is in every text that a server of supportPort answers, in the forms in which a secret may stand there.
const planted = "PLANTEDsecret0123456789abcdef"

func plantedText() string {
	return "https://user:" + planted + "@host/path?sv=1&sig=" + planted + "&se=2 AccountKey=" + planted +
		"; Bearer " + planted + " SharedKey acct:" + planted + " password=" + planted + " -----BEGIN PRIVATE KEY-----\n" + planted +
		"\n-----END PRIVATE KEY-----\n"
}

// supportPort answers for three nodes, of which the second hangs and the third refuses.
func supportPort(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern string, doc any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(doc) })
	}
	nodes := []admin.Node{{Name: "north-1", State: admin.Running}, {Name: "north-2", State: admin.Unreachable}, {Name: "north-3", State: admin.Running}}
	answer("GET /v1/status", admin.Status{Version: 1, Locations: []admin.Location{{Name: "north", Nodes: nodes, Warnings: []string{plantedText()}}}})
	answer("GET /readyz", admin.Readiness{Locations: []admin.LocationReadiness{{Name: "north", Reason: plantedText()}}})
	answer("GET /v1/events", admin.EventList{Events: []admin.Event{{Location: "north", Reason: plantedText()}}})
	answer("GET /v1/accounts", admin.AccountList{Accounts: []admin.AccountInfo{{Account: admin.Account{Name: "pictures", OperationWaits: plantedText()}}}})
	answer("GET /v1/forks", admin.Forks{})
	answer("GET /v1/reservations", admin.Reservations{Reservations: []admin.Reservation{{Name: "music", Waits: plantedText()}}})
	whole := admin.Support{Version: "antipode", Config: "name: x\nurl: " + plantedText(), Metrics: "a_gauge 7\n# " + plantedText(), Goroutines: "goroutine 1\n" + plantedText()}
	answer("GET /v1/support", whole)
	long := whole
	key := strings.Repeat("PLANTED0", 10) + "PLANTE==" // Where the bound is, it is half a key.
	long.Metrics = strings.Repeat("a_gauge 7\n", bundlePartMax/10-7) + key + strings.Repeat("\na_gauge 7", 20)
	long.Goroutines += admin.SupportCut
	answer("GET /v1/nodes/north-1/support", long)
	mux.HandleFunc("GET /v1/nodes/north-2/support", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("GET /v1/nodes/north-3/support", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: "NoNodeAnswers", Message: "refused " + plantedText()}})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// unpack returns the parts of a bundle.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	zip, err := gzip.NewReader(f)
	require.NoError(t, err)
	parts, r := map[string]string{}, tar.NewReader(zip)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		parts[strings.TrimPrefix(h.Name, "support/")] = string(text)
	}
}

// cutOf are the names of the parts that were longer.
func cutOf(parts []part) (names []string) {
	for _, p := range parts {
		if p.Cut {
			names = append(names, p.Name)
		}
	}
	return names
}

// A support bundle has what every process answers, names what it could not have with the error, within its time, is
// bounded, and holds no secret, whatever a server answers; neither do its summary and its progress.
//
// Capability: Operation: `antipodectl support-bundle`.
func TestSupportBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, out, errOut := ctl(supportPort(t).URL, "support-bundle", "--file", file, "--node-timeout", "2s", "--output", "json")
	require.Equal(t, command.Partial, code, errOut)
	parts := unpack(t, file)
	for _, name := range []string{
		"status.json", "readiness.json", "events.json", "accounts.json", "forks.json", "reservations.json", "manifest.json", "process/config.yaml",
		"process/goroutines.txt", "nodes/north-1/version.txt", "nodes/north-1/metrics.txt", "nodes/north-1/goroutines.txt",
	} {
		require.NotEmpty(t, parts[name], name)
	}
	require.NotContains(t, out+errOut, planted)
	for name, text := range parts {
		require.NotContains(t, text, planted, name)
		require.False(t, strings.Contains(text, "PLANTED0"), name)
		require.LessOrEqual(t, len(text), bundlePartMax)
	}
	var m, inside manifest
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.NoError(t, json.Unmarshal([]byte(parts["manifest.json"]), &inside))
	require.Equal(t, m.Missing, inside.Missing)
	require.Len(t, m.Missing, 2)
	require.Equal(t, "nodes/north-2", m.Missing[0].What)
	require.Equal(t, "no answer within 2s, see --node-timeout", m.Missing[0].Error)
	require.Contains(t, m.Missing[1].Error, "refused")
	require.Contains(t, errOut, "asking for nodes/north-1")
	require.Contains(t, cutOf(m.Parts), "nodes/north-1/metrics.txt")
	require.Contains(t, cutOf(m.Parts), "nodes/north-1/goroutines.txt", "the process has cut it")
	require.Len(t, cutOf(m.Parts), 2)
	require.True(t, strings.HasSuffix(parts["nodes/north-1/metrics.txt"], admin.SupportCut))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	code, _, errOut = ctl(supportPort(t).URL, "support-bundle", "--file", file)
	require.Equal(t, command.Failed, code, "a file that exists is not overwritten")
	require.Contains(t, errOut, file)
}

// wait-in-sync waits until the node runs and all replicas of its location are in sync, says what it waits for, and gives
// up in time.
func TestWaitInSync(t *testing.T) {
	state, inSync, asked := admin.Unreachable, 2, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		switch asked {
		case 2:
			state = admin.Running
		case 3:
			inSync = 3
		}
		_ = json.NewEncoder(w).Encode(admin.Status{Version: 1, Locations: []admin.Location{{
			Name: "north", Nodes: []admin.Node{{Name: "north-1", State: state}},
			Ranges: []admin.Range{{Service: "table", ConfiguredReplicas: 3, LeaderView: &admin.LeaderView{InSyncReplicas: inSync}}},
		}}})
	}))
	t.Cleanup(s.Close)
	wait := func(limit string) (code command.Code, out, errOut string) {
		state, inSync, asked = admin.Unreachable, 2, 0
		var o, e bytes.Buffer
		tl, now := newTool(func(string) string { return s.URL }, &o, &e), time.Duration(0)
		tl.mono = func() time.Duration { return now }
		tl.after = func(time.Duration) <-chan time.Time {
			now += 6 * time.Second
			passed := make(chan time.Time, 1)
			passed <- time.Time{}
			return passed
		}
		code = tl.run(t.Context(), []string{"node", "wait-in-sync", "north-1", "--wait", limit})
		return code, o.String(), e.String()
	}
	code, out, errOut := wait("1h")
	require.Equal(t, command.Done, code, errOut)
	require.Equal(t, "north-1 is running\n", out)
	require.Equal(t, "waiting: north-1: the table range has 2 of 3 replicas in sync (6s)\n", errOut)
	require.Equal(t, 3, asked)
	code, _, errOut = wait("0s")
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "the node is unreachable")
	require.Equal(t, 1, asked)
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{Version: 1, Locations: []admin.Location{{
			Name: "north", Nodes: []admin.Node{{Name: "north-1", State: admin.Running}},
		}}})
	}))
	t.Cleanup(bare.Close)
	code, _, errOut = ctl(bare.URL, "node", "wait-in-sync", "north-1", "--wait", "0s")
	require.Equal(t, command.Failed, code, "a status without ranges shows nothing in sync")
	require.Contains(t, errOut, "no node of the location shows its ranges")
	code, _, errOut = ctl(s.URL, "node", "wait-in-sync", "north")
	require.Equal(t, command.Usage, code)
	require.Contains(t, errOut, "no node")
}
