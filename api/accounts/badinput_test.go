package accounts_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"antipode/api"
	"antipode/api/accounts"
	"antipode/api/apitest"
	"antipode/api/auth"
	"antipode/api/blobs"
	"antipode/api/protocol"
	"antipode/api/queues"
	"antipode/api/tables"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	"antipode/services/catalog"
	messages "antipode/services/queues"
	"antipode/services/storageerr"
	"antipode/stamp"
	"antipode/stamp/ranges"
	"antipode/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the whole front end of location "north" over a stamp in memory: requests are
// signed. Of account acct it is the primary, of mirror the secondary.
type rig struct {
	t      *testing.T
	stamp  *stamp.Stamp
	clock  *clock.Manual
	urls   map[geo.Service]string
	client *http.Client
}

// services are those that are built.
var services = []geo.Service{geo.Table, geo.Blob, geo.Queue}

// directory holds the two accounts, and reads the rules of acct.
type directory struct{ stamp *stamp.Stamp }

var key = []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")

func (d directory) Resolve(ctx context.Context, name geo.Account, s geo.Service, _ func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	switch name {
	case "acct":
		var p *catalog.Properties
		err := d.stamp.Read(ctx, d.stamp.Route().Catalog(), func(state ranges.State) (err error) {
			p, err = catalog.GetProperties(state, s, name)
			return err
		})
		if err != nil {
			return nil, nil, nil, err
		}
		return &catalog.Account{Name: name, Key1: key, Key2: key, Epoch: 1, Primary: "north", Secondary: "south", Redundancy: catalog.RAGRS}, nil, p.CORS, nil
	case "mirror":
		return &catalog.Account{Name: name, Key1: key, Key2: key, Epoch: 1, Primary: "south", Secondary: "north", Redundancy: catalog.RAGRS}, nil, nil, nil
	}
	return nil, nil, nil, storageerr.AccountNotFound
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: clock.NewManual(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)), client: &http.Client{Transport: &http.Transport{}}}
	r.stamp = apitest.NewStamp(t, vfs.NewCrashableMem(), "acct", geo.Catalog, geo.Table, geo.Blob, geo.Queue)
	names, writer := &catalog.Containers{}, primary.New(r.stamp)
	server := api.NewServer(api.Options{
		Location: "north", Directory: directory{r.stamp}, Clock: r.clock, IDs: protocol.NewRequestIDs([32]byte{}), Logger: apitest.Quiet(),
		Accounts: &accounts.Handler{Stamp: r.stamp, Writer: writer, Stats: func(context.Context, *catalog.Account, geo.Service) (stats.Replication, error) {
			return stats.Replication{Status: stats.Unavailable}, nil
		}},
		Tables: &tables.Handler{Stamp: r.stamp, Writer: writer, NameRest: time.Hour, Names: names, InFlight: protocol.NewInFlight(tables.InFlightBytesMax), Answers: protocol.NewInFlight(tables.AnswersBytesMax)},
		Blobs: blobs.NewHandler(blobs.Options{
			Stamp: r.stamp, Writer: writer, Payload: r.stamp, Names: names, NameRest: time.Hour, Logger: apitest.Quiet(),
		}),
		Queues: queues.NewHandler(queues.Options{
			Stamp: r.stamp, Writer: writer, Names: names, NameRest: time.Hour,
			Messages: messages.New(messages.Options{Stamp: r.stamp, Writer: writer, Clock: r.clock}),
		}),
	})
	r.urls = map[geo.Service]string{}
	for _, s := range []geo.Service{geo.Table, geo.Blob, geo.Queue} {
		listener := httptest.NewServer(server.Handler(s))
		t.Cleanup(listener.Close)
		r.urls[s] = listener.URL
	}
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// request is a request for a service that would be answered: version, Accept and a
// signature are right. change happens before the signature, spoil after it.
type request struct {
	method, target string
	change, spoil  func(h http.Header)
}

// send signs and sends a request.
func (r *rig) send(s geo.Service, q request) (*http.Response, string) {
	r.t.Helper()
	hr, err := http.NewRequest(q.method, r.urls[s]+q.target, nil)
	if err != nil { // What is no URL goes out as it is.
		hr, err = http.NewRequest(q.method, r.urls[s], nil)
		require.NoError(r.t, err)
		hr.URL.Opaque = q.target
	}
	hr.Header.Set("x-ms-version", "2021-12-02")
	if s == geo.Table {
		hr.Header.Set("Accept", "application/json")
	}
	if q.change != nil {
		q.change(hr.Header)
	}
	account, _ := geo.SplitSecondary(strings.Split(strings.Split(q.target, "?")[0], "/")[1])
	if _, err := protocol.ParseQuery(hr.URL.RawQuery); err == nil { // Else it cannot be signed either.
		require.NoError(r.t, auth.Sign(hr, s, account, key, r.clock.Now()))
	}
	if q.spoil != nil {
		q.spoil(hr.Header)
	}
	resp, err := r.client.Do(hr)
	require.NoError(r.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp, string(body)
}

// root lists what an account has.
func root(s geo.Service) string {
	if s == geo.Table {
		return "/acct/Tables"
	}
	return "/acct/?comp=list"
}

// refused sends a request to a service and requires a refusal in the form
// of the service that changed nothing.
func (r *rig) refused(s geo.Service, q request, status int, code string) string {
	r.t.Helper()
	before := apitest.States(r.t, r.stamp, geo.Catalog, geo.Table, geo.Blob)
	resp, body := r.send(s, q)
	require.Equal(r.t, status, resp.StatusCode, "%s %s %s: %s", s, q.method, q.target, body)
	require.Equal(r.t, code, resp.Header.Get("x-ms-error-code"), "%s %s %s: %s", s, q.method, q.target, body)
	require.Len(r.t, resp.Header.Get("x-ms-request-id"), 36)
	if q.method != http.MethodHead {
		require.Contains(r.t, body, code)
		if !strings.Contains(body, `standalone="yes"`) { // Errors of the Atom era do not print it (protocol/table.md 8.1).
			require.Contains(r.t, body, resp.Header.Get("x-ms-request-id"))
		}
	}
	require.Equal(r.t, before, apitest.States(r.t, r.stamp, geo.Catalog, geo.Table, geo.Blob), "%s %s %s", s, q.method, q.target)
	return body
}

// set is a change of headers; an empty value removes one.
func set(pairs ...string) func(http.Header) {
	return func(h http.Header) {
		for i := 0; i+1 < len(pairs); i += 2 {
			name := http.CanonicalHeaderKey(pairs[i])
			if h[name] = []string{pairs[i+1]}; pairs[i+1] == "" {
				delete(h, name)
			}
		}
	}
}

// A version that is listed serves itself, a later date is served as the last, and the
// answer names the one that was used (protocol/table.md 2.1, protocol/blob.md 3.1). Everything
// else is 400 in every service, and none at all in blobs.
func TestBadVersions(t *testing.T) {
	r := newRig(t)
	for _, s := range services {
		for _, version := range []string{
			"2008-99-99", "2007-01-01", "2019-02-03", "2019-2-2", "2019-02-02 ", "2019-02-02x", "20190202", "x", "2099-02-30", "2099-13-01", "+099-01-01", "2019-02-02, 2019-07-07",
		} {
			if strings.TrimSpace(version) != version {
				continue // HTTP trims it.
			}
			body := r.refused(s, request{"GET", root(s), set("x-ms-version", version), nil}, 400, "InvalidHeaderValue")
			if s == geo.Blob {
				require.Contains(t, body, "<HeaderName>x-ms-version</HeaderName><HeaderValue>"+version+"</HeaderValue>")
			}
		}
		for version, want := range map[string]string{"2019-02-02": "2019-02-02", "2027-03-07": "2027-03-07", "2099-01-01": "2027-03-07"} {
			resp, body := r.send(s, request{"GET", root(s), set("x-ms-version", version), nil})
			require.Equal(t, http.StatusOK, resp.StatusCode, body)
			require.Equal(t, want, resp.Header.Get("x-ms-version"))
		}
	}
	r.refused(geo.Blob, request{"GET", root(geo.Blob), set("x-ms-version", ""), nil}, 400, "MissingRequiredHeader")
	resp, body := r.send(geo.Table, request{"GET", root(geo.Table), set("x-ms-version", ""), nil}) // The 2008 preview.
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.Empty(t, resp.Header.Get("x-ms-version"))
}

// Errors of tables before a request is authorized, or its version known, have the form
// that version and Accept ask for (protocol/table.md 2.1, 8.1).
func TestFormOfEarlyErrors(t *testing.T) {
	r := newRig(t)
	const atom, json = `<?xml version="1.0" encoding="utf-8" standalone="yes"?><error `, `{"odata.error":`
	for _, tc := range []struct {
		version, accept, want string
	}{
		{"2019-02-02", "application/json", json},
		{"2019-02-02", "application/atom+xml", json},
		{"2014-02-14", "application/json;odata=nometadata", json},
		{"2014-02-14", "application/atom+xml,application/xml", atom},
		{"2014-02-14", "", atom},
		{"2009-09-19", "application/json", atom},
		{"", "application/atom+xml", atom},
		{"2008-99-99", "application/atom+xml", atom},
		{"2008-99-99", "application/json", json},
		{"2008-99-99", "", json},
	} {
		change := set("x-ms-version", tc.version, "Accept", tc.accept)
		resp, body := r.send(geo.Table, request{"GET", "/acct/Tables", change, set("Authorization", "SharedKeyLite acct:AAAA")})
		require.GreaterOrEqual(t, resp.StatusCode, 400)
		require.True(t, strings.HasPrefix(body, tc.want), "%+v: %s", tc, body)
		require.Equal(t, tc.want == json, strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"), "%+v", tc)
		if tc.want == atom {
			require.Equal(t, "application/xml", resp.Header.Get("Content-Type"))
		}
	}
}

// Dates (protocol/auth.md 3): 15 minutes of either side, and x-ms-date before Date.
func TestBadDates(t *testing.T) {
	r := newRig(t)
	at := func(d time.Duration) string { return wire.FormatHTTPTime(r.clock.Now().Add(d)) }
	for _, s := range services {
		for date, detail := range map[string]string{
			at(-15*time.Minute - time.Second):        "Request date header too old: &apos;" + at(-15*time.Minute-time.Second) + "&apos;",
			at(15*time.Minute + time.Second):         "Request date header too far in the future",
			"yesterday":                              "Request date header not specified",
			"Wed, 01 Jan 2020 00:00:00 PST":          "Request date header not specified",
			"2020-01-01T00:00:00Z":                   "Request date header not specified",
			"Wed, 32 Jan 2020 00:00:00 GMT":          "Request date header not specified",
			"Wed, 01 Jan 2020 00:00:00 GMT, Thu, 02": "Request date header not specified",
		} {
			body := r.refused(s, request{"GET", root(s), set("x-ms-date", date), nil}, 403, "AuthenticationFailed")
			if s == geo.Blob {
				require.Contains(t, strings.ReplaceAll(body, "'", "&apos;"), "<AuthenticationErrorDetail>"+detail)
			}
		}
		r.refused(s, request{"GET", root(s), nil, set("x-ms-date", "")}, 403, "AuthenticationFailed")
		r.refused(s, request{"GET", root(s), set("x-ms-date", "x", "Date", at(0)), nil}, 403, "AuthenticationFailed")
		for _, d := range []time.Duration{-15 * time.Minute, 0, 15 * time.Minute} {
			resp, body := r.send(s, request{"GET", root(s), set("x-ms-date", at(d)), nil})
			require.Equal(t, http.StatusOK, resp.StatusCode, body)
		}
	}
}

// Credentials (protocol/auth.md 2, 12, 21 to 23): each wrong in its own way.
func TestBadCredentials(t *testing.T) {
	r := newRig(t)
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, s := range services {
		for header, want := range map[string]string{
			"SharedKey acct:" + wrong: "403 AuthenticationFailed", "SharedKey acct:AAAA": "403 AuthenticationFailed",
			"SharedKey acct:?": "403 AuthenticationFailed", "SharedKeyLite acct:" + wrong: "403 AuthenticationFailed",
			"SharedKey other:" + wrong: "403 AuthenticationFailed", "SharedKey acct-secondary:" + wrong: "403 AuthenticationFailed",
			"SharedKey acct": "400 InvalidAuthenticationInfo", "SharedKey acct:": "400 InvalidAuthenticationInfo",
			"SharedKey :" + wrong: "400 InvalidAuthenticationInfo", "SharedKey  acct:" + wrong: "400 InvalidAuthenticationInfo",
			"SharedKey": "400 InvalidAuthenticationInfo", "Basic YTpi": "400 InvalidAuthenticationInfo",
			"acct:" + wrong: "400 InvalidAuthenticationInfo", "Bearer token": "401 InvalidAuthenticationInfo",
		} {
			status, code := map[byte]int{'0': 400, '1': 401, '3': 403}[want[2]], want[4:]
			body := r.refused(s, request{"GET", root(s), nil, set("Authorization", header)}, status, code)
			if s == geo.Blob && header == "SharedKey acct:AAAA" {
				require.Contains(t, body, "The MAC signature found in the HTTP request 'AAAA' is not the same as any computed signature. Server used following string to sign: 'GET\n")
			}
		}
		twice := func(h http.Header) { h["Authorization"] = append(h["Authorization"], h["Authorization"]...) }
		r.refused(s, request{"GET", root(s), nil, twice}, 400, "InvalidAuthenticationInfo")
		r.refused(s, request{"GET", root(s), nil, set("Authorization", "")}, 401, "NoAuthenticationInformation")
		// A write is refused before it is looked at, and so is what is signed for another.
		r.refused(s, request{"DELETE", root(s), nil, set("Authorization", "")}, 401, "NoAuthenticationInformation")
	}
	// The body says what was signed, so another value of a signed header is another request.
	r.refused(geo.Blob, request{"PUT", "/acct/cont?restype=container", nil, set("x-ms-meta-a", "b")}, 403, "AuthenticationFailed")
	r.refused(geo.Table, request{"GET", "/none/Tables", nil, nil}, 403, "AuthenticationFailed")
	r.refused(geo.Blob, request{"GET", "/none/?comp=list", nil, nil}, 404, "ResourceNotFound")
	for _, account := range []string{"ACCT", "a", strings.Repeat("a", 25), "a_b", "acct%00", "%61cct", "acct-secondary-secondary"} {
		r.refused(geo.Blob, request{"GET", "/" + account + "/?comp=list", nil, nil}, 404, "ResourceNotFound")
		r.refused(geo.Table, request{"GET", "/" + account + "/Tables", nil, nil}, 403, "AuthenticationFailed")
	}
}

// What the headers decide is answered before the body is asked for (protocol/table.md 3,
// A.85).
func TestRefusedWithoutContinue(t *testing.T) {
	r := newRig(t)
	for s, target := range map[geo.Service]string{geo.Table: "POST /acct/tbl", geo.Blob: "PUT /acct/cont/b"} {
		got := apitest.Raw(t, r.urls[s], target+" HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: 2021-12-02\r\nAuthorization: SharedKey acct:AAAA\r\n"+
			"x-ms-date: "+wire.FormatHTTPTime(r.clock.Now())+"\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", true)
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 403 "), got)
	}
}

// Account-level calls and parameters that every service reads alike (protocol/service.md 3,
// protocol/table.md 1.5, 9.4, protocol/blob.md 1.2, 2.5).
//
// Capability: Clients: Bad input gets the protocol's error and changes nothing.
func TestBadAccountCalls(t *testing.T) {
	r := newRig(t)
	for _, s := range []geo.Service{geo.Table, geo.Blob, geo.Queue} {
		for _, c := range []struct {
			method, target string
			status         int
			code           string
		}{
			{"GET", "/acct/?restype=service&comp=stats", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct?comp=STATS&restype=Service", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?comp=stats", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?restype=container&comp=stats", 400, "InvalidQueryParameterValue"},
			{"GET", "/mirror-secondary/?comp=stats", 400, "InvalidQueryParameterValue"},
			{"GET", "/mirror-secondary/?restype=table&comp=stats", 400, "InvalidQueryParameterValue"},
			{"GET", "/mirror-secondary/?restype=service&comp=statistics", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?restype=service", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?restype=service&comp=list", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?comp=properties", 400, "InvalidQueryParameterValue"},
			{"PUT", "/acct/?restype=service&comp=properties", 400, "InvalidXmlDocument"},
			{"PUT", "/mirror-secondary/?restype=service&comp=properties", 403, "InsufficientAccountPermissions"},
			{"POST", "/mirror-secondary/?restype=service&comp=stats", 403, "InsufficientAccountPermissions"},
			{"GET", "/acct/?restype=service&comp=stats&timeout=0", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?restype=service&comp=stats&timeout=-1", 400, "InvalidQueryParameterValue"},
			{"GET", "/acct/?restype=service&comp=stats&timeout=soon", 400, "InvalidQueryParameterValue"},
			{"OPTIONS", "/acct/", 400, "InvalidHeaderValue"},
		} {
			r.refused(s, request{c.method, c.target, nil, nil}, c.status, c.code)
		}
		notAllowed := "UnsupportedHttpVerb"
		if s == geo.Table {
			notAllowed = "MethodNotAllowed"
		}
		for _, method := range []string{"PUT", "POST", "DELETE", "HEAD", "PATCH", "MERGE"} {
			r.refused(s, request{method, "/acct/?restype=service&comp=stats", nil, nil}, 405, notAllowed)
		}
		r.refused(s, request{"DELETE", "/acct/?restype=service&comp=properties", nil, nil}, 405, notAllowed)
		r.refused(s, request{"FOO", "/acct/?restype=service&comp=stats", nil, nil}, 400, "InvalidHttpVerb")
		r.refused(s, request{"GET", "/acct/?restype=service&comp=stats&a=%zz", nil, nil}, 400, "InvalidQueryParameterValue")
		r.refused(s, request{"GET", "/acct/?" + strings.Repeat("a=b&", 257), nil, nil}, 400, "InvalidQueryParameterValue")
		r.refused(s, request{"GET", "//x", nil, nil}, 400, "InvalidUri")
		r.refused(s, request{"GET", "/mirror-secondary/?restype=service&comp=stats", set("x-ms-version", "2012-02-12"), nil}, 400, "InvalidQueryParameterValue")
		resp, body := r.send(s, request{"GET", "/mirror-secondary/?restype=service&comp=stats", nil, nil})
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
		require.Contains(t, body, "<Status>unavailable</Status><LastSyncTime></LastSyncTime>")
	}
	for _, c := range []struct {
		s              geo.Service
		method, target string
	}{
		{geo.Table, "POST", "/mirror-secondary/Tables"},
		{geo.Table, "PUT", "/mirror-secondary/t(PartitionKey='',RowKey='')"},
		{geo.Table, "DELETE", "/mirror-secondary/Tables('t')"},
		{geo.Table, "FOO", "/mirror-secondary/t"},
		{geo.Blob, "PUT", "/mirror-secondary/cont?restype=container"},
		{geo.Blob, "PUT", "/mirror-secondary/cont/b"},
		{geo.Blob, "PUT", "/mirror-secondary/cont/b?comp=lease"},
		{geo.Blob, "DELETE", "/mirror-secondary/none/b"},
	} {
		body := r.refused(c.s, request{c.method, c.target, nil, nil}, 403, "InsufficientAccountPermissions")
		require.Contains(t, body, "Write operations are not allowed.")
		r.refused(c.s, request{c.method, c.target, nil, set("Authorization", "SharedKey mirror:AAAA")}, 403, "AuthenticationFailed")
	}
}
