package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/metrics"
	"antipode/services/storageerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends one request to a port of c.
func ask(t *testing.T, c Process, o Options, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	return send(c, o, request(method, target, strings.NewReader(body)))
}

// secret is the token file of the ports in these tests.
var secret = TokenFile{path: "/nowhere/admin-token", token: "antipode-admin-5ec3e7"}

// request is one that a client with the token sends to a port on loopback.
func request(method, target string, body io.Reader) *http.Request {
	r := httptest.NewRequest(method, target, body)
	r.Host = "127.0.0.1:10080"
	r.Header.Set("Authorization", "Bearer "+string(secret.token))
	return r
}

func send(c Process, o Options, r *http.Request) *httptest.ResponseRecorder {
	if o.TokenFile == (TokenFile{}) {
		o.TokenFile = secret
	}
	w := httptest.NewRecorder()
	Handler(c, prometheus.NewRegistry(), o).ServeHTTP(w, r)
	return w
}

// refused checks that an answer is an error document of one line and returns it.
func refused(t *testing.T, w *httptest.ResponseRecorder) wire.Error {
	t.Helper()
	require.Contains(t, w.Header().Get("Content-Type"), "application/json")
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	var doc wire.ErrorDocument
	require.NoError(t, d.Decode(&doc))
	require.NotEmpty(t, doc.Error.Code)
	require.NotContains(t, doc.Error.Message, "\n")
	require.True(t, strings.HasPrefix(doc.Error.Message, "could not "), doc.Error.Message)
	doc.Error.Status = w.Code
	return doc.Error
}

// TestRefusals: what is wrong with a request is said in one line and nothing is
// asked of the process.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		o                    Options
		method, target, body string
		status               int
		code, says           string
	}{
		{Options{}, "GET", "/v1/nothing", "", 404, codeNoRoute, "no such address"},
		{Options{}, "GET", "/", "", 404, codeNoRoute, "docs/admin.md"},
		{Options{}, "GET", "/v1/link/cut", "", 405, codeMethod, "does not take that method"},
		{Options{}, "POST", "/v1/status", "", 405, codeMethod, "does not take that method"},
		{Options{}, "POST", "/v1/accounts", "", 400, codeBody, "send one JSON object"},
		{Options{}, "POST", "/v1/accounts", "{", 400, codeBody, "send one JSON object"},
		{Options{}, "POST", "/v1/accounts", `{"name":"abc"} {}`, 400, codeBody, "more than one"},
		{Options{}, "POST", "/v1/accounts", `{"name":"abc","primary":"x"}`, 400, codeBody, "primary"},
		{Options{}, "POST", "/v1/accounts", `{"name":"` + strings.Repeat("a", bodyBytesMax) + `"}`, 413, codeBodyLarge, "65536"},
		{Options{Location: north}, "POST", "/v1/locations/southcentralus/start", "", 403, codeOutOfScope, "northcentralus alone"},
	} {
		t.Run(tc.method+" "+tc.target+" "+tc.code, func(t *testing.T) {
			f := newFake()
			e := refused(t, ask(t, f, tc.o, tc.method, tc.target, tc.body))
			require.Equal(t, tc.status, e.Status)
			require.Equal(t, tc.code, e.Code)
			require.Contains(t, e.Message, tc.says)
			require.Empty(t, f.calls())
		})
	}
}

// TestClusterErrors: each kind of error of an operation has its answer; only those of
// ours are logged, once.
func TestClusterErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		status int
		code   string
		says   string
		logged bool
	}{
		{"said by the process", &wire.Error{Status: 409, Code: "NodeStopped", Message: "could not stop node x: it is\nstopped"}, 409, "NodeStopped", "it is stopped", false},
		{"wrapped", fmt.Errorf("outer: %w", &wire.Error{Status: 409, Code: "NodeStopped", Message: "could not do it"}), 409, "NodeStopped", "could not do it", false},
		{"without a status", &wire.Error{Code: "Odd", Message: "could not do it"}, 500, "Odd", "could not do it", false},
		{
			"no node answers", fmt.Errorf("location north: %w", &wire.Error{Status: 503, Code: wire.CodeNoNodeAnswers, Message: "no node of location north answers"}),
			503, wire.CodeNoNodeAnswers, `could not do account.create: no node of location north answers: start the processes that do not run, then try again`, false,
		},
		{"exists", fmt.Errorf("catalog: %w", storageerr.AccountAlreadyExists), 409, "AccountAlreadyExists", "choose another name", false},
		{"busy", storageerr.ServerBusy, 503, "ServerBusy", "nothing happened", false},
		{"lost", storageerr.OperationTimedOut, 500, "OperationTimedOut", "may still happen", false},
		{"under way", storageerr.OperationInProgress.Saying("account abc: the change to LRS"), 409, "StorageAccountOperationInProgress", "the change to LRS", false},
		{
			"it names what to do", storageerr.ServerBusy.Saying("an operator cut the link (antipodectl link heal); nothing was changed"),
			503, "ServerBusy", "nothing was changed", false,
		},
		{"another row", storageerr.InvalidInput, 400, "InvalidInput", "not valid: see", false},
		{"ours", errors.New("open log:\n disk full"), 500, codeInternal, "open log: disk full: look at", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var logged bytes.Buffer
			f := newFake()
			f.fail = tc.err
			o := Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}
			w := ask(t, f, o, http.MethodPost, "/v1/accounts", `{"name":"abc","location":"northcentralus"}`)
			e := refused(t, w)
			require.Equal(t, tc.status, e.Status)
			require.Equal(t, tc.code, e.Code)
			require.Contains(t, e.Message, tc.says)
			require.LessOrEqual(t, strings.Count(e.Message, "antipodectl "), 1, "one next step: %s", e.Message)
			require.Equal(t, tc.logged, strings.Contains(logged.String(), "admin request failed"))
			if tc.status == http.StatusServiceUnavailable {
				require.Equal(t, "1", w.Header().Get("Retry-After"))
			}
		})
	}
}

// TestTimeLimits: an operation that takes too long answers that its outcome is
// unknown, and one whose caller left is not broken off before its own limit.
func TestTimeLimits(t *testing.T) {
	f := newFake()
	f.wait = true
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := request(http.MethodPost, "/v1/nodes/northcentralus-1/stop", nil).WithContext(ctx)
	e := refused(t, send(f, Options{ControlTimeout: 20 * time.Millisecond}, r))
	require.Equal(t, codeUnknown, e.Code)
	require.Contains(t, e.Message, "node.stop: time ran out")
	require.Len(t, f.calls(), 1)
	require.Contains(t, f.calls()[0], "node.stop {Account: Location: Node:northcentralus-1")
}

// An answer of another process that is a sentence already gets no other one around it.
func TestSentencesAreNotNested(t *testing.T) {
	const what = `account "photos"`
	silent := &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeNoNodeAnswers, Message: "no node of location north answers"}
	once := Failed("update", what, silent)
	require.ErrorContains(t, once, `could not update account "photos": no node of location north answers: start the processes`)
	require.Equal(t, once, Failed("update", what, once))
	inner := `could not rebuild account "photos": antipodectl why photos`
	require.EqualError(t, Failed("update", what, storageerr.InvalidInput.Saying(inner)), inner)
}

// TestBodyError: a body that breaks off is a refusal like any other.
func TestBodyError(t *testing.T) {
	r := request(http.MethodPost, "/v1/link/delay", iotest.ErrReader(io.ErrUnexpectedEOF))
	require.Equal(t, codeBody, refused(t, send(newFake(), Options{}, r)).Code)
}

// TestHealth: healthz answers while the process lives; readyz names the location
// that cannot serve and why, and a port for which nobody vouches is not ready.
func TestHealth(t *testing.T) {
	f := newFake()
	w := ask(t, f, Options{}, http.MethodGet, "/healthz", "")
	require.Equal(t, "ok\n", w.Body.String())
	require.Equal(t, http.StatusOK, ask(t, f, Options{}, http.MethodHead, "/healthz", "").Code)
	w = ask(t, f, Options{}, http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"ready":true,"locations":[{"name":"northcentralus","ready":true,"serving":true},{"name":"southcentralus","ready":true,"serving":true}]}`, w.Body.String())

	f.ready[1] = wire.LocationReadiness{Name: south, Reason: "range 4 has no leader"}
	w = ask(t, f, Options{}, http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"ready":false,"locations":[{"name":"northcentralus","ready":true,"serving":true},{"name":"southcentralus","ready":false,"serving":false,"reason":"range 4 has no leader"}]}`, w.Body.String())
	require.Equal(t, http.StatusOK, ask(t, f, Options{Location: north}, http.MethodGet, "/readyz", "").Code)
	require.Equal(t, http.StatusServiceUnavailable, ask(t, f, Options{Location: south}, http.MethodHead, "/readyz", "").Code)

	f.ready = nil
	w = ask(t, f, Options{}, http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"ready":false,"locations":[]}`, w.Body.String())
}

// TestMetrics: the port of the process scrapes everything, that of a location its
// own series.
func TestMetrics(t *testing.T) {
	reg := metrics.NewRegistry()
	alarms, err := metrics.NewAlarms(reg)
	require.NoError(t, err)
	alarms.Add(north, "gap", 1)
	alarms.Add(south, "gap", 2)
	scrape := func(l geo.Location) string {
		w := httptest.NewRecorder()
		Handler(newFake(), reg, Options{Location: l}).ServeHTTP(w, request(http.MethodGet, "/metrics", nil))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	for _, want := range []string{`{location="northcentralus",reason="gap"} 1`, `{location="southcentralus",reason="gap"} 2`, "go_goroutines"} {
		require.Contains(t, scrape(""), want)
	}
	require.Contains(t, scrape(south), `{location="southcentralus",reason="gap"} 2`)
	require.NotContains(t, scrape(south), "northcentralus")
	require.NotContains(t, scrape(south), "go_goroutines")
}

// TestScrapeLimits: a scrape that hangs is answered in time, and only so many hang
// at once, however often Prometheus comes back.
// It holds invariant 8.
func TestScrapeLimits(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, scrapesMax+1)
	done := make(chan struct{}, scrapesMax+1)
	hang := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		begun <- struct{}{}
		<-release
		done <- struct{}{}
		return nil, nil
	})
	h := Handler(newFake(), hang, Options{ReadTimeout: 20 * time.Millisecond})
	for range scrapesMax + 1 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(http.MethodGet, "/metrics", nil))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
	}
	require.Len(t, begun, scrapesMax)
	close(release)
	for range scrapesMax {
		<-done
	}
}

// TestServerLimits: no time limit of a port is missing.
func TestServerLimits(t *testing.T) {
	s := &http.Server{}
	Limit(s)
	for _, d := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout} {
		require.Positive(t, d)
	}
	require.Positive(t, s.MaxHeaderBytes)
	require.Greater(t, s.WriteTimeout, controlTimeout, "an operation that timed out must be able to say so")
}
