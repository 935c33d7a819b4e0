package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/auth"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/outbound"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// policyDirectory has container cont of each account with a policy "p", which permits reads.
type policyDirectory struct{ directory }

// Resolve implements api.Directory.
func (d policyDirectory) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, _, rules, err := d.directory.Resolve(ctx, name, s, container)
	if err != nil || container(a) == "" {
		return a, nil, rules, err
	}
	return a, &catalog.Found{Container: &catalog.Container{Policies: []catalog.Policy{{ID: "p", Expiry: "2999-01-01", Permission: "r"}}}}, rules, nil
}

// offeredDirectory has its accounts on their way to the other location (R19).
type offeredDirectory struct{ policyDirectory }

// Resolve implements api.Directory.
func (d offeredDirectory) Resolve(
	ctx context.Context, name geo.Account, s geo.Service, container func(*catalog.Account) string,
) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, found, rules, err := d.policyDirectory.Resolve(ctx, name, s, container)
	if err == nil {
		a.Operation = &catalog.Operation{Kind: catalog.OperationMove, Move: catalog.Move{Phase: catalog.MoveOffered}}
	}
	return a, found, rules, err
}

// sourceAccounts are those of the location north: see directory.
func sourceAccounts() policyDirectory {
	return policyDirectory{directory{
		"acct": "north", "other": "north", "mirror": "south", "alone": "alone", "hidden": "hidden", "copying": "copying",
	}}
}

// readSAS permits to read; the parameters replace those of it.
func readSAS(t *testing.T, account geo.Account, container, name string, params ...string) string {
	t.Helper()
	values := url.Values{"sv": {"2021-12-02"}, "sr": {"b"}, "sp": {"r"}, "se": {"2999-01-01"}}
	for _, p := range params {
		k, v, _ := strings.Cut(p, "=")
		if values.Set(k, v); v == "" {
			values.Del(k)
		}
	}
	signed, err := auth.SignSAS(protocol.Target{Service: geo.Blob, Account: account}, auth.Resource{Container: container, Blob: name}, values, key)
	require.NoError(t, err)
	return signed
}

// copyRequest is a request of a copy into account acct, in path style at storage.example, signed with the key.
func copyRequest(t *testing.T, headers ...string) *http.Request {
	t.Helper()
	return copyInto(t, "acct", "", headers...)
}

// copyInto is copyRequest for an account by its key, or by a signature if sas has one.
func copyInto(t *testing.T, account, sas string, headers ...string) *http.Request {
	t.Helper()
	target := "/" + account + "/cont/copy"
	if sas != "" {
		target += "?" + sas
	}
	r := httptest.NewRequest(http.MethodPut, target, nil).WithContext(t.Context())
	r.Host, r.RequestURI = "storage.example:10000", target
	r.Header.Set("x-ms-version", "2021-12-02")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	if sas == "" {
		require.NoError(t, auth.Sign(r, geo.Blob, geo.Account(account), key, clock.System{}.Now()))
	}
	return r
}

// sourceError is the status and the code of an error, "" for none.
func sourceError(err error) string {
	if err == nil {
		return ""
	}
	e, ours := protocol.ErrorOf(err)
	if !ours {
		return err.Error()
	}
	return fmt.Sprint(e.Status, " ", e.Code)
}

// newSourceEnd is the front end of north, whose hosts are storage.example and the zone zone.example.
func newSourceEnd(t *testing.T, o api.Options) *frontEnd {
	t.Helper()
	o.Location, o.Zones = "north", []geo.Zone{"zone.example"}
	o.Hosts = append(slices.Clone(o.Hosts), "storage.example")
	if o.Directory == nil {
		o.Directory = sourceAccounts()
	}
	return newFrontEnd(t, o)
}

// Who may copy from what of this deployment: with the key from the same account, by a signature in the URL from what that is
// for, if it permits a read now and for this client. The one who has neither learns no more than by asking for the blob.
//
// Capability: Clients: Sources of copies.
func TestSourcesAreAuthorized(t *testing.T) {
	t.Parallel()
	f := newSourceEnd(t, api.Options{})
	const at, mine = "http://storage.example:10000/", "http://storage.example:10000/acct/cont/b"
	bySAS := func(account geo.Account, params ...string) string {
		return at + string(account) + "/cont/b?" + readSAS(t, account, "cont", "b", params...)
	}
	broken := bySAS("other")
	broken = strings.Replace(broken, "se=2999", "se=2998", 1)
	for name, c := range map[string]struct {
		uri string
		// old is the version of the request, sas whether it is signed by a signature in its place.
		old string
		sas bool
		// want is an error, or "read" or "do".
		want string
	}{
		"the own key":                         {uri: mine, want: "read"},
		"the own key, a snapshot":             {uri: mine + "?snapshot=2026-01-01T00:00:00.0000000Z", want: "read"},
		"the own key, at the other location":  {uri: at + "acct-secondary/cont/b", want: "do"},
		"the own key, in host style":          {uri: "https://acct.blob.zone.example/cont/b", want: "read"},
		"the own key, under another port":     {uri: "http://ACCT.blob.zone.example.:123/cont/b", want: "read"},
		"an own signature":                    {uri: bySAS("acct"), want: "read"},
		"another account's signature":         {uri: bySAS("other"), want: "read"},
		"another account's, host style":       {uri: "http://other.blob.zone.example/cont/b?" + readSAS(t, "other", "cont", "b"), want: "read"},
		"another account's policy":            {uri: bySAS("other", "se=", "sp=", "si=p"), want: "read"},
		"another account's, no such policy":   {uri: bySAS("other", "se=", "sp=", "si=q"), want: "403 CannotVerifyCopySource"},
		"another account's, of the container": {uri: at + "other/cont/x?" + readSAS(t, "other", "cont", "", "sr=c"), want: "read"},
		"an account signature":                {uri: bySAS("other", "sr=", "ss=b", "srt=o"), want: "read"},
		"an account signature of queues":      {uri: bySAS("other", "sr=", "ss=q", "srt=o"), want: "403 CannotVerifyCopySource"},
		"an account signature of containers":  {uri: bySAS("other", "sr=", "ss=b", "srt=c"), want: "403 CannotVerifyCopySource"},
		"no credentials":                      {uri: at + "other/cont/b", want: "401 CannotVerifyCopySource"},
		"no credentials, of old":              {uri: at + "other/cont/b", old: "2019-02-02", want: "404 CannotVerifyCopySource"},
		"no credentials, no account":          {uri: at + "nobody/cont/b", want: "401 CannotVerifyCopySource"},
		"no account":                          {uri: bySAS("nobody"), want: "404 CannotVerifyCopySource"},
		"a changed signature":                 {uri: broken, want: "403 CannotVerifyCopySource"},
		"one that has expired":                {uri: bySAS("other", "se=2020-01-01"), want: "403 CannotVerifyCopySource"},
		"one that is not valid yet":           {uri: bySAS("other", "st=2990-01-01"), want: "403 CannotVerifyCopySource"},
		"one of another blob":                 {uri: at + "other/cont/c?" + readSAS(t, "other", "cont", "b"), want: "403 CannotVerifyCopySource"},
		"one of another container":            {uri: at + "other/cont2/b?" + readSAS(t, "other", "cont", "", "sr=c"), want: "403 CannotVerifyCopySource"},
		"one of another account":              {uri: at + "other/cont/b?" + readSAS(t, "acct", "cont", "b"), want: "403 CannotVerifyCopySource"},
		"one that permits writes":             {uri: bySAS("other", "sp=w"), want: "403 CannotVerifyCopySource"},
		"a wrong one of the own account":      {uri: bySAS("acct", "sp=w"), want: "403 CannotVerifyCopySource"},
		"one for this client":                 {uri: bySAS("other", "sip=192.0.2.1"), want: "read"},
		"one for another client":              {uri: bySAS("other", "sip=192.0.2.2"), want: "403 CannotVerifyCopySource"},
		"one for https":                       {uri: "https" + strings.TrimPrefix(bySAS("other", "spr=https"), "http"), want: "403 CannotVerifyCopySource"},

		"a writer by signature":                    {uri: mine, sas: true, want: "401 CannotVerifyCopySource"},
		"a writer by signature, with one":          {uri: bySAS("acct"), sas: true, want: "read"},
		"a writer by signature, of another":        {uri: bySAS("other"), sas: true, want: "read"},
		"the secondary here":                       {uri: at + "mirror-secondary/cont/b?" + readSAS(t, "mirror", "cont", "b"), want: "read"},
		"the secondary here, a wrong letter":       {uri: at + "mirror-secondary/cont/b?" + readSAS(t, "mirror", "cont", "b", "sp=w"), want: "403 CannotVerifyCopySource"},
		"the primary at the other location":        {uri: bySAS("mirror"), want: "do"},
		"the primary there, policy unknown here":   {uri: bySAS("mirror", "se=", "sp=", "si=q"), want: "do"},
		"the primary there, a changed signature":   {uri: bySAS("mirror") + "&rsct=x", want: "403 CannotVerifyCopySource"},
		"no secondary":                             {uri: at + "alone-secondary/cont/b?" + readSAS(t, "alone", "cont", "b"), want: "403 CannotVerifyCopySource"},
		"a secondary that nobody may read":         {uri: at + "hidden-secondary/cont/b?" + readSAS(t, "hidden", "cont", "b"), want: "403 CannotVerifyCopySource"},
		"a secondary that is being made":           {uri: at + "copying-secondary/cont/b?" + readSAS(t, "copying", "cont", "b"), want: "503 CannotVerifyCopySource"},
		"a clone":                                  {uri: at + "acct-drill/cont/b", want: "404 CannotVerifyCopySource"},
		"a clone, by signature":                    {uri: at + "acct-drill/cont/b?" + readSAS(t, "acct-drill", "cont", "b"), want: "404 CannotVerifyCopySource"},
		"the form of old":                          {uri: "/acct/cont/b?snapshot=2026-01-01T00:00:00.0000000Z", old: "2011-08-18", want: "read"},
		"the form of old, of another account":      {uri: "/other/cont/b", old: "2011-08-18", want: "404 CannotVerifyCopySource"},
		"the form of old, today":                   {uri: "/acct/cont/b", want: "400 InvalidHeaderValue"},
		"the form of today, of old":                {uri: mine, old: "2011-08-18", want: "read"},
		"a host that is configured":                {uri: "http://STORAGE.example./acct/cont/b", want: "read"},
		"localhost":                                {uri: "http://localhost:1/acct/cont/b", want: "read"},
		"an address that is not":                   {uri: "http://203.0.113.7:10000/acct/cont/b", want: "403 CannotVerifyCopySource"},
		"loopback, to which the request was not":   {uri: "http://127.0.0.1:10000/acct/cont/b", want: "403 CannotVerifyCopySource"},
		"another server":                           {uri: "http://storage.example.evil/acct/cont/b", want: "403 CannotVerifyCopySource"},
		"a service that is not ours":               {uri: "http://acct.file.zone.example/cont/b", want: "403 CannotVerifyCopySource"},
		"the zone under another name":              {uri: "http://acct.blob.zone.example.evil/cont/b", want: "403 CannotVerifyCopySource"},
		"an account in more labels":                {uri: "http://a.acct.blob.zone.example/cont/b", want: "403 CannotVerifyCopySource"},
		"letters that must be escaped":             {uri: "http://storage.example:10000/acct/cont/ü\"{|}", want: "read"},
		"encoded slashes, twice":                   {uri: "http://storage.example:10000/acct/cont/a%2Fb%252F", want: "read"},
		"the root container":                       {uri: "http://storage.example:10000/acct/b", want: "read"},
		"2 KiB":                                    {uri: mine + strings.Repeat("b", 2048-len(mine)), want: "read"},
		"more than 2 KiB":                          {uri: mine + strings.Repeat("b", 2049-len(mine)), want: "400 InvalidHeaderValue"},
		"nothing":                                  {want: "400 InvalidHeaderValue"},
		"no URL":                                   {uri: "acct/cont/b", want: "400 InvalidHeaderValue"},
		"another scheme":                           {uri: "ftp://storage.example/acct/cont/b", want: "400 InvalidHeaderValue"},
		"a file":                                   {uri: "file:///etc/passwd", want: "400 InvalidHeaderValue"},
		"no host":                                  {uri: "http:///acct/cont/b", want: "400 InvalidHeaderValue"},
		"a port alone":                             {uri: "http://:10000/acct/cont/b", want: "400 InvalidHeaderValue"},
		"no port":                                  {uri: "http://storage.example:/acct/cont/b", want: "400 InvalidHeaderValue"},
		"a user":                                   {uri: "http://storage.example:10000@evil/acct/cont/b", want: "400 InvalidHeaderValue"},
		"a user of a zone":                         {uri: "http://evil@acct.blob.zone.example/cont/b", want: "400 InvalidHeaderValue"},
		"a backslash":                              {uri: "http://evil\\@storage.example:10000/acct/cont/b", want: "400 InvalidHeaderValue"},
		"a fragment":                               {uri: mine + "#x", want: "400 InvalidHeaderValue"},
		"a fragment behind a signature":            {uri: bySAS("other") + "#x", want: "400 InvalidHeaderValue"},
		"a blank":                                  {uri: mine + " x", want: "400 InvalidHeaderValue"},
		"a line feed":                              {uri: mine + "\nx-ms-a:b", want: "400 InvalidHeaderValue"},
		"an escape that is none":                   {uri: mine + "%zz", want: "400 InvalidHeaderValue"},
		"no blob":                                  {uri: at + "acct", want: "400 InvalidHeaderValue"},
		"an empty name":                            {uri: at + "acct/cont/", want: "400 InvalidHeaderValue"},
		"no account in the path":                   {uri: at, want: "400 InvalidHeaderValue"},
		"a container":                              {uri: at + "acct/cont?restype=container", want: "400 InvalidHeaderValue"},
		"a list":                                   {uri: at + "acct/cont?restype=container&comp=list", want: "400 InvalidHeaderValue"},
		"the tags of a blob":                       {uri: mine + "?comp=tags", want: "400 InvalidHeaderValue"},
		"properties of the service":                {uri: at + "acct/?restype=service&comp=properties", want: "400 InvalidHeaderValue"},
		"a queue":                                  {uri: "http://acct.queue.zone.example/cont/b", want: "400 InvalidHeaderValue"},
		"a parameter twice":                        {uri: mine + "?snapshot=a&snapshot=b", want: "400 InvalidHeaderValue"},
		"another account by its key, with its SAS": {uri: bySAS("other") + "&restype=container", want: "400 InvalidHeaderValue"},
	} {
		t.Run(name, func(t *testing.T) {
			sas, headers := "", []string(nil)
			if c.sas {
				sas = readSAS(t, "acct", "cont", "copy", "sp=w")
			}
			if c.old != "" {
				headers = []string{"x-ms-version", c.old}
			}
			s, _, err := f.SourceOf(copyInto(t, "acct", sas, headers...), c.uri)
			got := sourceError(err)
			if err == nil {
				require.NotEqual(t, s.Read == nil, s.Do == nil, "one of the two")
				if got = "read"; s.Do != nil {
					got = "do"
				}
			}
			require.Equal(t, c.want, got, "%v", err)
			if e, ours := protocol.ErrorOf(err); err != nil && ours {
				for _, d := range e.Details {
					require.NotContains(t, d.Value, "sig=", "no signature in an answer")
				}
				if e.Code == "InvalidHeaderValue" {
					require.Equal(t, storageerr.Detail{Name: "HeaderName", Value: "x-ms-copy-source"}, e.Details[0])
				}
			}
		})
	}
}

// A source that this location serves comes as the read that its client could send: with the rights of the signature, with the
// version that serves it, and without anything of the copy's own header.
//
// Capability: Clients: Sources of copies.
func TestSourceIsTheReadItWouldBe(t *testing.T) {
	t.Parallel()
	f := newSourceEnd(t, api.Options{})
	find := func(uri string, headers ...string) *protocol.Source {
		s, _, err := f.SourceOf(copyRequest(t, headers...), uri)
		require.NoError(t, err)
		return s
	}
	s := find("https://other.blob.zone.example/cont/a%20b?snapshot=x&"+readSAS(t, "other", "cont", "a b", "rsct=text/x"), "x-ms-meta-a", "b", "If-Match", "*")
	r := s.Read
	require.Equal(t, geo.Account("other"), r.Account.Name)
	require.Equal(t, geo.Account("other"), r.Target.Account)
	require.Equal(t, "/cont/a%20b", r.Resource)
	require.Equal(t, "x", r.Query.Get("snapshot"))
	require.Equal(t, protocol.Version("2021-12-02"), r.Version)
	require.Equal(t, "r", r.Access.Letters)
	require.Equal(t, "text/x", r.Access.Replaces().ContentType)
	require.Equal(t, http.MethodGet, r.HTTP.Method)
	require.Equal(t, http.Header{"X-Ms-Version": {"2021-12-02"}}, r.HTTP.Header)
	require.Equal(t, "192.0.2.1", r.ClientAddr.Addr().String())
	require.Equal(t, "http", r.Scheme)
	require.NotEmpty(t, r.ID)
	require.False(t, r.At.IsZero())
	require.Equal(t, "https://other.blob.zone.example/cont/a%20b?snapshot=x", s.Shown)

	s = find("http://storage.example:10000/acct/cont/b")
	require.Nil(t, s.Read.Access, "by the key")
	require.Equal(t, http.Header{"X-Ms-Version": {"2021-12-02"}}, s.Read.HTTP.Header, "no signature of ours")
	require.NotNil(t, s.Read.Container, "looked up together with the account")
	s = find("http://storage.example:10000/other/cont/b?" + readSAS(t, "other", "cont", "b", "sv=2012-02-12"))
	require.Equal(t, protocol.Version("2012-02-12"), s.Read.Version, "such a signature decides the version")
	s = find("/acct/cont/b?snapshot=x", "x-ms-version", "2011-08-18")
	require.Equal(t, "/acct/cont/b?snapshot=x", s.Shown)
	require.Equal(t, "/cont/b", s.Read.Resource)
}

// A clone copies from itself alone: with its key, or by a signature. Nothing that it is asked for leaves it.
func TestClonesCopyFromThemselves(t *testing.T) {
	t.Parallel()
	f := newSourceEnd(t, api.Options{Outside: outsideOf(t, outbound.Entry{Host: "elsewhere.example"})})
	_, _, err := f.SourceOf(copyRequest(t), "http://elsewhere.example/cont/b")
	require.NoError(t, err, "what is refused below is there for others")
	const at = "http://storage.example:10000/"
	for uri, want := range map[string]string{
		at + "acct-drill/cont/b": "",
		at + "acct-drill/cont/b?" + readSAS(t, "acct-drill", "cont", "b"): "",
		"http://acct-drill.blob.zone.example/cont/b":                      "",
		at + "acct-drill/cont/b?" + readSAS(t, "acct", "cont", "b"):       "403 CannotVerifyCopySource",
		at + "acct/cont/b": "403 CannotVerifyCopySource",
		at + "acct/cont/b?" + readSAS(t, "acct", "cont", "b"):               "403 CannotVerifyCopySource",
		at + "other-drill/cont/b?" + readSAS(t, "other-drill", "cont", "b"): "403 CannotVerifyCopySource",
		at + "mirror/cont/b?" + readSAS(t, "mirror", "cont", "b"):           "403 CannotVerifyCopySource",
		"http://elsewhere.example/cont/b":                                   "403 CannotVerifyCopySource",
	} {
		s, _, err := f.SourceOf(copyInto(t, "acct-drill", ""), uri)
		require.Equal(t, want, sourceError(err), uri)
		if want == "" {
			require.True(t, s.Read.Clone)
		}
	}
}

// A location reads for a copy what it would answer a client with: not of an account that another location may have taken
// meanwhile, nor of a copy that is not whole, nor what is on its way, for which the front end asks itself. Whatever node leads it.
//
// Capability: Clients: Sources of copies.
func TestSourceIsReadWhereItIsServed(t *testing.T) {
	t.Parallel()
	const mine = "http://storage.example:10000/acct/cont/b"
	mirror := "http://storage.example:10000/mirror-secondary/cont/b?" + readSAS(t, "mirror", "cont", "b")
	never := func(*catalog.Account) bool { return false }
	always := func(*catalog.Account) bool { return true }
	partly := func(context.Context, *catalog.Account, geo.Service) (bool, error) { return false, nil }
	for name, c := range map[string]struct {
		o     api.Options
		uri   string
		want  string
		do    bool
		stale bool
	}{
		"led here":            {api.Options{Leader: ledHere}, mine, "", false, false},
		"led elsewhere":       {api.Options{Leader: ledBy("http://127.0.0.1:1")}, mine, "", false, false},
		"not led":             {api.Options{Leader: ledNowhere}, mine, "", false, false},
		"up to date":          {api.Options{Authority: authority{upToDate: always, passed: never}}, mine, "", false, false},
		"perhaps not":         {api.Options{Authority: authority{upToDate: never, passed: never}}, mine, "", false, true},
		"passed":              {api.Options{Authority: authority{upToDate: never, passed: always}}, mine, "503 CannotVerifyCopySource", false, false},
		"passed, a secondary": {api.Options{Authority: authority{upToDate: never, passed: always}}, mirror, "", false, false},
		"not whole":           {api.Options{Authority: authority{whole: partly}}, mirror, "503 CannotVerifyCopySource", false, false},
		"not whole, primary":  {api.Options{Authority: authority{whole: partly}}, mine, "", false, false},
		"on its way":          {api.Options{Directory: offeredDirectory{sourceAccounts()}}, mine, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSourceEnd(t, c.o)
			s, stale, err := f.SourceOf(copyRequest(t), c.uri)
			require.Equal(t, c.want, sourceError(err), "%v", err)
			require.Equal(t, c.do, s != nil && s.Do != nil)
			require.Equal(t, c.stale, stale)
		})
	}
}

// What is authorized and what is sent are one URL: if the two parsers differed in its scheme, host, path or query, a read that
// nobody may send would be sent.
func TestParsersOfSourcesAgree(t *testing.T) {
	t.Parallel()
	const uri = "http://storage.example:10000/acct/cont/a%2Fb?snapshot=x"
	of, err := protocol.ParseTarget(geo.Blob, "", "", uri)
	require.NoError(t, err)
	u, err := api.URLOf(of, uri)
	require.NoError(t, err)
	require.Equal(t, uri, u.String())
	for _, other := range []string{
		"https" + strings.TrimPrefix(uri, "http"), "http://storage.example/acct/cont/a%2Fb?snapshot=x",
		"http://evil.example:10000/acct/cont/a%2Fb?snapshot=x", "http://storage.example:10000/acct/cont/a/b?snapshot=x",
		"http://storage.example:10000/acct/cont/a%2Fb?snapshot=xy", "http://storage.example:10000/acct/cont/a%2Fb",
	} {
		_, err := api.URLOf(of, other)
		require.Error(t, err, other)
	}
	const host = "https://acct.blob.zone.example"
	of, err = protocol.ParseTarget(geo.Blob, "", "", host, "zone.example")
	require.NoError(t, err)
	_, err = api.URLOf(of, host)
	require.NoError(t, err, "a URL without a path has /")
}
