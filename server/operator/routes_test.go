package operator

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
)

// A query for a lag is checked before anybody is asked, and a port of a location asks for that alone.
func TestLagQuery(t *testing.T) {
	p := both()
	get := func(path string, q url.Values) int {
		return sent(t, p.b, apiadmin.Options{Location: southCentral}, http.MethodGet, path+"?"+q.Encode(), "").Code
	}
	for _, q := range []url.Values{
		{"service": {"file"}},
		{"service": {"catalog"}},
		{"partition": {"people/smith"}},
		{"service": {"table"}, "partition": {"people"}},
		{"service": {"blob"}, "partition": {"photos/"}},
		{"service": {"blob"}, "partition": {"/cat.jpg"}},
		{"service": {"queue"}, "partition": {"jobs"}},
	} {
		require.Equal(t, http.StatusBadRequest, get("/v1/accounts/pictures/lag", q), "%v", q)
	}
	require.Equal(t, http.StatusNotFound, get("/v1/accounts/No/lag", nil))
	require.Empty(t, p.changes())
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/lag", url.Values{"service": {"table"}, "partition": {"people/"}}))
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/flow", nil))
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/why", url.Values{"threshold": {"2.5"}}))
	for _, threshold := range []string{".5", "+5", "1e3"} {
		require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/why", url.Values{"threshold": {threshold}}), threshold)
	}
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/lag", url.Values{"SERVICE": {"nope"}}), "no part of the question")
	require.Len(t, p.changes(), 7)
	for _, threshold := range []string{"0", "-1", "1s", "NaN", "Inf", "null", "1e7"} {
		require.Equal(t, http.StatusBadRequest, get("/v1/accounts/pictures/why", url.Values{"threshold": {threshold}}), threshold)
	}
	require.Empty(t, p.changes())
}

// The failover of a location needs the token and a type, and what does not belong to the type is refused before anybody is
// asked. A port of a location answers for that one alone.
func TestLocationFailover(t *testing.T) {
	p := both()
	port := apiadmin.Options{Location: southCentral}
	post := func(body string) int {
		return sent(t, p.b, port, http.MethodPost, "/v1/locations/"+string(southCentral)+"/failover", body).Code
	}
	for _, bad := range []string{
		`{}`, `{"type":"move"}`, `{"type":"planned","to":"northcentralus"}`,
		`{"type":"planned","without_witness":true}`, `{"type":"end","not_taken":true}`, `{"type":"end","within_seconds":3}`,
		`{"type":"planned","within_seconds":-1}`, `{"type":"end","dry_run":true}`,
	} {
		require.Equal(t, http.StatusBadRequest, post(bad), bad)
	}
	require.Equal(t, http.StatusForbidden, sent(t, p.b, port, http.MethodGet, "/v1/locations/"+string(northCentral)+"/failover", "").Code)
	require.Empty(t, p.changes())
	for _, good := range []string{
		`{"type":"planned","within_seconds":3}`, `{"type":"planned","dry_run":true}`, `{"type":"unplanned","without_witness":true}`,
		`{"type":"unplanned","dry_run":true}`, `{"type":"end"}`,
	} {
		require.Equal(t, http.StatusOK, post(good), good)
	}
	answer := sent(t, p.b, port, http.MethodGet, "/v1/locations/"+string(southCentral)+"/failover", "")
	require.Equal(t, http.StatusOK, answer.Code)
	require.JSONEq(t, `{"from":"southcentralus","waiting":0,"moving":null,"moved":3,"alone":0,"refused":0}`, answer.Body.String())
}

// What a port shows of the geo-replication of an account comes from its record and its lag.
func TestGeoReplication(t *testing.T) {
	p := both()
	answer := sent(t, p.b, apiadmin.Options{}, http.MethodGet, "/v1/accounts/devstoreaccount1/geo", "")
	require.Equal(t, http.StatusOK, answer.Code)
	require.Contains(t, answer.Body.String(), `"status_of_primary": "`+wire.LocationAvailable)
	require.Contains(t, answer.Body.String(), `"post_failover_redundancy": "Standard_`)
	require.Equal(t, http.StatusNotFound, sent(t, p.b, apiadmin.Options{}, http.MethodGet, "/v1/accounts/nobody/geo", "").Code)
}

// The life of a clone is checked before anybody is asked.
func TestCloneRoutes(t *testing.T) {
	p := both()
	p.north.accounts = append(p.north.accounts, wire.Account{Name: "pictures", Primary: northCentral, Secondary: southCentral})
	ask := func(method, path, body string) (int, string) {
		w := sent(t, p.b, apiadmin.Options{}, method, path, body)
		return w.Code, w.Body.String()
	}
	const path = "/v1/accounts/pictures/clone"
	for _, body := range []string{"", `{"for":1}`, `{"for_seconds":0.5}`, `{"for_seconds":-1}`, `{"for_seconds":86401}`, `{"for_seconds":1e400}`} {
		code, _ := ask(http.MethodPost, path, body)
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	code, _ := ask(http.MethodPost, "/v1/accounts/No/clone", "{}")
	require.Equal(t, http.StatusNotFound, code)
	require.Empty(t, p.changes())

	for _, body := range []string{"{}", `{"for_seconds":60}`} {
		code, answer := ask(http.MethodPost, path, body)
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, answer, `"name": "pictures-drill"`)
	}
	code, _ = ask(http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, code)
	code, _ = ask(http.MethodPost, path+"/drop", "")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, []string{"clone pictures at northcentralus", "clone pictures at northcentralus", "open clone pictures 3600s at southcentralus", "open clone pictures 60s at southcentralus", "clone pictures at southcentralus", "clone pictures at southcentralus"}, p.changes())
}

// A comparison is checked before anybody is asked.
func TestVerifyRoutes(t *testing.T) {
	p := both()
	p.north.accounts = append(p.north.accounts, wire.Account{Name: "pictures", Primary: northCentral, Secondary: southCentral})
	ask := func(method, path, body string) (int, string) {
		w := sent(t, p.b, apiadmin.Options{}, method, path, body)
		return w.Code, w.Body.String()
	}
	const path = "/v1/accounts/pictures/verify"
	for _, body := range []string{`{"service":"file"}`, `{"service":"catalog"}`, `{"mend":true}`, `{"bytes_per_second":-1}`, `{"bytes_per_second":65535}`, `{"repair":true,"repair_bytes_per_second":1}`} {
		code, _ := ask(http.MethodPost, path, body)
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	code, _ := ask(http.MethodPost, "/v1/accounts/No/verify", "{}")
	require.Equal(t, http.StatusNotFound, code)
	require.Empty(t, p.changes())

	code, _ = ask(http.MethodPost, path, `{"service":"blob","payload":true,"bytes_per_second":65536,"repair":true,"repair_bytes_per_second":65537}`)
	require.Equal(t, http.StatusOK, code)
	code, body := ask(http.MethodGet, path, "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"ranges": []`)
	require.Contains(t, body, `"differences": []`)
	require.Equal(t, []string{"verify pictures at northcentralus", "verified pictures at northcentralus"}, p.changes())
}

// R22: lost changes are shown and dropped at the location that is named, of one account, with the token alone.
func TestR22LostIsAskedOfALocation(t *testing.T) {
	p := both()
	c := p.client(t, apiadmin.Options{})
	out, err := c.Lost(t.Context(), southCentral, wire.LostQuery{Account: "mail"})
	require.NoError(t, err)
	require.Equal(t, wire.Lost{Location: southCentral, Changes: []wire.LostChange{{Key: "02"}}}, out)
	d, err := c.DropLost(t.Context(), southCentral, wire.DropLost{Account: "mail"})
	require.NoError(t, err)
	require.Equal(t, 1, d.Dropped)
	require.Equal(t, []string{"lost mail at southcentralus", "drop lost mail at southcentralus"}, p.changes())
	_, err = c.Lost(t.Context(), southCentral, wire.LostQuery{Account: "no/account"})
	require.ErrorContains(t, err, "account is the name of one")
	_, err = c.DropLost(t.Context(), southCentral, wire.DropLost{})
	require.ErrorContains(t, err, "account is the name of one")
	require.Empty(t, p.changes())
}

// R16: a page of the lost-and-found can be dropped whatever the length of its keys: in more than one request, since the
// body of one is bounded.
func TestR16AllRowsOfAPageAreDropped(t *testing.T) {
	p := both()
	c := p.client(t, apiadmin.Options{})
	for _, size := range []int{4, 300, 14 << 10} {
		var q wire.DropFound
		for n := range wire.FoundRowsMax {
			q.Keys = append(q.Keys, strings.Repeat("0", size)+fmt.Sprint(n))
		}
		out, err := c.DropFound(context.Background(), southCentral, q)
		require.NoError(t, err, "keys of %d digits", size)
		require.Equal(t, wire.FoundRowsMax, out.Dropped)
		var asked []string
		for _, call := range p.changes() {
			asked = append(asked, strings.Fields(strings.TrimSuffix(strings.TrimPrefix(call, "drop ["), fmt.Sprintf("] at %s", southCentral)))...)
		}
		require.Equal(t, q.Keys, asked, "each once, in order")
	}
	out, err := c.DropFound(context.Background(), southCentral, wire.DropFound{})
	require.NoError(t, err)
	require.Zero(t, out.Dropped)
}

// A location that is started is said to run only when it serves; one that takes longer than
// the answer waits is said to start, with what it waits for, and readyz says when it serves.
// Checked with a location that serves after it was asked a number of times.
func TestStartLocationSaysWhenItServes(t *testing.T) {
	for _, c := range []struct {
		name string
		asks int
		wait time.Duration
		want wire.Changed
	}{
		{"serves at once", 0, time.Hour, wire.Changed{Name: "northcentralus", State: wire.Running}},
		{"serves soon", 2, time.Hour, wire.Changed{Name: "northcentralus", State: wire.Running}},
		{"serves late", math.MaxInt, time.Nanosecond, wire.Changed{
			Name: "northcentralus", State: wire.Starting, Waiting: "the blob range has no leader yet",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := both()
			p.north.servesAfter = c.asks
			client := p.client(t, apiadmin.Options{ServingWait: c.wait})
			got, err := client.StartLocation(context.Background(), northCentral)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			r, err := client.Readiness(context.Background())
			require.NoError(t, err)
			require.Equal(t, c.want.State == wire.Running, r.Locations[0].Serving)
			require.Equal(t, c.want.Waiting, r.Locations[0].Reason)
			node, err := client.StartNode(context.Background(), "northcentralus-1")
			require.NoError(t, err)
			require.Equal(t, wire.Changed{Name: "northcentralus-1", State: wire.Running, Waiting: c.want.Waiting}, node)
		})
	}
}

// A port answers a call at the path of the version before, too.
func TestFormerPath(t *testing.T) {
	p := both()
	for _, path := range []string{"/v1/locations/northcentralus/epochs/confirm", "/v1/locations/northcentralus/epochs/override"} {
		require.Equal(t, http.StatusOK, sent(t, p.b, apiadmin.Options{}, http.MethodPost, path, "").Code, path)
		require.Equal(t, []string{"override epochs at northcentralus"}, p.changes())
	}
}
