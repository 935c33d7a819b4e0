package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

var rewrite = flag.Bool("rewrite", false, "write the golden files; then read the diff")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends one request to a port of c.
func ask(t *testing.T, c Cluster, o Options, method, target, body string) *httptest.ResponseRecorder {
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

func send(c Cluster, o Options, r *http.Request) *httptest.ResponseRecorder {
	if o.TokenFile == (TokenFile{}) {
		o.TokenFile = secret
	}
	w := httptest.NewRecorder()
	Handler(c, prometheus.NewRegistry(), o).ServeHTTP(w, r)
	return w
}

// TestEvents: the event log of all locations, or of the port's, newest first.
func TestEvents(t *testing.T) {
	for scope, want := range map[geo.Location][]string{
		"": {"left-in-sync", "disk-full", "leader-elected"}, north: {"left-in-sync", "leader-elected"}, south: {"disk-full"}, "east": {},
	} {
		w := ask(t, newFake(), Options{Location: scope}, http.MethodGet, "/v1/events", "")
		require.Equal(t, http.StatusOK, w.Code)
		require.NotContains(t, w.Body.String(), "null")
		var doc wire.EventList
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
		kinds := []string{}
		for _, e := range doc.Events {
			kinds = append(kinds, e.Kind)
		}
		require.Equal(t, want, kinds)
	}
	f := newFake()
	f.silent = []string{"southcentralus-2"}
	require.Contains(t, ask(t, f, Options{}, http.MethodGet, "/v1/events", "").Body.String(), `"silent": [`)
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

// TestStatusGolden freezes the status document of the process and of one location.
// docs/admin.md shows the first, byte for byte.
func TestStatusGolden(t *testing.T) {
	for file, scope := range map[string]geo.Location{
		"testdata/status.golden.json": "", "testdata/status-north.golden.json": north,
	} {
		w := ask(t, newFake(), Options{Location: scope}, http.MethodGet, "/v1/status", "")
		require.Equal(t, http.StatusOK, w.Code)
		if *rewrite {
			require.NoError(t, os.WriteFile(file, w.Body.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), w.Body.String())
		require.NotContains(t, w.Body.String(), "null")
	}
	golden, err := os.ReadFile("testdata/status.golden.json")
	require.NoError(t, err)
	doc, err := os.ReadFile("../../docs/admin.md")
	require.NoError(t, err)
	require.True(t, bytes.Contains(doc, append([]byte("```json\n"), golden...)), "docs/admin.md shows another status document")
}

// TestStatusScope: the port of a location says nothing of the other one, and no
// Last Sync Time that it did not compute.
func TestStatusScope(t *testing.T) {
	in := fullStatus()
	s := arrange(in, south)
	require.Len(t, s.Locations, 1)
	require.Equal(t, south, s.Locations[0].Name)
	require.Equal(t, map[string]uint64{"gap": 1, "stream_recreated": 1}, s.Alarms)
	require.Equal(t, map[string]uint64{"gap": 2, "stream_recreated": 1}, arrange(in, "").Alarms)
	var got []string
	for _, a := range s.Accounts {
		got = append(got, fmt.Sprintf("%s %d services", a.Name, len(a.Services)))
	}
	require.Equal(t, []string{"backwards 0 services", "devstoreaccount1 3 services", "filling 0 services", "onlysouth 0 services"}, got)
	require.Len(t, arrange(in, north).Accounts, 3, "an LRS account of the south is none of the north's business")
	require.Equal(t, fullStatus(), in, "arrange changed what the cluster returned")
}

// TestClientRoundTrip: what the Cluster says is what the client returns, over a
// real connection, and what the client asks is what the Cluster is asked.
func TestClientRoundTrip(t *testing.T) {
	f := newFake()
	file, err := OpenTokenFile(filepath.Join(t.TempDir(), "data", TokenFileName))
	require.NoError(t, err)
	srv := httptest.NewServer(Handler(f, prometheus.NewRegistry(), Options{TokenFile: file}))
	defer srv.Close()
	c, err := wire.New(srv.URL, srv.Client()) // It finds the token by itself.
	require.NoError(t, err)
	ctx := context.Background()

	s, err := c.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, arrange(fullStatus(), ""), s)
	all, err := c.Accounts(ctx)
	require.NoError(t, err)
	require.Len(t, all, 4)
	a, err := c.Account(ctx, "devstoreaccount1")
	require.NoError(t, err)
	require.Equal(t, f.accounts[0], a)
	k, err := c.Keys(ctx, "devstoreaccount1")
	require.NoError(t, err)
	require.Equal(t, wire.Keys{Name: "devstoreaccount1", Key1: "a2V5MQ==", Key2: "a2V5Mg=="}, k)
	a, err = c.CreateAccount(ctx, wire.NewAccount{Name: "pictures", Location: south, Key1: "a2V5"})
	require.NoError(t, err)
	require.Equal(t, south, a.Primary)
	u, err := c.UpdateAccount(ctx, "devstoreaccount1", wire.UpdateAccount{Redundancy: "GRS"})
	require.NoError(t, err)
	require.Equal(t, "GRS, the link is cut", u.Redundancy+", "+u.Behind)
	forks, err := c.Forks(ctx)
	require.NoError(t, err)
	require.NotNil(t, forks.Silent)
	var order []string
	for _, f := range forks.Forks {
		order = append(order, fmt.Sprint(f.Lane, " ", f.Location))
	}
	require.Equal(t, []string{"3 southcentralus", "17 northcentralus", "17 southcentralus"}, order, "sorted")
	names, err := c.Names(ctx, south, wire.NamesQuery{Since: "v1", After: "abc"})
	require.NoError(t, err)
	require.Equal(t, wire.Names{Location: south, Version: "v2", Names: []wire.Name{}}, names)
	waiting, err := c.Reservations(ctx)
	require.NoError(t, err)
	require.Equal(t, north, waiting.Reservations[0].Location, "sorted")
	require.Len(t, waiting.Reservations, 2)
	require.NotNil(t, waiting.SilentLocations)
	freed, err := c.FreeReservation(ctx, "half")
	require.NoError(t, err)
	require.Equal(t, waiting, freed)
	changed, err := c.StopNode(ctx, "northcentralus-2")
	require.NoError(t, err)
	require.Equal(t, wire.Changed{Name: "northcentralus-2", State: wire.Stopped}, changed)
	changed, err = c.StartNode(ctx, "northcentralus-2")
	require.NoError(t, err)
	require.Equal(t, wire.Running, changed.State)
	_, err = c.StopLocation(ctx, north)
	require.NoError(t, err)
	_, err = c.StartLocation(ctx, north)
	require.NoError(t, err)
	r, err := c.RecoverRange(ctx, north, 4, wire.RecoverRange{AcceptLoss: true, Untrusted: true})
	require.NoError(t, err)
	require.Equal(t, "northcentralus-2", r.Survivor)
	require.NotNil(t, r.SilentNodes)
	_, err = c.RecoverRange(ctx, north, 4, wire.RecoverRange{DryRun: true})
	require.NoError(t, err)
	resumed, err := c.Resume(ctx, north, wire.StreamName{Account: "pictures", Epoch: wire.Epoch{Number: 1, Location: north}, Range: 4, Lane: 17})
	require.NoError(t, err)
	require.Equal(t, wire.Resumed{Stream: "pictures/1@northcentralus/r4/l17", Location: north, Reason: "version"}, resumed)
	finalized, err := c.Finalize(ctx, wire.Finalize{Level: new(uint32(2)), Without: []string{"northcentralus-3"}})
	require.NoError(t, err)
	require.Equal(t, wire.Finalized{Level: 2, Raised: true, Locations: []geo.Location{north, south}}, finalized)
	_, err = c.RaiseLevels(ctx, north, wire.Levels{Floor: 3, Active: 2})
	require.NoError(t, err)
	_, err = c.CutLink(ctx)
	require.NoError(t, err)
	l, err := c.DelayLink(ctx, 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, wire.Link{State: wire.LinkDelayed, DelaySeconds: 5}, l)
	_, err = c.HealLink(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{
		`create pictures at southcentralus key1 "a2V5" key2 ""`,
		"update devstoreaccount1 to GRS", "names of southcentralus {Since:v1 After:abc}",
		`free half at ""`,
		"stop node 2 of northcentralus", "start node 2 of northcentralus",
		"stop location northcentralus", "start location northcentralus",
		"recover range 4 of northcentralus, {AcceptLoss:true Untrusted:true WithoutPair:false DryRun:false}",
		"recover range 4 of northcentralus, {AcceptLoss:false Untrusted:false WithoutPair:false DryRun:true}",
		"resume pictures/1@northcentralus/r4/l17 at northcentralus",
		"finalize level 2 without [northcentralus-3]", "raise northcentralus to {Floor:3 Active:2}",
		"link cut 0s", "link delayed 5s", "link up 0s",
	}, f.calls())
}

// TestRefusals: what is wrong with a request is said in one line and nothing is
// asked of the Cluster.
func TestRefusals(t *testing.T) {
	scoped := Options{Location: north}
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
		{Options{}, "POST", "/v1/nodes/north/stop", "", 404, wire.CodeNoNode, "location-number"},
		{Options{}, "POST", "/v1/nodes/north%2F1/stop", "", 404, wire.CodeNoNode, "location-number"},
		{Options{}, "GET", "/v1/nodes/north/support", "", 404, wire.CodeNoNode, "location-number"},
		{Options{}, "GET", "/v1/accounts/nobody", "", 404, "ResourceNotFound", "antipodectl account list"},
		{Options{}, "GET", "/v1/accounts/NO%0ABODY", "", 404, "ResourceNotFound", "antipodectl account list"},
		{Options{}, "GET", "/v1/accounts/nobody/keys", "", 404, "ResourceNotFound", "antipodectl account list"},
		{Options{}, "POST", "/v1/reservations/No/free", "", 404, codeNoReservation, "antipodectl account reservations"},
		{Options{}, "POST", "/v1/accounts", "", 400, codeBody, "send one JSON object"},
		{Options{}, "POST", "/v1/accounts", "{", 400, codeBody, "send one JSON object"},
		{Options{}, "POST", "/v1/accounts", `{"name":"abc"} {}`, 400, codeBody, "more than one"},
		{Options{}, "POST", "/v1/accounts", `{"name":"abc","primary":"x"}`, 400, codeBody, "primary"},
		{Options{}, "POST", "/v1/accounts", `{"name":"` + strings.Repeat("a", bodyBytesMax) + `"}`, 413, codeBodyLarge, "65536"},
		{Options{}, "POST", "/v1/accounts", `{"name":"Abc","location":"n"}`, 400, codeInvalid, "lower-case"},
		{Options{}, "POST", "/v1/accounts", `{"name":"abc"}`, 400, codeInvalid, "no location"},
		{Options{}, "POST", "/v1/accounts", `{"name":"abc","location":"n","key2":"%"}`, 400, codeInvalid, "base64"},
		{Options{}, "POST", "/v1/link/delay", `{"seconds":0}`, 400, codeInvalid, "heal the link"},
		{Options{}, "POST", "/v1/link/delay", `{"seconds":-1}`, 400, codeInvalid, "heal the link"},
		{Options{}, "POST", "/v1/link/delay", `{"seconds":3600.5}`, 400, codeInvalid, "at most 1h0m0s"},
		{scoped, "POST", "/v1/nodes/southcentralus-1/stop", "", 403, codeOutOfScope, "the port of the process"},
		{scoped, "POST", "/v1/locations/southcentralus/start", "", 403, codeOutOfScope, "northcentralus alone"},
		{Options{}, "POST", "/v1/locations/northcentralus/ranges/4/recover", `{}`, 400, codeInvalid, "accept_loss"},
		{Options{}, "POST", "/v1/locations/northcentralus/ranges/4/recover", `{"untrusted":true}`, 400, codeInvalid, "accept_loss"},
		{Options{}, "POST", "/v1/locations/northcentralus/ranges/table/recover", `{"accept_loss":true}`, 404, codeNoRange, "number"},
		{scoped, "POST", "/v1/locations/southcentralus/ranges/4/recover", `{"accept_loss":true}`, 403, codeOutOfScope, "alone"},
		{Options{}, "POST", "/v1/cluster/finalize", `{"levels":2}`, 400, codeBody, "levels"},
		{scoped, "POST", "/v1/cluster/finalize", `{}`, 403, codeOutOfScope, "northcentralus alone"},
		{Options{}, "POST", "/v1/locations/northcentralus/levels", `{"floor":1,"active":2}`, 400, codeInvalid, "at most the floor"},
		{Options{}, "POST", "/v1/locations/northcentralus/levels", `{"floor":1}`, 400, codeInvalid, "at least 1"},
		{scoped, "POST", "/v1/locations/southcentralus/levels", `{"floor":1,"active":1}`, 403, codeOutOfScope, "alone"},
		{scoped, "GET", "/v1/locations/southcentralus/names", "", 403, codeOutOfScope, "northcentralus alone"},
		{scoped, "GET", "/v1/locations/northcentralus/names?after=NAME", "", 400, codeInvalid, "a name of an account"},
		{scoped, "GET", "/v1/locations/northcentralus/names?since=" + strings.Repeat("v", 65), "", 400, codeInvalid, "a version that was answered"},
		{scoped, "POST", "/v1/link/cut", "", 403, codeOutOfScope, "the port of the process"},
		{scoped, "POST", "/v1/accounts", `{"name":"abc","location":"southcentralus"}`, 403, codeOutOfScope, "alone"},
		{scoped, "GET", "/v1/accounts/onlysouth", "", 404, "ResourceNotFound", "no such account here"},
		{scoped, "GET", "/v1/accounts/onlysouth/keys", "", 404, "ResourceNotFound", "no such account here"},
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

// TestScopedControl: the port of a location controls its own.
func TestScopedControl(t *testing.T) {
	f := newFake()
	for _, target := range []string{"/v1/nodes/northcentralus-1/stop", "/v1/locations/northcentralus/stop"} {
		require.Equal(t, http.StatusOK, ask(t, f, Options{Location: north}, http.MethodPost, target, "").Code)
	}
	w := ask(t, f, Options{Location: north}, http.MethodPost, "/v1/accounts", `{"name":"abc","location":"northcentralus"}`)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Len(t, f.calls(), 3)
}

// TestClusterErrors: each kind of error of a Cluster has its answer; only those of
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
		{"said by the cluster", &wire.Error{Status: 409, Code: "NodeStopped", Message: "could not stop node x: it is\nstopped"}, 409, "NodeStopped", "it is stopped", false},
		{"wrapped", fmt.Errorf("outer: %w", &wire.Error{Status: 409, Code: "NodeStopped", Message: "could not do it"}), 409, "NodeStopped", "could not do it", false},
		{"without a status", &wire.Error{Code: "Odd", Message: "could not do it"}, 500, "Odd", "could not do it", false},
		{
			"no node answers", fmt.Errorf("location north: %w", &wire.Error{Status: 503, Code: wire.CodeNoNodeAnswers, Message: "no node of location north answers"}),
			503, wire.CodeNoNodeAnswers, `could not create account "abc" at northcentralus: no node of location north answers: start the processes that do not run, then try again`, false,
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

// TestFinalizedIsLogged: the log of the process warns that no node goes back where that became so, and not where there was
// nothing to finalize.
func TestFinalizedIsLogged(t *testing.T) {
	var logged bytes.Buffer
	o := Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}
	require.Equal(t, http.StatusOK, ask(t, newFake(), o, http.MethodPost, "/v1/cluster/finalize", `{}`).Code)
	require.NotContains(t, logged.String(), "finalized")
	require.Equal(t, http.StatusOK, ask(t, newFake(), o, http.MethodPost, "/v1/cluster/finalize", `{"level":2}`).Code)
	require.Contains(t, logged.String(), "upgrade finalized by an operator")
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
	require.Contains(t, e.Message, "node northcentralus-1: time ran out")
	require.Equal(t, []string{"stop node 1 of northcentralus"}, f.calls())
}

// The plan of a failover is bounded as a read is, and its answer is that nothing was changed.
func TestPlanIsBoundedAsARead(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/accounts/" + string(newFake().accounts[0].Name) + "/update": `{"failover":{"type":"planned","dry_run":true}}`,
		"/v1/locations/northcentralus/failover":                          `{"type":"unplanned","dry_run":true}`,
	} {
		f := newFake()
		f.wait = true
		o := Options{ReadTimeout: 20 * time.Millisecond, ControlTimeout: time.Minute}
		e := refused(t, ask(t, f, o, http.MethodPost, path, body))
		require.Contains(t, e.Message, "could not plan a failover of ")
		require.Contains(t, e.Message, "no answer in time; nothing was changed")
		require.NotEqual(t, codeUnknown, e.Code)
	}
}

// An answer of another process that is a sentence already gets no other one around it.
func TestSentencesAreNotNested(t *testing.T) {
	const what = `account "photos"`
	silent := &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeNoNodeAnswers, Message: "no node of location north answers"}
	once := failed("update", what, silent)
	require.ErrorContains(t, once, `could not update account "photos": no node of location north answers: start the processes`)
	require.Equal(t, once, failed("update", what, once))
	inner := `could not rebuild account "photos": antipodectl why photos`
	require.EqualError(t, failed("update", what, storageerr.InvalidInput.Saying(inner)), inner)
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
