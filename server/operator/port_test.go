package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
)

// ports are the ports of a process over two locations, which write down what they are asked.
type ports struct {
	north, south *fake
	b            *Backend
}

// both returns the ports over two locations that know the accounts of fullStatus.
func both() ports {
	p := ports{north: newFake(northCentral), south: newFake(southCentral)}
	for _, a := range fullStatus().Accounts {
		p.north.accounts, p.south.accounts = append(p.north.accounts, a.Account), append(p.south.accounts, a.Account)
	}
	p.b = over(clock.System{}, p.north, p.south)
	return p
}

// changes returns what the locations were asked since the last call but for reads of accounts and of readiness.
func (p ports) changes() (out []string) {
	for _, f := range []*fake{p.north, p.south} {
		for _, call := range f.calls() {
			if call != "readiness" && !strings.HasPrefix(call, "account") {
				out = append(out, call+" at "+string(f.name))
			}
		}
	}
	return out
}

// sent sends one request with the token to a port on loopback.
func sent(t *testing.T, p apiadmin.Process, o apiadmin.Options, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	token, err := apiadmin.OpenTokenFile(filepath.Join(t.TempDir(), apiadmin.TokenFileName))
	require.NoError(t, err)
	o.TokenFile = token
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:10080"
	r.Header.Set("Authorization", "Bearer "+string(token.Token()))
	w := httptest.NewRecorder()
	apiadmin.Handler(p, prometheus.NewRegistry(), o).ServeHTTP(w, r)
	return w
}

// client returns a client of a port of p, which finds the token by itself.
func (p ports) client(t *testing.T, o apiadmin.Options) *wire.Client {
	t.Helper()
	file, err := apiadmin.OpenTokenFile(filepath.Join(t.TempDir(), "data", apiadmin.TokenFileName))
	require.NoError(t, err)
	o.TokenFile = file
	srv := httptest.NewServer(apiadmin.Handler(p.b, prometheus.NewRegistry(), o))
	t.Cleanup(srv.Close)
	c, err := wire.New(srv.URL, srv.Client())
	require.NoError(t, err)
	return c
}

// refused returns the error document of an answer.
func refused(t *testing.T, w *httptest.ResponseRecorder) wire.Error {
	t.Helper()
	var doc wire.ErrorDocument
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc), w.Body.String())
	require.True(t, strings.HasPrefix(doc.Error.Message, "could not "), doc.Error.Message)
	doc.Error.Status = w.Code
	return doc.Error
}

// Every call has a name and a route that no other one has, and an entry in the table of the process.
func TestEachCallOnce(t *testing.T) {
	names, routes := map[string]bool{}, map[string]bool{}
	// What shows keys, what clients stored, or the state of a process.
	secret := map[string]bool{"account.keys": true, "verify.show": true, "support": true, "node.support": true}
	for _, o := range both().b.Operations() {
		require.NotEmpty(t, o.Name)
		require.False(t, names[o.Name] || routes[o.Method+" "+o.Path], o.Name)
		names[o.Name], routes[o.Method+" "+o.Path] = true, true
		require.Equal(t, o.Method == http.MethodPost || secret[o.Name], o.Token, "%s: whether it needs the token", o.Name)
	}
	source, err := os.ReadFile("../../client/admin/calls.go")
	require.NoError(t, err)
	require.Equal(t, strings.Count(string(source), "= Call["), len(names), "calls without an entry here")
}

// The event log of all locations, or of the port's, is shown newest first.
func TestEventsOfAPort(t *testing.T) {
	p := both()
	p.north.events = []wire.Event{
		{Number: 1, Time: instant("2026-11-20T10:00:00.1Z"), Location: northCentral, Kind: "leader-elected"},
		{Number: 2, Time: instant("2026-11-20T10:00:02Z"), Location: northCentral, Kind: "left-in-sync"},
	}
	p.south.events = []wire.Event{{Number: 1, Time: instant("2026-11-20T10:00:01Z"), Location: southCentral, Kind: "disk-full"}}
	for scope, want := range map[geo.Location][]string{
		"": {"left-in-sync", "disk-full", "leader-elected"}, northCentral: {"left-in-sync", "leader-elected"}, southCentral: {"disk-full"}, "east": {},
	} {
		w := sent(t, p.b, apiadmin.Options{Location: scope}, http.MethodGet, "/v1/events", "")
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
	p.south.fail = io.EOF
	require.Contains(t, sent(t, p.b, apiadmin.Options{}, http.MethodGet, "/v1/events", "").Body.String(), `"silent": [`)
}

// What is wrong with a request is said in one line, and nothing is changed at any location.
func TestRefusals(t *testing.T) {
	everywhere, scoped := apiadmin.Options{}, apiadmin.Options{Location: northCentral}
	for _, tc := range []struct {
		o                    apiadmin.Options
		method, target, body string
		status               int
		code, says           string
	}{
		{everywhere, "POST", "/v1/nodes/north/stop", "", 404, wire.CodeNoNode, "location-number"},
		{everywhere, "POST", "/v1/nodes/north%2F1/stop", "", 404, wire.CodeNoNode, "location-number"},
		{everywhere, "GET", "/v1/nodes/north/support", "", 404, wire.CodeNoNode, "location-number"},
		{everywhere, "GET", "/v1/accounts/nobody", "", 404, "ResourceNotFound", "antipodectl account list"},
		{everywhere, "GET", "/v1/accounts/NO%0ABODY", "", 404, "ResourceNotFound", "antipodectl account list"},
		{everywhere, "GET", "/v1/accounts/nobody/keys", "", 404, "ResourceNotFound", "antipodectl account list"},
		{everywhere, "POST", "/v1/reservations/No/free", "", 404, "ReservationNotFound", "antipodectl account reservations"},
		{everywhere, "POST", "/v1/accounts", `{"name":"Abc","location":"n"}`, 400, "InvalidInput", "lower-case"},
		{everywhere, "POST", "/v1/accounts", `{"name":"abc"}`, 400, "InvalidInput", "no location"},
		{everywhere, "POST", "/v1/accounts", `{"name":"abc","location":"n","key2":"%"}`, 400, "InvalidInput", "base64"},
		{everywhere, "POST", "/v1/link/delay", `{"seconds":0}`, 400, "InvalidInput", "heal the link"},
		{everywhere, "POST", "/v1/link/delay", `{"seconds":-1}`, 400, "InvalidInput", "heal the link"},
		{everywhere, "POST", "/v1/link/delay", `{"seconds":3600.5}`, 400, "InvalidInput", "at most 1h0m0s"},
		{scoped, "POST", "/v1/nodes/southcentralus-1/stop", "", 403, "OutOfScope", "the port of the process"},
		{scoped, "POST", "/v1/locations/southcentralus/start", "", 403, "OutOfScope", "northcentralus alone"},
		{everywhere, "POST", "/v1/locations/northcentralus/ranges/4/recover", `{}`, 400, "InvalidInput", "accept_loss"},
		{everywhere, "POST", "/v1/locations/northcentralus/ranges/4/recover", `{"untrusted":true}`, 400, "InvalidInput", "accept_loss"},
		{everywhere, "POST", "/v1/locations/northcentralus/ranges/table/recover", `{"accept_loss":true}`, 404, "RangeNotFound", "number"},
		{scoped, "POST", "/v1/locations/southcentralus/ranges/4/recover", `{"accept_loss":true}`, 403, "OutOfScope", "alone"},
		{everywhere, "POST", "/v1/cluster/finalize", `{"levels":2}`, 400, "InvalidBody", "levels"},
		{scoped, "POST", "/v1/cluster/finalize", `{}`, 403, "OutOfScope", "northcentralus alone"},
		{everywhere, "POST", "/v1/locations/northcentralus/levels", `{"floor":1,"active":2}`, 400, "InvalidInput", "at most the floor"},
		{everywhere, "POST", "/v1/locations/northcentralus/levels", `{"floor":1}`, 400, "InvalidInput", "at least 1"},
		{scoped, "POST", "/v1/locations/southcentralus/levels", `{"floor":1,"active":1}`, 403, "OutOfScope", "alone"},
		{scoped, "GET", "/v1/locations/southcentralus/names", "", 403, "OutOfScope", "northcentralus alone"},
		{scoped, "GET", "/v1/locations/northcentralus/names?after=NAME", "", 400, "InvalidInput", "a name of an account"},
		{scoped, "GET", "/v1/locations/northcentralus/names?since=" + strings.Repeat("v", 65), "", 400, "InvalidInput", "a version that was answered"},
		{scoped, "POST", "/v1/link/cut", "", 403, "OutOfScope", "the port of the process"},
		{scoped, "POST", "/v1/accounts", `{"name":"abc","location":"southcentralus"}`, 403, "OutOfScope", "alone"},
		{scoped, "GET", "/v1/accounts/onlysouth", "", 404, "ResourceNotFound", "no such account here"},
		{scoped, "GET", "/v1/accounts/onlysouth/keys", "", 404, "ResourceNotFound", "no such account here"},
		{scoped, "POST", "/v1/accounts/backwards/update", `{"redundancy":"LRS"}`, 403, "OutOfScope", "northcentralus alone"},
		{everywhere, "POST", "/v1/locations/northcentralus/ranges/table/recover", `{"accept_loss":true}`, 404, "RangeNotFound", "range table of northcentralus"},
	} {
		t.Run(tc.method+" "+tc.target+" "+tc.code, func(t *testing.T) {
			p := both()
			e := refused(t, sent(t, p.b, tc.o, tc.method, tc.target, tc.body))
			require.Equal(t, tc.status, e.Status)
			require.Equal(t, tc.code, e.Code)
			require.Contains(t, e.Message, tc.says)
			require.Empty(t, p.changes())
		})
	}
}

// The port of a location controls its own.
func TestScopedControl(t *testing.T) {
	p, scoped := both(), apiadmin.Options{Location: northCentral}
	for _, target := range []string{"/v1/nodes/northcentralus-1/stop", "/v1/locations/northcentralus/stop"} {
		require.Equal(t, http.StatusOK, sent(t, p.b, scoped, http.MethodPost, target, "").Code)
	}
	w := sent(t, p.b, scoped, http.MethodPost, "/v1/accounts", `{"name":"abc","location":"northcentralus"}`)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Len(t, p.changes(), 3)
}

// The plan of a failover is bounded as a read is, and its answer is that nothing was changed.
func TestPlanIsBoundedAsARead(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/accounts/devstoreaccount1/update":  `{"failover":{"type":"planned","dry_run":true}}`,
		"/v1/locations/northcentralus/failover": `{"type":"planned","dry_run":true}`,
	} {
		p := both()
		hang := func(ctx context.Context, _ question) error { <-ctx.Done(); return ctx.Err() }
		p.north.answers[updateAccount.Name], p.north.answers[failLocationOver.Name] = hang, hang
		o := apiadmin.Options{ReadTimeout: 20 * time.Millisecond, ControlTimeout: time.Minute}
		e := refused(t, sent(t, p.b, o, http.MethodPost, path, body))
		require.Contains(t, e.Message, "could not plan a failover of ")
		require.Contains(t, e.Message, "no answer in time; nothing was changed")
		require.NotEqual(t, "OutcomeUnknown", e.Code)
	}
}

// The log of the process warns that no node goes back where that became so, and not where there was nothing to finalize.
func TestFinalizedIsLogged(t *testing.T) {
	for level, raised := range map[uint32]bool{1: false, 2: true} {
		at := wire.Levels{Floor: 1, Active: 1}
		b := over(clock.System{}, leveled("north", "south", at, level), leveled("south", "north", at, level))
		var logged bytes.Buffer
		o := apiadmin.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}
		require.Equal(t, http.StatusOK, sent(t, b, o, http.MethodPost, "/v1/cluster/finalize", `{}`).Code)
		require.Equal(t, raised, strings.Contains(logged.String(), "upgrade finalized by an operator"))
	}
}

// What locations answer is what the client returns, over a real connection, and what the client asks is what they are asked.
func TestClientRoundTrip(t *testing.T) {
	p := both()
	c, ctx := p.client(t, apiadmin.Options{}), t.Context()
	all, err := c.Accounts(ctx)
	require.NoError(t, err)
	require.Len(t, all, 4)
	a, err := c.Account(ctx, "devstoreaccount1")
	require.NoError(t, err)
	require.Equal(t, fullStatus().Accounts[0].Account, a.Account)
	require.Len(t, a.Endpoints, 3)
	k, err := c.Keys(ctx, "devstoreaccount1")
	require.NoError(t, err)
	require.Equal(t, wire.Keys{Name: "devstoreaccount1", Key1: "a2V5MQ==", Key2: "a2V5Mg=="}, k)
	p.changes()

	a, err = c.CreateAccount(ctx, wire.NewAccount{Name: "pictures", Location: southCentral, Key1: "a2V5"})
	require.NoError(t, err)
	require.Equal(t, southCentral, a.Primary)
	u, err := c.UpdateAccount(ctx, "devstoreaccount1", wire.UpdateAccount{Redundancy: "GRS"})
	require.NoError(t, err)
	require.Equal(t, "GRS, not yet", u.Redundancy+", "+u.Behind)
	require.Equal(t, []string{"update devstoreaccount1 to GRS at northcentralus", "create pictures at southcentralus"}, p.changes())

	fork := func(l geo.Location, lane geo.Lane) wire.Fork {
		return wire.Fork{Account: "acct", Range: 4, Lane: lane, Location: l, Reason: "forked"}
	}
	p.south.forks.Forks = []wire.Fork{fork(southCentral, 17), fork(southCentral, 3)}
	p.north.forks.Forks = []wire.Fork{fork(northCentral, 17)}
	forks, err := c.Forks(ctx)
	require.NoError(t, err)
	require.NotNil(t, forks.Silent)
	var order []string
	for _, f := range forks.Forks {
		order = append(order, fmt.Sprint(f.Lane, " ", f.Location))
	}
	require.Equal(t, []string{"3 southcentralus", "17 northcentralus", "17 southcentralus"}, order, "sorted")
	names, err := c.Names(ctx, southCentral, wire.NamesQuery{Since: "v1", After: "abc"})
	require.NoError(t, err)
	require.Equal(t, wire.Names{Location: southCentral, Version: "v1+", Names: []wire.Name{}}, names)
	p.changes()

	p.south.reservations = []wire.Reservation{{Name: "half", Location: southCentral, Kind: wire.KindReservation, Primary: northCentral}}
	p.north.reservations = []wire.Reservation{{Name: "half", Location: northCentral, Kind: wire.KindCreation, Primary: northCentral}}
	waiting, err := c.Reservations(ctx)
	require.NoError(t, err)
	require.Equal(t, northCentral, waiting.Reservations[0].Location, "sorted")
	require.Len(t, waiting.Reservations, 2)
	require.NotNil(t, waiting.SilentLocations)
	freed, err := c.FreeReservation(ctx, "half")
	require.NoError(t, err)
	require.Equal(t, waiting, freed)
	p.changes()
}

// What is changed at nodes, ranges and streams reaches the location that is named.
func TestChangesOverAConnection(t *testing.T) {
	p := both()
	c, ctx := p.client(t, apiadmin.Options{}), t.Context()
	changed, err := c.StopNode(ctx, "northcentralus-2")
	require.NoError(t, err)
	require.Equal(t, wire.Changed{Name: "northcentralus-2", State: wire.Stopped}, changed)
	_, err = c.StopLocation(ctx, northCentral)
	require.NoError(t, err)
	r, err := c.RecoverRange(ctx, northCentral, 4, wire.RecoverRange{AcceptLoss: true, Untrusted: true})
	require.NoError(t, err)
	require.Equal(t, "a", r.Survivor)
	resumed, err := c.Resume(ctx, northCentral, wire.StreamName{Account: "pictures", Epoch: wire.Epoch{Number: 1, Location: northCentral}, Range: 4, Lane: 17})
	require.NoError(t, err)
	require.Equal(t, wire.Resumed{Stream: "pictures/1@northcentralus/r4/l17", Location: northCentral, Reason: "version"}, resumed)
	_, err = c.RaiseLevels(ctx, northCentral, wire.Levels{Floor: 3, Active: 2})
	require.NoError(t, err)
	require.Equal(t, []string{
		"stop node northcentralus-2 at northcentralus", "stop at northcentralus",
		"recover range 4 {AcceptLoss:true Untrusted:true WithoutPair:false DryRun:false} at northcentralus",
		"resume pictures/1@northcentralus/r4/l17 at northcentralus", "raise levels to 3 2 at northcentralus",
	}, p.changes())
	_, err = c.CutLink(ctx)
	require.NoError(t, err)
	l, err := c.DelayLink(ctx, 5*time.Second)
	require.NoError(t, err)
	require.Equal(t, wire.Link{State: wire.LinkDelayed, DelaySeconds: 5}, l)
	_, err = c.HealLink(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"link cut", "link delayed 5s", "link up"}, p.north.calls())
	require.Equal(t, []string{"link cut", "link delayed 5s", "link up"}, p.south.calls())
}
