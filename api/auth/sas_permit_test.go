package auth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// used is a request that a signature is tried on.
type used struct {
	service geo.Service
	// query is that of the signature, without sig.
	query     string
	operation string
	on        Resource
	at        string
	client    string
	https     bool
	headers   []string
	policies  []catalog.Policy
}

const sasNow = "2024-06-01T00:00:00Z"

// permit is what the signature permits in the request.
func (u used) permit(t *testing.T) (*protocol.Access, error) {
	t.Helper()
	q, err := protocol.ParseQuery(u.query)
	require.NoError(t, err)
	target := protocol.Target{Service: u.service, Account: testAccount}
	s, err := ParseSAS(target, u.on, q)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339Nano, sasNow)
	if u.at != "" {
		at, err = time.Parse(time.RFC3339Nano, u.at)
	}
	require.NoError(t, err)
	r := &protocol.Request{
		HTTP: httptest.NewRequest(http.MethodGet, "/", nil), Target: target, Query: q, At: at, Scheme: "http",
		ClientAddr: netip.MustParseAddrPort("10.0.0.5:1234"),
	}
	if u.client != "" {
		r.ClientAddr = netip.MustParseAddrPort(u.client)
	}
	if u.https {
		r.Scheme = "https"
	}
	for i := 0; i+1 < len(u.headers); i += 2 {
		r.HTTP.Header.Set(u.headers[i], u.headers[i+1])
	}
	return s.Permit(Use{Request: r, Operation: operation.Named(u.service, u.operation), Policies: u.policies})
}

// The refusals of protocol/auth.md 22 and 23, each with what is just permitted beside it.
//
// Capability: Clients: Shared access signatures.
func TestPermit(t *testing.T) {
	const (
		queue   = "sv=2020-02-10&sp=r&se=2024-06-01T00:00:01Z"
		account = "sv=2019-02-02&ss=q&srt=o&sp=r&se=2024-06-02"
		table   = "sv=2019-02-02&tn=T&se=2024-06-02&sp="
		blob    = "sv=2024-08-04&sr=c&se=2024-06-02&sp="
		ok      = ""
	)
	myqueue := Resource{Container: "myqueue"}
	for _, c := range []struct {
		name string
		use  used
		want string // the code; empty for permitted
	}{
		{"before se", used{geo.Queue, queue, "PeekMessages", myqueue, "2024-06-01T00:00:00.9999999Z", "", false, nil, nil}, ok},
		{"at se", used{geo.Queue, queue, "PeekMessages", myqueue, "2024-06-01T00:00:01Z", "", false, nil, nil}, "AuthenticationFailed"},
		{"at st", used{geo.Queue, queue + "&st=2024-06-01T00:00Z", "PeekMessages", myqueue, "", "", false, nil, nil}, ok},
		{"before st", used{geo.Queue, queue + "&st=2024-06-01T00:00:00.0000001Z", "PeekMessages", myqueue, "", "", false, nil, nil}, "AuthenticationFailed"},
		{"letter", used{geo.Queue, queue, "PutMessage", myqueue, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"old letter", used{geo.Queue, "sv=2014-02-14&sp=r&se=2024-06-02", "PutMessage", myqueue, "", "", false, nil, nil}, "ResourceNotFound"},
		{"never", used{geo.Queue, queue, "ClearMessages", myqueue, "", "", false, nil, nil}, "AuthorizationFailure"},
		{"metadata", used{geo.Queue, queue, "GetQueueMetadata", myqueue, "", "", false, nil, nil}, ok},
		{"https", used{geo.Queue, queue + "&spr=https", "PeekMessages", myqueue, "", "", true, nil, nil}, ok},
		{"http", used{geo.Queue, queue + "&spr=https", "PutMessage", myqueue, "", "1.2.3.4:1", false, nil, nil}, "AuthorizationProtocolMismatch"},
		{"both", used{geo.Queue, queue + "&spr=https,http", "PeekMessages", myqueue, "", "", false, nil, nil}, ok},
		{"first address", used{geo.Queue, queue + "&sip=10.0.0.5-10.0.0.9", "PeekMessages", myqueue, "", "", false, nil, nil}, ok},
		{"last address", used{geo.Queue, queue + "&sip=10.0.0.1-10.0.0.5", "PeekMessages", myqueue, "", "[::ffff:10.0.0.5]:1", false, nil, nil}, ok},
		{"the address", used{geo.Queue, queue + "&sip=10.0.0.5", "PeekMessages", myqueue, "", "", false, nil, nil}, ok},
		{"below", used{geo.Queue, queue + "&sip=10.0.0.6-10.0.0.9", "PutMessage", myqueue, "", "", false, nil, nil}, "AuthorizationSourceIPMismatch"},
		{"above", used{geo.Queue, queue + "&sip=10.0.0.1-10.0.0.4", "PeekMessages", myqueue, "", "", false, nil, nil}, "AuthorizationSourceIPMismatch"},
		{"v6", used{geo.Queue, queue + "&sip=0.0.0.0-255.255.255.255", "PeekMessages", myqueue, "", "[::1]:1", false, nil, nil}, "AuthorizationSourceIPMismatch"},
		{"account", used{geo.Queue, account, "PeekMessages", myqueue, "", "", false, nil, nil}, ok},
		{"its service", used{geo.Table, account, "DeleteTable", Resource{}, "", "", false, nil, nil}, "AuthorizationServiceMismatch"},
		{"its type", used{geo.Queue, account, "ListQueues", Resource{}, "", "", false, nil, nil}, "AuthorizationResourceTypeMismatch"},
		{"its letter", used{geo.Queue, account, "PutMessage", myqueue, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"its never", used{geo.Queue, account, "GetQueueACL", myqueue, "", "", false, nil, nil}, "AuthorizationFailure"},
		{"emulator's type", used{geo.Queue, "sv=2019-02-02&ss=q&srt=c&sp=d&se=2024-06-02", "ClearMessages", myqueue, "", "", false, nil, nil}, ok},
		{"update", used{geo.Table, table + "u", "UpdateEntity", Resource{"t", ""}, "", "", false, []string{"If-Match", "*"}, nil}, ok},
		{"upsert with u", used{geo.Table, table + "u", "UpdateEntity", Resource{"t", ""}, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"upsert with a", used{geo.Table, table + "a", "MergeEntity", Resource{"t", ""}, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"upsert with both", used{geo.Table, table + "ua", "MergeEntity", Resource{"t", ""}, "", "", false, nil, nil}, ok},
		{"old table", used{geo.Table, "sv=2014-02-14&tn=t&sp=r&se=2025-01-01", "DeleteEntity", Resource{"t", ""}, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"tables", used{geo.Table, table + "r", "QueryTables", Resource{}, "", "", false, nil, nil}, "AuthorizationFailure"},
		{"batch", used{geo.Table, table + "r", "EntityGroupTransaction", Resource{}, "", "", false, nil, nil}, ok},
		{"no operation", used{geo.Table, table + "r", "None", Resource{}, "", "", false, nil, nil}, ok},
		{"put by c", used{geo.Blob, blob + "c", "PutBlob", Resource{"c", "b"}, "", "", false, nil, nil}, ok},
		{"list", used{geo.Blob, blob + "l", "ListBlobs", Resource{"c", ""}, "", "", false, nil, nil}, ok},
		{"list by r", used{geo.Blob, blob + "r", "ListBlobs", Resource{"c", ""}, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"container", used{geo.Blob, blob + "rwdl", "DeleteContainer", Resource{"c", ""}, "", "", false, nil, nil}, "AuthorizationFailure"},
		{"delete by d", used{geo.Blob, blob + "d", "DeleteBlob", Resource{"c", "b"}, "", "", false, nil, nil}, ok},
		{"delete by x", used{geo.Blob, blob + "x", "DeleteBlob", Resource{"c", "b"}, "", "", false, nil, nil}, "AuthorizationPermissionMismatch"},
		{"version by x", used{geo.Blob, blob + "x&versionid=1", "DeleteBlob", Resource{"c", "b"}, "", "", false, nil, nil}, ok},
		{"read with a scope", used{geo.Blob, blob + "rw&ses=s", "GetBlob", Resource{"c", "b"}, "", "", false, nil, nil}, ok},
		{"write in a scope", used{geo.Blob, blob + "rw&ses=s", "PutBlob", Resource{"c", "b"}, "", "", false, nil, nil}, "NotImplemented"},
		{"no scope of queues", used{geo.Queue, "sv=2024-08-04&sp=a&se=2024-06-02&ses=s", "PutMessage", myqueue, "", "", false, nil, nil}, ok},
		{"an hour", used{geo.Blob, "sr=c&sp=r&st=2024-05-31T23:30:00Z&se=2024-06-01T00:30:00Z", "GetBlob", Resource{"c", "b"}, "", "", false, nil, nil}, ok},
		{"above an hour", used{geo.Blob, "sr=c&sp=r&st=2024-05-31T23:30:00Z&se=2024-06-01T00:30:01Z", "GetBlob", Resource{"c", "b"}, "", "", false, nil, nil}, "AuthenticationFailed"},
		{"an hour from now", used{geo.Blob, "sr=c&sp=r&se=2024-06-01T01:00:01Z", "GetBlob", Resource{"c", "b"}, "", "", false, nil, nil}, "AuthenticationFailed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := c.use.permit(t)
			if c.want == ok {
				require.NoError(t, err)
				require.NotNil(t, a)
				return
			}
			e, known := storageerr.Of(err)
			require.True(t, known, "%v", err)
			require.Equal(t, c.want, e.Code)
		})
	}
	_, err := used{geo.Queue, queue + "&sip=10.0.0.6", "PeekMessages", myqueue, "", "", false, nil, nil}.permit(t)
	require.ErrorContains(t, err, "10.0.0.5.", "the message names the address")
	_, err = used{geo.Queue, queue + "&st=2024-05-01", "PeekMessages", myqueue, "2024-06-01T00:00:01Z", "", false, nil, nil}.permit(t)
	wantFailed(t, err, "Signature not valid in the specified time frame: Start [Wed, 01 May 2024 00:00:00 GMT] - "+
		"Expiry [Sat, 01 Jun 2024 00:00:01 GMT] - Current [Sat, 01 Jun 2024 00:00:01 GMT]")
}

// A field is the signature's or the policy's, and one of them has to have se and sp (protocol/auth.md 18).
//
// Capability: Clients: Shared access signatures.
func TestPolicies(t *testing.T) {
	const past, future = "2024-05-01T00:00:00.0000000Z", "2024-07-01T00:00:00.0000000Z"
	full := catalog.Policy{ID: "p", Start: past, Expiry: future, Permission: "ar"}
	for _, c := range []struct {
		name, query string
		policy      catalog.Policy
		want        string // the detail; empty for permitted
	}{
		{"all of it", "si=p", full, ""},
		{"only an id", "si=p&sp=r&se=2024-06-02&st=2024-05-01", catalog.Policy{ID: "p"}, ""},
		{"its expiry", "si=p&sp=r", catalog.Policy{ID: "p", Expiry: future}, ""},
		{"unknown", "si=P", full, "does not exist"},
		{"both sp", "si=p&sp=r", full, "by its stored access policy"},
		{"both se", "si=p&se=2024-06-02", full, "by its stored access policy"},
		{"both st", "si=p&st=2024-05-02", full, "by its stored access policy"},
		{"no se", "si=p&sp=r", catalog.Policy{ID: "p"}, "se is mandatory. Cannot be empty"},
		{"no sp", "si=p&se=2024-06-02", catalog.Policy{ID: "p"}, "sp is mandatory. Cannot be empty"},
		{"expired", "si=p", catalog.Policy{ID: "p", Expiry: past, Permission: "r"}, "not valid in the specified time frame"},
		{"not yet", "si=p", catalog.Policy{ID: "p", Start: future, Expiry: future, Permission: "r"}, "not valid in the specified time frame"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := used{service: geo.Queue, query: "sv=2020-02-10&" + c.query, operation: "PeekMessages", on: Resource{Container: "q"}}
			u.policies = []catalog.Policy{{ID: "other", Expiry: future, Permission: "r"}, c.policy}
			_, err := u.permit(t)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			wantFailed(t, err, c.want)
		})
	}
	u := used{service: geo.Queue, query: "sv=2020-02-10&si=p", operation: "UpdateMessage", on: Resource{Container: "q"}, policies: []catalog.Policy{full}}
	_, err := u.permit(t)
	require.ErrorIs(t, err, storageerr.PermissionMismatch, "the letters are the policy's")
}

// What is no signature of ours is refused with the reason, before anything is computed.
//
// Capability: Clients: Shared access signatures.
func TestMalformedSAS(t *testing.T) {
	const malformed = "Signature fields not well formed."
	for query, want := range map[string]string{
		"sv=2019-02-02&tn=t&sp=r":                                       "se is mandatory. Cannot be empty",
		"sv=2019-02-02&tn=t&se=2030-01-01":                              "sp is mandatory. Cannot be empty",
		"sv=2019-02-02&sp=r&se=2030-01-01":                              "tn is mandatory. Cannot be empty",
		"tn=t&sp=r&se=2030-01-01":                                       "sv is mandatory. Cannot be empty",
		"sv=2019-02-03&tn=t&sp=r&se=2030-01-01":                         malformed,
		"sv=2011-08-18&tn=t&sp=r&se=2030-01-01":                         malformed,
		"sv=&tn=t&sp=r&se=2030-01-01":                                   malformed,
		"sv=2019-02-02&tn=t&sp=rw&se=2030-01-01":                        malformed,
		"sv=2019-02-02&tn=t&sp=r&se=tomorrow":                           malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&st=2030-1-1":             malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&spr=http":                malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&sip=host":                malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&sip=::1":                 malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&srk=x":                   malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&spk=a&erk=x":             malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&spk=%ff":                 malformed,
		"sv=2019-02-02&tn=t&sp=r%0a&se=2030-01-01":                      malformed,
		"sv=2019-02-02&tn=t&si=p%0ax":                                   malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&spk=a%0ab":               malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&epk=a%00":                malformed,
		"sv=2019-02-02&tn=t&sp=r&se=2030-01-01&rsct=a%0db":              malformed,
		"sv=2014-02-14&ss=t&srt=o&sp=r&se=2030-01-01":                   malformed,
		"sv=2019-02-02&ss=t&srt=&sp=r&se=2030-01-01":                    "srt is mandatory. Cannot be empty",
		"sv=2019-02-02&ss=x&srt=o&sp=r&se=2030-01-01":                   malformed,
		"sv=2019-02-02&ss=t&srt=e&sp=r&se=2030-01-01":                   malformed,
		"sv=2019-02-02&ss=t&srt=o&sp=R&se=2030-01-01":                   malformed,
		"sv=2019-02-02&ss=t&srt=o&sp=r&si=p":                            "se is mandatory. Cannot be empty",
		"sv=2024-08-04&tn=t&sp=r&se=2030-01-01&skoid=x&sktid=x&ske=now": "User delegation signatures are not supported.",
	} {
		q, err := protocol.ParseQuery(query)
		require.NoError(t, err)
		_, err = ParseSAS(protocol.Target{Service: geo.Table, Account: testAccount}, Resource{Container: "t"}, q)
		t.Log(query)
		wantFailed(t, err, want)
	}
	for query, want := range map[string]string{
		"sv=2024-08-04&sp=r&se=2030-01-01":       "sr is mandatory. Cannot be empty",
		"sv=2024-08-04&sr=bv&sp=r&se=2030-01-01": "Signatures of versions and directories are not supported.",
		"sv=2024-08-04&sr=d&sp=r&se=2030-01-01":  "Signatures of versions and directories are not supported.",
	} {
		q, err := protocol.ParseQuery(query)
		require.NoError(t, err)
		_, err = ParseSAS(protocol.Target{Service: geo.Blob, Account: testAccount}, Resource{Container: "c"}, q)
		wantFailed(t, err, want)
	}
	_, err := testVerifier().VerifySAS(protocol.Target{Service: geo.Blob, Account: testAccount}, Resource{"c", "a\nb"},
		signedQuery(t, geo.Blob, Resource{"c", "a\nb"}, "sv=2024-08-04&sr=b&sp=r&se=2030-01-01"), Keys{Key1: testKey(t)})
	wantFailed(t, err, "Signature did not match.")
}

// signedQuery is a query with a right signature.
func signedQuery(t testing.TB, s geo.Service, on Resource, query string) protocol.Query {
	t.Helper()
	params, err := url.ParseQuery(query)
	require.NoError(t, err)
	signed, err := SignSAS(protocol.Target{Service: s, Account: testAccount}, on, params, testKey(t))
	require.NoError(t, err)
	q, err := protocol.ParseQuery(signed)
	require.NoError(t, err)
	return q
}

// The version of protocol/auth.md 14: of the signature, and of what the request does.
//
// Capability: Clients: Shared access signatures.
func TestVersionOfSAS(t *testing.T) {
	for _, c := range []struct {
		service               geo.Service
		query, header, wanted string
	}{
		{geo.Table, "sig=x&sv=2012-02-12", "2019-02-02", "2012-02-12"},
		{geo.Table, "sig=x&sv=2013-08-15&api-version=2019-02-02", "", "2013-08-15"},
		{geo.Table, "sig=x&sv=2014-02-14", "", "2014-02-14"},
		{geo.Table, "sig=x&sv=2014-02-14", "2019-02-02", "2019-02-02"},
		{geo.Table, "sig=x&sv=2014-02-14&api-version=2015-12-11", "2019-02-02", "2015-12-11"},
		{geo.Table, "sig=x&sv=2099-01-01", "", string(protocol.Newest)},
		{geo.Blob, "sig=x&sr=c", "", "2009-09-19"},
		{geo.Blob, "sig=x&sr=c", "2011-08-18", "2011-08-18"},
		{geo.Table, "sig=x&sv=2014-02-15", "", "AuthenticationFailed"},
		{geo.Table, "sig=x&sv=2014-02-14&api-version=1", "", "InvalidQueryParameterValue"},
		{geo.Table, "sig=x&sv=2014-02-14", "1", "InvalidHeaderValue"},
		{geo.Table, "sv=2014-02-14", "2019-02-02", "2019-02-02"},
	} {
		q, err := protocol.ParseQuery(c.query)
		require.NoError(t, err)
		h := http.Header{}
		if c.header != "" {
			h.Set("x-ms-version", c.header)
		}
		version, err := Version(c.service, h, q)
		got := string(version)
		if err != nil {
			e, _ := storageerr.Of(err)
			got = e.Code
		}
		require.Equal(t, c.wanted, got, "%+v", c)
		h.Set("Authorization", "SharedKey a:b")
		h.Set("x-ms-version", "2019-02-02")
		version, err = Version(c.service, h, q)
		require.NoError(t, err)
		require.EqualValues(t, "2019-02-02", version, "the header decides")
	}
}

// Whatever query is sent: it is refused as AuthenticationFailed, or it is a signature whose string can be cut into its
// fields in one way, which verifies with the key that it was made with and with no other.
func FuzzSAS(f *testing.F) {
	for _, v := range sasVectors {
		f.Add(v.query, uint8(v.service-geo.Blob), v.on.Container, v.on.Blob)
	}
	f.Add("sv=2019-02-02&tn=t&sp=r&se=2030-01-01&SP=&sig=+", uint8(geo.Table-geo.Blob), "t", "")
	f.Add("sv=2019-02-02&tn=t&sp=r&se=2030-01-01&spk=a%0ab", uint8(geo.Table-geo.Blob), "t", "")
	f.Fuzz(func(t *testing.T, raw string, service uint8, container, blob string) {
		target := protocol.Target{Service: geo.Blob + geo.Service(service%3), Account: testAccount}
		q, err := protocol.ParseQuery(raw)
		if err != nil {
			return
		}
		on := Resource{container, blob}
		s, err := ParseSAS(target, on, q)
		if err != nil {
			wantFailed(t, err, "")
			return
		}
		text := string(s.appendText(nil, testAccount))
		if cut := strings.Count(text, "\n"); !s.ofAccount && !strings.Contains(container+blob, "\n") {
			require.Equal(t, 4+len(s.tail()), cut, "%q", text)
		}
		var mac [32]byte
		new(macState).sum(&mac, []byte("key"), []byte(text))
		var signed protocol.Query
		for _, p := range q {
			if p.Name != "sig" {
				signed = append(signed, p)
			}
		}
		signed = append(signed, protocol.Param{Name: "sig", Value: encodeSignature(mac)})
		_, err = testVerifier().VerifySAS(target, on, signed, Keys{Key1: []byte("key")})
		if err == nil {
			require.True(t, s.fits())
		} else {
			require.True(t, !s.fits() || strings.Contains(container+blob, "\n"), "%v", err)
		}
		_, err = testVerifier().VerifySAS(target, on, signed, Keys{Key1: []byte("other")})
		wantFailed(t, err, "")
	})
}
