package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/geo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers every call with status and body, and reports what was called.
func serve(t *testing.T, status int, body string) (c *Client, called func() string) {
	t.Helper()
	var last string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		last = strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(b))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := New(srv.URL+"/", srv.Client())
	require.NoError(t, err)
	return c, func() string { return last }
}

// TestClientRequests: each method sends the one request that docs/admin.md gives
// it. Checked by a server that writes down what came.
func TestClientRequests(t *testing.T) {
	c, called := serve(t, http.StatusOK, "{}")
	c.UseToken(NewToken)
	ctx := context.Background()
	for _, tc := range []struct {
		want string
		call func() error
	}{
		{"GET /v1/status", func() error { _, err := c.Status(ctx); return err }},
		{"GET /v1/status", func() error { _, err := c.StatusJSON(ctx); return err }},
		{"GET /v1/accounts", func() error { _, err := c.Accounts(ctx); return err }},
		{"GET /v1/accounts/abc", func() error { _, err := c.Account(ctx, "abc"); return err }},
		{"GET /v1/accounts/a%2Fb%3Fc", func() error { _, err := c.Account(ctx, "a/b?c"); return err }},
		{"GET /v1/accounts/abc/keys", func() error { _, err := c.Keys(ctx, "abc"); return err }},
		{`POST /v1/accounts {"name":"abc","location":"north","key1":"AA=="}`, func() error {
			_, err := c.CreateAccount(ctx, NewAccount{Name: "abc", Location: "north", Key1: "AA=="})
			return err
		}},
		{"GET /v1/locations/north/names", func() error { _, err := c.Names(ctx, "north", NamesQuery{}); return err }},
		{"GET /v1/locations/north/names?after=abc&since=v1", func() error {
			_, err := c.Names(ctx, "north", NamesQuery{Since: "v1", After: "abc"})
			return err
		}},
		{"GET /v1/forks", func() error { _, err := c.Forks(ctx); return err }},
		{"GET /v1/reservations", func() error { _, err := c.Reservations(ctx); return err }},
		{"POST /v1/reservations/abc/free", func() error { _, err := c.FreeReservation(ctx, "abc"); return err }},
		{"POST /v1/nodes/north-1/stop", func() error { _, err := c.StopNode(ctx, "north-1"); return err }},
		{"POST /v1/nodes/north-1/start", func() error { _, err := c.StartNode(ctx, "north-1"); return err }},
		{"POST /v1/locations/north/stop", func() error { _, err := c.StopLocation(ctx, "north"); return err }},
		{"POST /v1/locations/north/start", func() error { _, err := c.StartLocation(ctx, "north"); return err }},
		{"POST /v1/link/cut", func() error { _, err := c.CutLink(ctx); return err }},
		{"POST /v1/link/heal", func() error { _, err := c.HealLink(ctx); return err }},
		{`POST /v1/link/delay {"seconds":0.25}`, func() error { _, err := c.DelayLink(ctx, 250*time.Millisecond); return err }},
	} {
		require.NoError(t, tc.call())
		require.Equal(t, tc.want, called())
	}
}

// TestClientErrors: a refusal, a port that is no admin port and a dead server are
// distinguished, each in one line.
func TestClientErrors(t *testing.T) {
	ctx := context.Background()
	t.Run("refused", func(t *testing.T) {
		c, _ := serve(t, http.StatusConflict, `{"error":{"code":"AccountAlreadyExists","message":"could not"}}`)
		_, err := c.Account(ctx, "abc")
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, Error{Status: 409, Code: "AccountAlreadyExists", Message: "could not"}, *e)
	})
	t.Run("another server's error", func(t *testing.T) {
		c, _ := serve(t, http.StatusNotFound, "<html>nothing\nhere")
		_, err := c.Status(ctx)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "NotAnAdminPort", e.Code)
		require.NotContains(t, err.Error(), "\n")
	})
	t.Run("another server's answer", func(t *testing.T) {
		c, _ := serve(t, http.StatusOK, "ok")
		_, err := c.Status(ctx)
		require.ErrorContains(t, err, "is it an admin port?")
	})
	t.Run("an endless answer", func(t *testing.T) {
		c, _ := serve(t, http.StatusOK, strings.Repeat(" ", answerBytesMax+1))
		_, err := c.StatusJSON(ctx)
		require.ErrorContains(t, err, "answered more than")
	})
	t.Run("dead", func(t *testing.T) {
		c, err := New("http://127.0.0.1:1", nil)
		require.NoError(t, err)
		_, err = c.StopNode(ctx, "north-1")
		require.ErrorIs(t, err, ErrUnreachable)
	})
	t.Run("hung up", func(t *testing.T) {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		defer srv.Close()
		c, err := New(srv.URL, srv.Client())
		require.NoError(t, err)
		_, err = c.StopNode(ctx, "north-1")
		require.ErrorContains(t, err, "the outcome is unknown")
		require.False(t, errors.Is(err, ErrUnreachable))
	})
	t.Run("cancelled", func(t *testing.T) {
		c, _ := serve(t, http.StatusOK, "{}")
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := c.Status(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A read of a server that takes calls and never answers, and the plan of a failover, are given up after readTimeout; what changes
// something has callTimeout.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New("http://north:1", &http.Client{Timeout: callTimeout, Transport: hanging{}})
		require.NoError(t, err)
		c.UseToken(NewToken)
		ctx, plan := t.Context(), Failover{Type: FailoverPlanned, DryRun: true}
		for what, call := range map[string]func() error{
			"status":    func() error { _, err := c.Status(ctx); return err },
			"readiness": func() error { _, err := c.Readiness(ctx); return err },
			"alive":     func() error { return c.Alive(ctx) },
			"plan":      func() error { _, err := c.UpdateAccount(ctx, "abc", UpdateAccount{Failover: &plan}); return err },
			"plan of a location": func() error {
				_, err := c.FailLocationOver(ctx, "north", plan)
				return err
			},
		} {
			begun := time.Now()
			require.ErrorIs(t, call(), ErrSilent, what)
			require.Equal(t, readTimeout, time.Since(begun), what)
		}
		require.False(t, c.Asked())
		begun := time.Now()
		_, err = c.FailLocationOver(ctx, "north", Failover{Type: FailoverPlanned})
		require.ErrorContains(t, err, "the outcome is unknown")
		require.Equal(t, callTimeout, time.Since(begun))
	})
}

// hanging takes requests and never answers.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestReadiness: the document of /readyz is returned whether the port is ready or not; what
// is no such document is refused.
func TestReadiness(t *testing.T) {
	for status, body := range map[int]string{
		http.StatusOK:                 `{"ready":true,"locations":[{"name":"north","ready":true,"serving":true}]}`,
		http.StatusServiceUnavailable: `{"ready":false,"locations":[{"name":"north","ready":false,"serving":true,"reason":"why"}]}`,
	} {
		c, called := serve(t, status, body)
		r, err := c.Readiness(context.Background())
		require.NoError(t, err)
		require.Equal(t, "GET /readyz", called())
		require.Equal(t, status == http.StatusOK, r.Ready)
		require.True(t, r.Locations[0].Serving)
	}
	c, _ := serve(t, http.StatusBadGateway, "<html>")
	_, err := c.Readiness(context.Background())
	require.ErrorContains(t, err, "502 Bad Gateway")
	require.ErrorContains(t, err, "is it an admin port?")
	c, _ = serve(t, http.StatusForbidden, `{"error":{"code":"HostRefused","message":"could not"}}`)
	_, err = c.Readiness(context.Background())
	require.EqualError(t, err, "could not")
}

// TestNew: what is no admin URL is refused before anything is called.
func TestNew(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:10080", "ftp://x", "http://", "http://x?a=b", "http://a b"} {
		_, err := New(bad, nil)
		require.Error(t, err, bad)
	}
	c, err := New("http://h:1/prefix/", nil)
	require.NoError(t, err)
	require.Equal(t, "http://h:1/prefix", c.URL())
}

// TestAbsent: what is unknown is absent from the document and comes back as
// unknown, never as zero.
func TestAbsent(t *testing.T) {
	b, err := json.Marshal(Range{Range: 4, Service: "table", ConfiguredReplicas: 3})
	require.NoError(t, err)
	require.JSONEq(t, `{"range":4,"service":"table","configured_replicas":3}`, string(b))
	var r Range
	require.NoError(t, json.Unmarshal(b, &r))
	require.Nil(t, r.LeaderView)
	require.NoError(t, json.Unmarshal([]byte(`{"leader":"north-1","in_sync_replicas":0}`), &r))
	require.Equal(t, "north-1", r.Leader)

	b, err = json.Marshal(ServiceStatus{Service: "blob", Status: Unavailable, StreamsBehind: 1})
	require.NoError(t, err)
	require.JSONEq(t, `{"service":"blob","status":"unavailable","streams_behind":1}`, string(b))
}

// TestTime: an instant keeps its seven digits, in UTC, and what lies below them is
// cut, not rounded.
func TestTime(t *testing.T) {
	in := time.Date(2026, 11, 21, 16, 0, 0, 999_999_999, time.FixedZone("", 3600))
	b, err := json.Marshal(Time{in})
	require.NoError(t, err)
	require.Equal(t, `"2026-11-21T15:00:00.9999999Z"`, string(b))
	var out Time
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, in.Truncate(100).UTC(), out.Time)
}

// TestNodeName: names come back as they went, and nothing else is a name.
func TestNodeName(t *testing.T) {
	for _, l := range []geo.Location{"north", "north-2"} {
		gotL, gotID, err := ParseNodeName(NodeName(l, 12))
		require.NoError(t, err)
		require.Equal(t, l, gotL)
		require.Equal(t, geo.NodeID(12), gotID)
	}
	for _, bad := range []string{"", "north", "north-", "-1", "north-0", "north-01", "north-+1", "north-x"} {
		_, _, err := ParseNodeName(bad)
		require.Error(t, err, bad)
	}
}
