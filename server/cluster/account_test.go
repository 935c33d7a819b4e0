package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/server/dev"
)

// noCalls is a process that answers no call of operators.
type noCalls struct{}

func (noCalls) Operations() []admin.Operation                  { return nil }
func (noCalls) Ready(context.Context) []wire.LocationReadiness { return nil }

// gateway is the admin port of a gateway. It answers requests of one path in turn, repeating the
// last answer, proves that it has a token, and refuses other requests.
func gateway(t *testing.T, path string, answers ...http.HandlerFunc) Options {
	t.Helper()
	token, err := admin.OpenTokenFile(filepath.Join(t.TempDir(), admin.TokenFileName))
	require.NoError(t, err)
	port := admin.Handler(noCalls{}, prometheus.NewRegistry(), admin.Options{TokenFile: token})
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/token-file" {
			port.ServeHTTP(w, r)
			return
		}
		if r.URL.Path != path {
			fails(http.StatusNotFound, r.URL.Path)(w, r)
			return
		}
		answers[min(asked, len(answers)-1)](w, r)
		asked++
	}))
	t.Cleanup(srv.Close)
	const adminOffset = 80
	return Options{Dir: t.TempDir(), PortBase: srv.Listener.Addr().(*net.TCPAddr).Port - adminOffset}
}

func says(status int, doc any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(doc)
	}
}

func fails(status int, message string) http.HandlerFunc {
	return says(status, wire.ErrorDocument{Error: wire.Error{Code: "Code", Message: message}})
}

// A start asks for its accounts until they are made. It reports what it waits for, accepts an
// account that exists, and fails at the first refusal and when a process has exited.
func TestEnsureAccount(t *testing.T) {
	want := wire.NewAccount{Name: "photos", Location: dev.North, Key1: "a2V5"}
	made := wire.AccountInfo{Account: wire.Account{Name: "photos"}}
	created := func(w http.ResponseWriter, r *http.Request) {
		var in wire.NewAccount
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !in.Ensure {
			fails(http.StatusBadRequest, fmt.Sprintf("%+v %v", in, err))(w, r)
			return
		}
		says(http.StatusCreated, made)(w, r)
	}
	o := gateway(t, "/v1/accounts", fails(http.StatusServiceUnavailable, "too few replicas"), fails(http.StatusInternalServerError, "it may still happen"), created)
	var reported []string
	o.OnWait = func(what string) { reported = append(reported, what) }
	got, err := EnsureAccount(t.Context(), o, want)
	require.NoError(t, err)
	require.Equal(t, made, got)
	require.Equal(t, []string{"account photos: too few replicas", "account photos: it may still happen"}, reported)

	o = gateway(t, "/v1/accounts", fails(http.StatusConflict, "account photos does not take the given key1"))
	_, err = EnsureAccount(t.Context(), o, want)
	require.EqualError(t, err, "account photos does not take the given key1")

	o = gateway(t, "/v1/accounts", fails(http.StatusServiceUnavailable, "too few replicas"))
	dead := filepath.Join(o.Dir, "northcentralus-2")
	require.NoError(t, os.MkdirAll(dead, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dead, pidFile), []byte("1 0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dead, logFile), []byte("antipode: its last words"), 0o600))
	_, err = EnsureAccount(t.Context(), o, want)
	require.ErrorContains(t, err, "northcentralus-2 ended: its last words")
}

// A start reports that it waits for the location that does not serve, if that is known.
func TestWaitsFor(t *testing.T) {
	o := gateway(t, "/readyz", says(http.StatusServiceUnavailable, wire.Readiness{Locations: []wire.LocationReadiness{
		{Name: dev.North, Serving: true}, {Name: dev.South, Reason: "the blob range has no leader yet"},
	}}))
	require.Equal(t, "southcentralus: the blob range has no leader yet", o.waitsFor(t.Context(), "busy"))
	o = gateway(t, "/readyz", fails(http.StatusBadGateway, "not yet"))
	require.Equal(t, "busy", o.waitsFor(t.Context(), "busy"))
}

// A start waits until both locations are ready, and reports why one is not.
func TestAwaitReady(t *testing.T) {
	readiness := func(ready bool) wire.Readiness {
		l := wire.LocationReadiness{Name: dev.South, Ready: ready, Serving: true}
		if !ready {
			l.Reason = "Last Sync Time of photos (blob) is not known yet"
		}
		return wire.Readiness{Ready: ready, Locations: []wire.LocationReadiness{{Name: dev.North, Ready: true, Serving: true}, l}}
	}
	o := gateway(t, "/readyz", fails(http.StatusBadGateway, "not yet"), says(http.StatusServiceUnavailable, readiness(false)), says(http.StatusOK, readiness(true)))
	var reported []string
	o.OnWait = func(what string) { reported = append(reported, what) }
	require.NoError(t, AwaitReady(t.Context(), o))
	require.Equal(t, []string{"not yet", "southcentralus: Last Sync Time of photos (blob) is not known yet"}, reported)
}
