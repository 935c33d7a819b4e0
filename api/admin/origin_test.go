package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// routes are one of each kind, with and without an effect.
var routes = []string{
	"GET /metrics", "GET /healthz", "HEAD /readyz", "GET /v1/status", "GET /v1/events", "GET /v1/accounts", "GET /v1/accounts/devstoreaccount1",
	"GET /v1/accounts/devstoreaccount1/keys", "GET /v1/token-file?challenge=00", "POST /v1/accounts", "POST /v1/nodes/northcentralus-1/stop",
	"POST /v1/nodes/northcentralus-1/start", "POST /v1/locations/northcentralus/stop", "POST /v1/locations/northcentralus/start",
	"POST /v1/locations/northcentralus/ranges/4/recover", "POST /v1/link/cut", "POST /v1/link/delay", "POST /v1/link/heal", "GET /v1/nothing", "OPTIONS /v1/link/heal",
}

// each runs f for a request of every route.
func each(t *testing.T, f func(t *testing.T, r *http.Request, c *fake)) {
	t.Helper()
	for _, route := range routes {
		method, target, _ := strings.Cut(route, " ")
		t.Run(route, func(t *testing.T) {
			c := newFake()
			f(t, request(method, target, strings.NewReader("")), c)
			require.Empty(t, c.calls())
		})
	}
}

// TestHostRefused: a page of a name that its owner resolves to this machine (DNS
// rebinding) gets nothing, on any route, though the browser takes it for the same origin.
//
// Capability: Operation in Prometheus: Dashboards.
func TestHostRefused(t *testing.T) {
	each(t, func(t *testing.T, r *http.Request, c *fake) {
		r.Host = "evil.example:21080"
		w := send(c, Options{}, r)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.NotContains(t, w.Body.String(), "a2V5")
		if r.Method != http.MethodHead {
			e := refused(t, w)
			require.Equal(t, codeHost, e.Code)
			require.Contains(t, e.Message, "evil.example")
		}
	})
}

// TestHosts: a port is addressed by the host that it listens on, and by those that were configured.
func TestHosts(t *testing.T) {
	o := Options{Listen: "admin.example:10080", Hosts: []string{"prom.example"}}
	for host, want := range map[string]int{"admin.example": http.StatusOK, "prom.example:1": http.StatusOK, "other.example": http.StatusForbidden} {
		r := request(http.MethodGet, "/healthz", nil)
		r.Host = host
		require.Equal(t, want, send(newFake(), o, r).Code, host)
	}
}

// TestCrossOrigin: a page of another origin, another port of this machine included, reads
// nothing and changes nothing through the browser of a person who looks at it.
func TestCrossOrigin(t *testing.T) {
	headers := func(name string, values ...string) http.Header { return http.Header{name: values} }
	for _, h := range []http.Header{
		headers("Origin", "http://evil.example"), headers("Origin", "http://evil.example:10080"), headers("Origin", "null"), headers("Origin", ""),
		headers("Origin", "http://127.0.0.1:3000"), headers("Origin", "http://localhost:10080"), headers("Origin", "http://127.0.0.1:10080.evil.example"),
		headers("Origin", "file://127.0.0.1:10080"), headers("Origin", "http://127.0.0.1:10080", "http://evil.example"),
		headers("Sec-Fetch-Site", "cross-site"), headers("Sec-Fetch-Site", "same-site"), headers("Sec-Fetch-Site", "odd"),
	} {
		each(t, func(t *testing.T, r *http.Request, c *fake) {
			for name, values := range h {
				r.Header[name] = values
			}
			w := send(c, Options{}, r)
			require.Equal(t, http.StatusForbidden, w.Code, "%v", h)
			if r.Method != http.MethodHead {
				require.Equal(t, codeCrossOrigin, refused(t, w).Code)
			}
		})
	}
	for _, h := range []http.Header{
		headers("Origin", "http://127.0.0.1:10080"), headers("Origin", "https://127.0.0.1:10080"),
		headers("Sec-Fetch-Site", "same-origin"), headers("Sec-Fetch-Site", "none"),
	} {
		r := request(http.MethodGet, "/v1/accounts/devstoreaccount1/keys", nil)
		for name, values := range h {
			r.Header[name] = values
		}
		require.Equal(t, http.StatusOK, send(newFake(), Options{}, r).Code, "%v", h)
	}
}
