package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

// R16: of several streams one may be refused: the others are settled, and the command fails and says how many are.
// Where a location does not answer, that no stream is known is no fault of the command line.
func TestR16ForkResolveOfSome(t *testing.T) {
	list := admin.Forks{}
	for lane, side := range []string{admin.SideSource, admin.SideSource, admin.SideReceiver, admin.SideSource} {
		name := []string{"a/1@north/r4/l0", "a/1@north/r1/l1", "a/1@north/r4/l0", "b/1@north/r4/l3"}[lane]
		list.Forks = append(list.Forks, admin.Fork{
			Stream: name, Account: "a", Lane: 7, Range: 4, Location: "north", Side: side, Reason: "forked",
		})
	}
	list.Forks[1].Range, list.Forks[3].Account = 1, "b"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/forks", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(list) })
	asked := 0
	mux.HandleFunc("POST /v1/locations/north/forks/resolve", func(w http.ResponseWriter, r *http.Request) {
		asked++
		var q admin.ResolveFork
		_ = json.NewDecoder(r.Body).Decode(&q)
		if q.Range == 1 {
			w.WriteHeader(http.StatusConflict)
			_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{Code: admin.CodeStopKept, Message: "a fork of the catalog"}})
			return
		}
		_ = json.NewEncoder(w).Encode(admin.ForkResolved{Stream: "a", Keep: q.Keep})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	code, _, errOut := ctl(srv.URL, "fork", "resolve", "a", "--keep", "south")
	require.Equal(t, command.Failed, code)
	require.Equal(t, "antipodectl: 1 of 2 streams are settling, the others are not: a fork of the catalog\n", errOut)
	require.Equal(t, 2, asked)
	code, _, _ = ctl(srv.URL, "fork", "resolve", "b", "--keep", "south")
	require.Equal(t, command.Done, code)
	code, _, _ = ctl(srv.URL, "fork", "resolve", "nobody", "--keep", "south")
	require.Equal(t, command.Usage, code)
	list.Silent = []string{"location south"}
	code, _, errOut = ctl(srv.URL, "fork", "resolve", "nobody", "--keep", "south")
	require.Equal(t, command.Failed, code)
	require.Contains(t, errOut, "location south does not answer")
}

// Streams of an account that are refused for one reason are one message: there may be 128.
func TestForkResolveRefusedAlike(t *testing.T) {
	list := admin.Forks{}
	for _, at := range []admin.StreamName{{Range: 4}, {Range: 4, Lane: 1}, {Range: 1}, {Range: 4, Lane: 2}} {
		f := admin.Fork{
			Account: "a", Epoch: admin.Epoch{Number: 1, Location: "north"}, Range: at.Range, Lane: at.Lane,
			Location: "north", Side: admin.SideSource, Reason: "lost",
		}
		f.Stream = f.Name().String()
		list.Forks = append(list.Forks, f)
	}
	why := map[geo.RangeID]string{1: "it is of the catalog", 4: "it is lost"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/forks", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(list) })
	mux.HandleFunc("POST /v1/locations/north/forks/resolve", func(w http.ResponseWriter, r *http.Request) {
		var q admin.ResolveFork
		_ = json.NewDecoder(r.Body).Decode(&q)
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(admin.ErrorDocument{Error: admin.Error{
			Code: admin.CodeKeepPrimary, Message: "could not resolve " + q.String() + ": " + why[q.Range],
		}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	code, _, errOut := ctl(srv.URL, "fork", "resolve", "a", "--keep", "south")
	require.Equal(t, command.Failed, code)
	require.Equal(t, "antipodectl: could not resolve a/1@north/r1/l0: it is of the catalog; "+
		"could not resolve a/1@north/r4/l0: it is lost (and 2 more streams)\n", errOut)
}
