package accounts_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/geo"
)

// The headers of CORS.
const (
	allowOrigin      = "Access-Control-Allow-Origin"
	allowCredentials = "Access-Control-Allow-Credentials"
	exposeHeaders    = "Access-Control-Expose-Headers"
)

// corsRule is the document of a rule.
func corsRule(origins, methods, exposed, allowed string) string {
	return "<CorsRule><AllowedOrigins>" + origins + "</AllowedOrigins><AllowedMethods>" + methods + "</AllowedMethods>" +
		"<MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders>" + exposed + "</ExposedHeaders><AllowedHeaders>" + allowed +
		"</AllowedHeaders></CorsRule>"
}

// setRules sets the CORS rules of a service.
func (r *rig) setRules(s geo.Service, rules ...string) {
	r.t.Helper()
	resp, body := r.properties(s, "2021-12-02", xmlStart+"<Cors>"+strings.Join(rules, "")+"</Cors>"+xmlEnd)
	require.Equal(r.t, 202, resp.StatusCode, body)
}

// preflight asks a service what pages may send, by headers and their values.
func (r *rig) preflight(s geo.Service, headers ...string) *http.Response {
	r.t.Helper()
	hr, err := http.NewRequest(http.MethodOptions, r.urls[s]+"/acct/any/path", nil)
	require.NoError(r.t, err)
	for i := 0; i < len(headers); i += 2 {
		hr.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(hr)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp
}

const (
	askMethod  = "Access-Control-Request-Method"
	askHeaders = "Access-Control-Request-Headers"
)

// The seven rows of protocol/blob.md 20.4, which say what a GET and a HEAD answer by whether there are rules and an Origin.
// Any other verb has no Vary, and nothing at all without an Origin.
//
// Capability: Clients: Service properties and CORS.
func TestCORSTable(t *testing.T) {
	r := newRig(t)
	exact, all := corsRule("http://a.test", "GET,HEAD,PUT", "x-ms-*,server", ""), corsRule("*", "GET,HEAD,PUT", "x-ms-*,server", "")
	const exposed = "Server,X-Ms-Request-Id,X-Ms-Version"
	for _, s := range services {
		for _, c := range []struct {
			rules, origin       string
			vary, allows, shows string
		}{
			{"", "", "", "", ""},
			{exact, "", "Origin", "", ""},
			{exact + all, "", "", "*", exposed},
			{"", "http://a.test", "", "", ""},
			{exact, "http://a.test", "Origin", "http://a.test", exposed},
			{exact, "http://b.test", "Origin", "", ""},
			{all, "http://b.test", "", "*", exposed},
			{exact + all, "http://b.test", "", "*", exposed}, // The last row, by a later rule.
			{exact + all, "http://a.test", "Origin", "http://a.test", exposed},
		} {
			r.setRules(s, c.rules)
			var page func(http.Header)
			if c.origin != "" {
				page = set("Origin", c.origin)
			}
			require := func(method, target, vary, allows, shows string) {
				t.Helper()
				resp, _ := r.send(s, request{method, target, page, nil})
				require.Equal(t, vary, resp.Header.Get("Vary"), "%s %s %+v", s, method, c)
				require.Equal(t, allows, resp.Header.Get(allowOrigin), "%s %s %+v", s, method, c)
				require.Equal(t, allows != "" && allows != "*", resp.Header.Get(allowCredentials) == "true", "%s %s %+v", s, method, c)
				require.Equal(t, shows, strings.ReplaceAll(resp.Header.Get(exposeHeaders), "X-Ms-Error-Code,", ""), "%s %s %+v", s, method, c)
			}
			require(http.MethodGet, propertiesTarget, c.vary, c.allows, c.shows)
			require(http.MethodHead, root(s), c.vary, c.allows, c.shows)
			if c.origin == "" {
				c.allows, c.shows = "", ""
			}
			require(http.MethodPut, propertiesTarget, "", c.allows, c.shows)
		}
		r.setRules(s, exact)
		resp, _ := r.send(s, request{"GET", propertiesTarget, set("x-ms-version", "2012-02-12", "Origin", "http://a.test"), nil})
		require.Equal(t, 200, resp.StatusCode)
		require.Empty(t, resp.Header.Get("Vary")+resp.Header.Get(allowOrigin), "versions before 2013-08-15 have no CORS")
		r.setRules(s)
	}
	r.setRules(geo.Queue, exact)
	resp, _ := r.send(geo.Table, request{"GET", root(geo.Table), set("Origin", "http://a.test"), nil})
	require.Empty(t, resp.Header.Get("Vary")+resp.Header.Get(allowOrigin), "each service has its own rules")
}

// A preflight is decided by the first rule that has the origin and the method: what headers it does not allow, no later rule
// does (protocol/blob.md 20.1, 20.2).
//
// Capability: Clients: Service properties and CORS.
func TestPreflight(t *testing.T) {
	r := newRig(t)
	for _, s := range services {
		require.Equal(t, "CorsPreflightFailure", r.preflight(s, "Origin", "http://a.test", askMethod, "GET").Header.Get("x-ms-error-code"))
		r.setRules(s,
			corsRule("http://a.test,http://b.test", "GET,PUT", "", "x-ms-meta-*,content-type"),
			corsRule("*", "GET,DELETE,OPTIONS", "", "*"))
		for _, c := range []struct{ origin, method, headers, want string }{
			{"http://a.test", "", "", "400 InvalidHeaderValue"},
			{"", "GET", "", "400 InvalidHeaderValue"},
			{"http://a.test", "POST", "", "403 CorsPreflightFailure"},
			{"http://A.test", "PUT", "", "403 CorsPreflightFailure"},
			{"http://c.test", "PUT", "", "403 CorsPreflightFailure"},
			{"http://a.test", "GET", "x-ms-meta-a, x-other", "403 CorsPreflightFailure"}, // The second rule has both.
			{"http://a.test", "GET", "x-ms-met", "403 CorsPreflightFailure"},
			{"http://b.test", "PUT", "X-Ms-Meta-A, Content-Type", "200 "},
			{"http://a.test", "DELETE", "x-other", "200 "},
			{"http://c.test", "GET", "", "200 "},
		} {
			asked := []string{"Origin", c.origin, askMethod, c.method, askHeaders, c.headers, "x-ms-version", "2021-12-02"}
			resp := r.preflight(s, asked...)
			h := resp.Header
			require.Equal(t, c.want, strings.Fields(resp.Status)[0]+" "+h.Get("x-ms-error-code"), "%s %+v", s, c)
			require.Empty(t, h.Get("Vary")+h.Get(exposeHeaders), "%s %+v", s, c)
			if resp.StatusCode != 200 {
				require.Empty(t, h.Get(allowOrigin))
				continue
			}
			require.Equal(t, c.origin, h.Get(allowOrigin), "%s %+v", s, c)
			require.Equal(t, "true", h.Get(allowCredentials))
			require.Equal(t, c.method, h.Get("Access-Control-Allow-Methods"))
			require.Equal(t, c.headers, h.Get("Access-Control-Allow-Headers"))
			require.Equal(t, "500", h.Get("Access-Control-Max-Age"))
		}
	}
}

// An entry of AllowedOrigins may have * in place of the subdomain, and then answers depend on the origin (protocol/blob.md 20.2).
//
// Capability: Clients: Service properties and CORS.
func TestCORSOfSubdomains(t *testing.T) {
	r := newRig(t)
	for _, s := range services {
		r.setRules(s, corsRule("http://*.contoso.com, https://*.fabrikam.com:8443, https://*., ://*.test", "GET", "", ""))
		for origin, allowed := range map[string]bool{
			"http://app.contoso.com": true, "http://a.b.contoso.com": true, "https://app.fabrikam.com:8443": true,
			"http://contoso.com": false, "http://.contoso.com": false, "https://app.contoso.com": false, "http://app.contoso.com:80": false,
			"http://appcontoso.com": false, "http://app.contoso.com.evil.test": false, "http://evil.test/.contoso.com": false,
			"http://evil.test:1.contoso.com": false, "http://me@x.contoso.com": false, "https://app.fabrikam.com": false,
			"app.contoso.com": false, "http://*.contoso.com": true, "https://evil.test.": false, "://evil.test": false,
			"http://x-1.Contoso.com": false, "http://X-1.contoso.com": true, "http://xn--bcher-kva.contoso.com": true,
			"http://evil.test#.contoso.com": false, "http://evil.test?.contoso.com": false, "http://evil.test\\.contoso.com": false,
			"http://evil.test%2f.contoso.com": false, "http://evil.test, http://a.contoso.com": false, "http://a b.contoso.com": false,
			"http://a..contoso.com": false, "http://a..b.contoso.com": false, "http://..contoso.com": false,
			"http://[::1].contoso.com": false, "http://é.contoso.com": false, "http://a_b.contoso.com": false, "http://**.contoso.com": false,
		} {
			want := ""
			if allowed {
				want = origin
			}
			require.Equal(t, want, r.preflight(s, "Origin", origin, askMethod, "GET").Header.Get(allowOrigin), "%s %s", s, origin)
			resp, _ := r.send(s, request{"GET", propertiesTarget, set("Origin", origin), nil})
			require.Equal(t, want, resp.Header.Get(allowOrigin), "%s %s", s, origin)
			require.Equal(t, "Origin", resp.Header.Get("Vary"))
		}
	}
}

// Origin headers that contradict each other are no origin that a rule fits, not even *: the page that reads the answer may be
// of the other one (protocol/blob.md 20.2).
func TestCORSOfContradictingOrigins(t *testing.T) {
	r := newRig(t)
	both := func(first, second string) func(http.Header) {
		return func(h http.Header) { h["Origin"] = []string{first, second} }
	}
	for _, s := range services {
		for _, origins := range []string{"http://a.test", "*"} {
			r.setRules(s, corsRule(origins, "GET,PUT", "*", "*"))
			for _, c := range []struct {
				first, second, refused string
			}{
				{"http://a.test", "http://b.test", "CorsPreflightFailure"},
				{"http://b.test", "http://a.test", "CorsPreflightFailure"},
				{"http://a.test", "", "CorsPreflightFailure"},
				{"http://a.test", "http://a.test", ""},
			} {
				hr, err := http.NewRequest(http.MethodOptions, r.urls[s]+"/acct/any/path", nil)
				require.NoError(t, err)
				both(c.first, c.second)(hr.Header)
				hr.Header.Set(askMethod, "GET")
				resp, err := r.client.Do(hr)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, c.refused, resp.Header.Get("x-ms-error-code"), "%s %s %+v", s, origins, c)
				require.Equal(t, c.refused == "", resp.Header.Get(allowOrigin) != "", "%s %s %+v", s, origins, c)
				for _, method := range []string{http.MethodGet, http.MethodPut} {
					resp, _ := r.send(s, request{method, propertiesTarget, both(c.first, c.second), nil})
					for _, name := range []string{allowOrigin, exposeHeaders} {
						require.Equal(t, c.refused == "", resp.Header.Get(name) != "", "%s %s %+v: %s", s, origins, c, name)
					}
				}
			}
		}
		r.setRules(s)
	}
}

// Errors have the headers of CORS too, so that a page sees a wrong signature or a missing blob: also those that come
// before the request is authorized (protocol/blob.md 20.3).
func TestCORSOfErrors(t *testing.T) {
	r := newRig(t)
	sas := func(s geo.Service, target, query string, signed bool) string {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		out, err := auth.SignSAS(protocol.Target{Service: s, Account: "acct"}, auth.Resource{}, values, key)
		require.NoError(t, err)
		if !signed {
			out += "AAAA"
		}
		return target + "?" + out
	}
	missing := map[geo.Service]string{geo.Blob: "/acct/none/there", geo.Queue: "/acct/none/messages", geo.Table: "/acct/none()"}
	const grant = "sv=2021-12-02&ss=bqt&srt=sco&sp=w&se=2999-01-01"
	unsigned := func(h http.Header) { h.Del("Authorization") }
	for _, s := range services {
		r.setRules(s, corsRule("http://a.test", "GET,POST", "x-ms-error-code", ""))
		for name, c := range map[string]struct {
			method, target string
			spoil          func(http.Header)
			status         int
		}{
			"signature":          {"GET", root(s), set("Authorization", "SharedKey acct:AAAA"), 403},
			"signature of a SAS": {"GET", sas(s, missing[s], grant, false), unsigned, 403},
			"permission":         {"GET", sas(s, missing[s], grant, true), unsigned, 403},
			"missing":            {"GET", missing[s], nil, 404},
			"query":              {"GET", root(s) + map[bool]string{true: "?", false: "&"}[s == geo.Table] + "timeout=x", nil, 400},
			"verb":               {"POST", sas(s, missing[s], grant, false), unsigned, 403},
		} {
			resp, body := r.send(s, request{c.method, c.target, set("Origin", "http://a.test"), c.spoil})
			require.Equal(t, c.status, resp.StatusCode, "%s %s: %s", s, name, body)
			require.Equal(t, "http://a.test", resp.Header.Get(allowOrigin), "%s %s", s, name)
			require.Equal(t, "true", resp.Header.Get(allowCredentials), "%s %s", s, name)
			require.Equal(t, "X-Ms-Error-Code", resp.Header.Get(exposeHeaders), "%s %s", s, name)
			require.Equal(t, c.method == "GET", resp.Header.Get("Vary") == "Origin", "%s %s", s, name)
		}
	}
}
