package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
)

// foundServer has a lost-and-found of three rows, one on a page, of which the second cannot be decoded, and the last
// has two chunks.
func foundServer(t *testing.T) (srv *httptest.Server, rows []admin.FoundRow, dropped *[]string) {
	t.Helper()
	rows = []admin.FoundRow{
		{Key: "01", Account: "pictures", Value: []byte("one")},
		{Key: "02", Account: "pictures", Value: []byte("?"), Unreadable: "it is no row"},
		{Key: "03", Account: "pictures", Value: []byte("three"), Chunks: 2},
	}
	dropped = new([]string)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/locations/south/found/list", func(w http.ResponseWriter, r *http.Request) {
		var q admin.FoundQuery
		_ = json.NewDecoder(r.Body).Decode(&q)
		n := 0
		for n < len(rows) && rows[n].Key <= q.After {
			n++
		}
		_ = json.NewEncoder(w).Encode(admin.Found{Location: "south", Rows: rows[n : n+1], More: n+1 < len(rows)})
	})
	mux.HandleFunc("POST /v1/locations/south/found/payload", func(w http.ResponseWriter, r *http.Request) {
		var q admin.FoundChunk
		_ = json.NewDecoder(r.Body).Decode(&q)
		_ = json.NewEncoder(w).Encode(admin.FoundPayload{Data: fmt.Appendf(nil, "%s/%d;", q.Key, q.Chunk)})
	})
	mux.HandleFunc("POST /v1/locations/south/found/drop", func(w http.ResponseWriter, r *http.Request) {
		var q admin.DropFound
		_ = json.NewDecoder(r.Body).Decode(&q)
		*dropped = append(*dropped, q.Keys...)
		_ = json.NewEncoder(w).Encode(admin.FoundDropped{Dropped: len(q.Keys)})
	})
	srv = httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv, rows, dropped
}

// R16: an export has every row of every page, one that cannot be decoded too, in one document, and the payload of each.
// A list names them all, and a drop drops them all.
func TestR16FoundIsExportedPageByPage(t *testing.T) {
	srv, rows, dropped := foundServer(t)
	folder := filepath.Join(t.TempDir(), "found")
	code, out, errOut := ctl(srv.URL, "fork", "found", "export", "south", "pictures", "--to", folder)
	require.Equal(t, command.Done, code, errOut)
	require.Equal(t, fmt.Sprintf("3 rows and 10 B of payload are in %s\n", folder), out)
	b, err := os.ReadFile(filepath.Join(folder, "rows.json"))
	require.NoError(t, err)
	var got admin.Found
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, admin.Found{Location: "south", Rows: rows}, got)
	b, err = os.ReadFile(filepath.Join(folder, "2.payload"))
	require.NoError(t, err)
	require.Equal(t, "03/0;03/1;", string(b))

	code, _, errOut = ctl(srv.URL, "fork", "found", "export", "south", "pictures", "--to", folder)
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "exists")
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	code, _, _ = ctl(srv.URL, "fork", "found", "export", "elsewhere", "pictures", "--to", nowhere)
	require.Equal(t, command.Failed, code)
	require.NoFileExists(t, nowhere)

	code, out, _ = ctl(srv.URL, "fork", "found", "list", "south")
	require.Equal(t, command.Done, code)
	require.Regexp(t, `(?m)^pictures .* unreadable`, out)
	code, out, _ = ctl(srv.URL, "fork", "found", "drop", "south", "pictures", "--yes")
	require.Equal(t, command.Done, code)
	require.Equal(t, "3 entries of account pictures are dropped at south\n", out)
	require.Equal(t, []string{"01", "02", "03"}, *dropped)
}
