package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// lostServer has an account of the south whose former primary, the north, has kept two lost changes, one on a page.
func lostServer(t *testing.T, silent bool) (_ *httptest.Server, drops *atomic.Int32) {
	drops = &atomic.Int32{}
	t.Helper()
	at := admin.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	changes := []admin.LostChange{
		{Key: "01", Stream: "pictures/1@north/r4/l2", Number: 7, Service: "table", Container: "t", Object: "k", Row: "r", Rows: 1, Bytes: 100, Committed: at, Answered: "surely"},
		{Key: "02", Stream: "pictures/1@north/r4/l2", Number: 8, Service: "table", Container: "t", Object: "k", Row: "r", Deleted: 1, Bytes: 50, Committed: at, Answered: "perhaps"},
	}
	claims := []admin.LostClaim{
		{Service: "table", Range: 4, Epoch: admin.Epoch{Number: 2, Location: "south"}, Kept: at, Changes: 2, Perhaps: 1, Complete: true},
		{Service: "blob", Range: 2, Epoch: admin.Epoch{Number: 2, Location: "south"}, Kept: at, IncompleteSince: at, Reason: "it was set back"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.AccountInfo{Account: admin.Account{Name: "pictures", Primary: "south", Secondary: "north"}})
	})
	mux.HandleFunc("POST /v1/locations/north/lost/list", func(w http.ResponseWriter, r *http.Request) {
		var q admin.LostQuery
		_ = json.NewDecoder(r.Body).Decode(&q)
		out := admin.Lost{Location: "north", Changes: changes[1:]}
		if q.After == "" {
			out = admin.Lost{Location: "north", Claims: claims, Changes: changes[:1], More: true}
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("POST /v1/locations/south/lost/list", func(w http.ResponseWriter, _ *http.Request) {
		if silent {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(admin.Lost{Location: "south"})
	})
	mux.HandleFunc("POST /v1/locations/north/found/list", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Found{Location: "north", Rows: []admin.FoundRow{{Key: "03", Account: "pictures", Value: []byte("v")}}})
	})
	mux.HandleFunc("POST /v1/locations/north/lost/drop", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.LostDropped{Dropped: 2, More: drops.Add(1) == 1})
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv, drops
}

// R22: the report has every page of both locations, what is claimed about it, and names a location that does not answer. An
// export has the same and what the rows held; it fails where a location may have more.
func TestR22LostIsReported(t *testing.T) {
	srv, drops := lostServer(t, false)
	code, out, errOut := ctl(srv.URL, "lost", "list", "pictures")
	require.Equal(t, command.Done, code, errOut)
	require.Regexp(t, `(?m)^north +table +2@south +2 +1 +complete$`, out)
	require.Regexp(t, `(?m)^north +blob .* incomplete since 2026-01-02T03:04:05.*: it was set back$`, out)
	require.Regexp(t, `(?m)^north +table +t +k +r +1 +0 +100 .* surely$`, out)
	require.Regexp(t, `(?m)^north +table +t +k +r +0 +1 +50 .* perhaps$`, out)

	folder := filepath.Join(t.TempDir(), "lost")
	code, out, errOut = ctl(srv.URL, "lost", "export", "pictures", "--to", folder)
	require.Equal(t, command.Done, code, errOut)
	require.Equal(t, "2 changes, 1 row and 0 B of payload are in "+folder+"\n", out)
	b, err := os.ReadFile(filepath.Join(folder, "changes.json"))
	require.NoError(t, err)
	var r lostReport
	require.NoError(t, json.Unmarshal(b, &r))
	require.Len(t, r.Locations, 1)
	require.Len(t, r.Locations[0].Changes, 2)
	require.Len(t, r.Locations[0].Claims, 2)
	require.FileExists(t, filepath.Join(folder, "north", "rows.json"))

	code, out, errOut = ctl(srv.URL, "lost", "drop", "north", "pictures")
	require.Equal(t, command.Done, code, errOut)
	require.Equal(t, "4 entries of account pictures (150 B, and 0 B of payload) would be dropped at north, for good\n"+
		"save them first: antipodectl lost export pictures --to lost\nnothing was changed: --yes begins it\n", out)
	require.Zero(t, drops.Load(), "that was a rehearsal")
	code, out, errOut = ctl(srv.URL, "lost", "drop", "north", "pictures", "--yes")
	require.Equal(t, command.Done, code, errOut)
	require.Equal(t, "4 entries of account pictures are dropped at north\n", out)

	silent, _ := lostServer(t, true)
	code, out, _ = ctl(silent.URL, "lost", "list", "pictures")
	require.Equal(t, command.Done, code)
	require.Contains(t, out, "south does not answer")
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	code, _, errOut = ctl(silent.URL, "lost", "export", "pictures", "--to", nowhere)
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "--location names one that does")
	require.NoDirExists(t, nowhere)
	code, _, errOut = ctl(silent.URL, "lost", "export", "pictures", "--to", nowhere, "--location", "north")
	require.Equal(t, command.Done, code, errOut)
}

// R22: while the former primary has not followed, the report names it and the time of the failover, in place of the line
// for no lost changes.
func TestR22LostIsAwaited(t *testing.T) {
	awaited := &admin.LostAwaited{Location: "north", Since: admin.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/accounts/pictures", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.AccountInfo{Account: admin.Account{Name: "pictures", Primary: "south", Secondary: "north"}})
	})
	mux.HandleFunc("POST /v1/locations/north/lost/list", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("POST /v1/locations/south/lost/list", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Lost{Location: "south", Awaited: awaited})
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	code, out, errOut := ctl(srv.URL, "lost", "list", "pictures")
	require.Equal(t, command.Done, code, errOut)
	require.Contains(t, out, "north has not reported yet")
	require.Contains(t, out, "the failover of 2026-01-02T03:04:05")
	require.NotContains(t, out, "no location that answers")
	code, out, errOut = ctl(srv.URL, "lost", "list", "pictures", "--output", "json")
	require.Equal(t, command.Done, code, errOut)
	var r lostReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, awaited, r.Awaited)
}
