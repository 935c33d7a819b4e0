package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/apitest"
	"antipode/api/blobs"
	"antipode/api/routing"
	"antipode/geo"
)

// OPTIONS needs no signature, on either endpoint: what a browser asks is answered by the
// service's rules, of which there are none.
func TestPreflight(t *testing.T) {
	t.Parallel()
	stamp := apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog)
	f := newFrontEnd(t, api.Options{Location: "north", Accounts: &accounts.Handler{Stamp: stamp}})
	for _, s := range []geo.Service{geo.Blob, geo.Queue, geo.Table} {
		for headers, want := range map[string]string{
			"": "400 InvalidHeaderValue", "Origin": "400 InvalidHeaderValue", "Access-Control-Request-Method": "400 InvalidHeaderValue",
			"Origin,Access-Control-Request-Method": "403 CorsPreflightFailure",
		} {
			for _, path := range []string{"/acct", "/acct/any/path", "/acct/T(PartitionKey='a"} {
				r := httptest.NewRequest(http.MethodOptions, path, nil)
				for name := range strings.SplitSeq(headers, ",") {
					if name != "" {
						r.Header.Set(name, "GET")
					}
				}
				w := httptest.NewRecorder()
				f.Handler(s).ServeHTTP(w, r)
				require.Equal(t, want, fmt.Sprint(w.Code, " ", w.Header().Get("x-ms-error-code")), "%s %s %s", s, path, headers)
				require.Contains(t, w.Body.String(), strings.Fields(want)[1])
			}
		}
	}
}

// A PUT or a POST without a word on its body is 411, at the location and at a gateway; with a
// length of zero, or in chunks where that may be, it is not.
func TestLengthRequired(t *testing.T) {
	t.Parallel()
	for _, gateway := range []bool{false, true} {
		echoed := stub(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
		o := api.Options{Location: "north", Leader: ledBy(echoed), Blobs: &blobs.Handler{}}
		if gateway {
			o = api.Options{Locations: []geo.Location{"north"}, Forward: routing.NewForwarder("gateway", func(geo.Location, geo.Service) []string { return []string{host(echoed)} }, nil)}
		}
		f := startFrontEnd(t, o)
		for _, c := range []struct {
			method, length string
			status         int
		}{
			{"PUT", "", 411},
			{"POST", "", 411},
			{"DELETE", "", 204},
			{"GET", "", 204},
			{"PUT", "Content-Length", 204},
			{"POST", "Content-Length", 204},
			{"POST", "Transfer-Encoding", 204},
		} {
			w := dialWire(t, f.url)
			headers := map[string][]string{"": nil, "Content-Length": {"Content-Length", "0"}, "Transfer-Encoding": {"Transfer-Encoding", "chunked"}}[c.length]
			w.head(t, c.method, "/acct/things", headers...)
			if c.length == "Transfer-Encoding" {
				_, err := io.WriteString(w, "0\r\n\r\n")
				require.NoError(t, err)
			}
			status, code, _ := w.answer(t, c.method)
			require.Equal(t, c.status, status, "%s %s at a gateway: %v", c.method, c.length, gateway)
			if status == http.StatusLengthRequired {
				require.Equal(t, "MissingContentLengthHeader", code)
			}
		}
	}
}

// An error is written as the answer would have been, before the request is authenticated
// as well: by version and Accept (protocol/table.md 2.4, 8.1).
func TestErrorFormat(t *testing.T) {
	t.Parallel()
	f := newFrontEnd(t, api.Options{Location: "north"})
	const json, atom, comp, xml = `{"odata.error"`, "<error xmlns=", "<m:error", "<Error>"
	for _, c := range []struct {
		service         geo.Service
		version, accept string
		query, want     string
	}{
		{geo.Table, "2021-12-02", "", "", json},
		{geo.Table, "2021-12-02", "application/atom+xml", "", json},
		{geo.Table, "2021-12-02", "application/json", "?comp=acl", comp},
		{geo.Table, "2013-08-15", "application/atom+xml,application/xml", "", atom},
		{geo.Table, "2013-08-15", "", "", atom},
		{geo.Table, "2013-08-15", "application/json", "", json},
		{geo.Table, "2013-08-15", "application/atom+xml", "?$format=json", json},
		{geo.Table, "2012-02-12", "application/json", "", atom},
		{geo.Table, "", "", "", atom},
		{geo.Table, "1999-01-01", "application/json;odata=nometadata", "", json},
		{geo.Table, "1999-01-01", "application/atom+xml", "", atom},
		{geo.Table, "1999-01-01", "", "", json},
		{geo.Blob, "2021-12-02", "application/json", "", xml},
		{geo.Queue, "1999-01-01", "application/json", "", xml},
	} {
		for _, target := range []string{"/acct/things", "/acct/things%zz?x=%zz&"} {
			if strings.HasSuffix(target, "&") && c.query != "" {
				continue
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RequestURI = target + c.query
			if c.version != "" {
				r.Header.Set("x-ms-version", c.version)
			}
			if c.accept != "" {
				r.Header.Set("Accept", c.accept)
			}
			w := httptest.NewRecorder()
			f.Handler(c.service).ServeHTTP(w, r)
			require.GreaterOrEqual(t, w.Code, 400)
			require.Contains(t, w.Body.String(), c.want, "%+v %s", c, target)
		}
	}
}
