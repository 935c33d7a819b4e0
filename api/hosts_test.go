package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
)

// A page of another site whose name leads here (DNS rebinding) gets nothing, whatever it sends: a name that is not
// configured is refused at a location's port and at a gateway's, in every service, signed or not, preflights included. The
// answer says what to configure. A request that names another host in its request line is one to that host.
func TestForeignHostsAreRefused(t *testing.T) {
	t.Parallel()
	location := startFrontEnd(t, api.Options{Location: "south", Zones: []geo.Zone{"storage.example"}, Hosts: []string{"gateway.internal"}})
	gateway := startFrontEnd(t, api.Options{Locations: []geo.Location{"south"}, Zones: []geo.Zone{"storage.example"}, Forward: routing.NewForwarder("gateway", at(location.url), nil)})
	foreign := []string{"evil.example", "evil.example:10000", "127.0.0.1.evil.example", "gateway.internal.evil", "acct.table.evil", "sub.storage.example", "0x7f000001"}
	for _, f := range []*frontEnd{location, gateway} {
		for _, host := range foreign {
			r := signed(t, http.MethodGet, f.url+statsTarget, nil)
			r.Host = host
			a := send(t, r)
			require.Equal(t, http.StatusBadRequest, a.status, host)
			require.Contains(t, a.body, "InvalidHeaderValue")
			require.Contains(t, a.body, "hosts of node.yaml or gateway.yaml")
			require.Contains(t, a.body, "--data-host")
			for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
				for _, method := range []string{http.MethodOptions, http.MethodGet, http.MethodPut} {
					r := httptest.NewRequest(method, "http://"+host+"/acct/things", nil)
					w := httptest.NewRecorder()
					f.Handler(s).ServeHTTP(w, r)
					require.Equal(t, http.StatusBadRequest, w.Code, "%s %s %s", s, method, host)
					require.Contains(t, w.Body.String(), "--data-host")
				}
			}
		}
	}
	for _, host := range []string{"localhost:10000", "gateway.internal", "GATEWAY.internal.:1", "storage.example", "198.51.100.7:10000", "[2001:db8::1]"} {
		r := signed(t, http.MethodGet, location.url+statsTarget, nil)
		r.Host = host
		require.Equal(t, http.StatusOK, send(t, r).status, host)
	}
}

// What another front end passes on was checked by that one, which may have other names: it is taken under any, with proof.
func TestHopsAreTakenUnderAnyHost(t *testing.T) {
	t.Parallel()
	const secret = "a secret of this process"
	location := startFrontEnd(t, api.Options{Location: "south", HopSecret: secret})
	for proof, want := range map[string]int{secret: http.StatusOK, "wrong": http.StatusBadRequest} {
		gateway := startFrontEnd(t, api.Options{
			Locations: []geo.Location{"south"}, Hosts: []string{"gateway.internal"}, Forward: routing.NewForwarder("gateway", at(location.url), nil).WithSecret(proof),
		})
		r := signed(t, http.MethodGet, gateway.url+statsTarget, nil)
		r.Host = "gateway.internal"
		require.Equal(t, want, send(t, r).status, proof)
	}
}

// Strangers do not learn where an account is served, nor in which epoch: what they say of a gateway or of another location
// counts only beside a right signature, which a gateway without a certificate passes on, or with proof.
func TestStrangersDoNotLearnWhereAnAccountIs(t *testing.T) {
	t.Parallel()
	const secret = "a secret of this process"
	var north, south *frontEnd
	to := func(other **frontEnd) *routing.Forwarder {
		return routing.NewForwarder("x", func(geo.Location, geo.Service) []string { return []string{(*other).url} }, nil)
	}
	north = startFrontEnd(t, api.Options{Location: "north", Leader: ledNowhere, Forward: to(&south)})
	south = startFrontEnd(t, api.Options{Location: "south", HopSecret: secret, Leader: ledNowhere, Forward: to(&north)})
	named := func(a answer) bool {
		return a.header.Get("X-Antipode-Served-By") != "" || a.header.Get("X-Antipode-Not-Here") != "" || strings.Contains(a.body, "north") || strings.Contains(a.body, "south")
	}
	for _, says := range [][]string{
		{"X-Antipode-Gateway", "x"},
		{"X-Antipode-Gateway-Ask", "x"},
		{"X-Antipode-Gateway", "x", "X-Antipode-Epoch", "9 south"},
		{"X-Antipode-Epoch", "9 south"},
		{"X-Antipode-Hop", "x"},
		{"X-Antipode-Hop", "x", "X-Antipode-Gateway-Ask", "x"},
	} {
		for _, f := range []*frontEnd{north, south} { // The primary, and the other one.
			for _, target := range []string{"/acct/things", "/acct-secondary/things"} {
				for _, method := range []string{http.MethodGet, http.MethodDelete} {
					ask := func(more ...string) answer {
						r := signed(t, method, f.url+target, nil, slices.Concat(says, more)...)
						if len(more) == 0 {
							r.Header.Set("Authorization", "SharedKeyLite acct:AAAA")
						}
						return send(t, r)
					}
					a := ask()
					require.Equal(t, http.StatusForbidden, a.status, "%s %s %v: %s", method, target, says, a.body)
					require.False(t, named(a), "%s %s %v: %v %s", method, target, says, a.header, a.body)
					if f == south && target == "/acct/things" && says[0] == "X-Antipode-Gateway-Ask" { // The others wait for a leader first.
						require.True(t, named(ask("X-Signed", "rightly")), says)
					}
				}
			}
		}
	}
	r := signed(t, http.MethodGet, south.url+"/acct/things", nil, "X-Antipode-Gateway-Ask", "x", "X-Antipode-Hop-Secret", secret)
	r.Header.Set("Authorization", "SharedKeyLite acct:AAAA")
	require.Equal(t, "south", send(t, r).header.Get("X-Antipode-Not-Here"), "a gateway that has proven to be one")
}

// Nor does it learn that from the answer for a location that is not reached, of any port, nor from one about a clone, on
// this node or another one, where a gateway with a right signature or a proof learns it.
func TestStrangersDoNotLearnIt(t *testing.T) {
	t.Parallel()
	away := routing.NewForwarder("x", func(geo.Location, geo.Service) []string { return []string{"127.0.0.1:1"} }, nil)
	for _, f := range []*frontEnd{
		startFrontEnd(t, api.Options{Location: "south", Forward: away}),
		startFrontEnd(t, api.Options{Locations: []geo.Location{"north", "south"}, Forward: away}),
	} {
		r := signed(t, http.MethodGet, f.url+"/acct/things", nil)
		r.Header.Del("Authorization")
		a := send(t, r)
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		require.NotContains(t, a.body, "north")
		require.NotContains(t, a.body, "south")
	}

	const secret = "a secret of this process"
	clone := newFrontEnd(t, api.Options{Location: "north", Directory: directory{"acct": "alone"}, Leader: ledNowhere})
	here := startFrontEnd(t, api.Options{Location: "north", HopSecret: secret, Clone: func(geo.Account, geo.Service) (*api.Server, string, error) {
		return clone.Server, "", nil
	}})
	elsewhere := startFrontEnd(t, api.Options{
		Location: "north", HopSecret: secret, Forward: routing.NewForwarder("x", nil, nil).WithSecret(secret),
		Clone: func(geo.Account, geo.Service) (*api.Server, string, error) { return nil, host(here.url), nil },
	})
	for _, f := range []*frontEnd{here, elsewhere} {
		ask := func(headers ...string) answer {
			r := signed(t, http.MethodGet, f.url+"/acct"+geo.CloneSuffix+"/things", nil, headers...)
			r.Header.Set("Authorization", "SharedKeyLite acct:AAAA")
			return send(t, r)
		}
		a := ask("X-Antipode-Gateway", "x")
		require.Equal(t, http.StatusForbidden, a.status, a.body)
		require.Empty(t, a.header.Get("X-Antipode-Served-By"))
		require.Equal(t, "north", ask("X-Antipode-Gateway", "x", "X-Antipode-Hop-Secret", secret).header.Get("X-Antipode-Served-By"))
	}
}
