package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/api/auth"
	"antipode/geo"
	"antipode/internal/clock"
)

// A signature of one operation is none of another, with whatever copies of the parameters it is sent: a name that
// stands twice is refused by every scheme, without a signature and in a batch, and nothing is done.
func TestSignatureIsNotMoved(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	part := func(target string) string {
		return "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
			"GET " + rig.urls[geo.Table] + target + " HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--b--\r\n"
	}
	rig.want(t, queue("POST /acct/que/messages", "<QueueMessage><MessageText>x</MessageText></QueueMessage>"), 201, "")
	for _, c := range []struct {
		service      geo.Service
		method       string
		signed, sent string
	}{
		{geo.Blob, "GET", "/acct/cont/there?comp=metadata", "/acct/cont/there?comp=&comp=metadata"},
		{geo.Blob, "GET", "/acct/cont/there?comp=metadata", "/acct/cont/there?COMP&comp=metadata"},
		{geo.Blob, "GET", "/acct/cont/there?comp=metadata", "/acct/cont/there?%63omp=&comp=metadata&comp"},
		{geo.Blob, "GET", "/acct/cont?restype=container&comp=list&prefix=b,zz", "/acct/cont?restype=container&comp=list&prefix=b&prefix=zz"},
		{geo.Blob, "GET", "/acct/cont?restype=container&comp=list&prefix=b,b", "/acct/cont?restype=container&comp=list&prefix=b&prefix=b"},
		{geo.Blob, "DELETE", "/acct/cont/there?comp=immutabilitypolicies", "/acct/cont/there?comp=&comp=immutabilitypolicies"},
		{geo.Queue, "GET", "/acct/que/messages?peekonly=true", "/acct/que/messages?peekonly=&peekonly=true"},
		{geo.Table, "GET", "/acct/tbl?comp=acl", "/acct/tbl?comp=&comp=acl"},
	} {
		for name, sign := range signers {
			r := moved(t, sign, c.service, c.method, rig.urls[c.service]+c.signed, rig.urls[c.service]+c.sent)
			a := send(t, r)
			require.Equal(t, 400, a.status, "%s of %s sent as %s: %s", name, c.signed, c.sent, a.body)
			require.Equal(t, "InvalidQueryParameterValue", a.code)
		}
	}
	rig.want(t, blob("GET /acct/cont/there?comp=&comp=metadata", "").by(ofContainer+"r"), 400, "InvalidQueryParameterValue")
	rig.want(t, queue("GET /acct/que/messages?peekonly=&peekonly=true", "").by(ofQueue+"rp"), 400, "InvalidQueryParameterValue")
	anonymous, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rig.urls[geo.Blob]+"/acct/cont/there?comp=metadata&comp=", nil)
	require.NoError(t, err)
	require.Equal(t, "InvalidQueryParameterValue", send(t, anonymous).code)
	batched := rig.want(t, table("POST /acct/$batch", part(entityTo+"?$format=&$format=application/json"), "Content-Type", batchType), 202, "")
	require.Contains(t, batched.body, "InvalidQueryParameterValue")

	rig.want(t, blob("GET /acct/cont/there", ""), 200, "")
	require.Contains(t, rig.want(t, queue("GET /acct/que/messages?peekonly=true", ""), 200, "").body, "<DequeueCount>0<")
	// What a client may do: a list in two parameters, and empty ones that it left out of the string.
	rig.want(t, blob("GET /acct/cont?restype=container&comp=list&include=metadata&include=copy", ""), 200, "")
	rig.want(t, queue("GET /acct?comp=list&include=metadata&include=metadata", ""), 200, "")
	r := moved(t, auth.Sign, geo.Blob, "GET", rig.urls[geo.Blob]+"/acct/cont?restype=container&comp=list", rig.urls[geo.Blob]+"/acct/cont?restype=container&comp=list&prefix=&marker")
	require.Equal(t, 200, send(t, r).status)
}

// signer signs a request.
type signer = func(*http.Request, geo.Service, geo.Account, []byte, time.Time) error

// signers are the ways to sign with a key.
var signers = map[string]signer{"SharedKey": auth.Sign, "SharedKeyLite": auth.SignSharedKeyLite}

// moved is a request for one URL with the signature of another, of version 2021-12-02.
func moved(t *testing.T, sign signer, s geo.Service, method, signed, sent string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, signed, nil)
	require.NoError(t, err)
	r.Header.Set("x-ms-version", "2021-12-02")
	require.NoError(t, sign(r, s, "acct", key, clock.System{}.Now()))
	r.URL.RawQuery = sent[strings.IndexByte(sent, '?')+1:]
	return r
}

// What is stored is what was signed: a client that signs one space for each run of white space has that stored.
func TestStoredAsSigned(t *testing.T) {
	t.Parallel()
	rig := newResolveRig(t)
	for name, sign := range signers {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, rig.urls[geo.Blob]+"/acct/cont?restype=container&comp=metadata", nil)
		require.NoError(t, err)
		for header, value := range map[string]string{"x-ms-version": "2021-12-02", "x-ms-meta-a": "v w x", "x-ms-meta-b": "y"} {
			r.Header.Set(header, value)
		}
		require.NoError(t, sign(r, geo.Blob, "acct", key, clock.System{}.Now()))
		r.Header.Set("x-ms-meta-a", "v  w \t x")
		require.Equal(t, 200, send(t, r).status, name)
		got := rig.want(t, blob("GET /acct/cont?restype=container", ""), 200, "").header
		require.Equal(t, "v w x", got.Get("x-ms-meta-a"), name)
		rig.want(t, blob("PUT /acct/cont?restype=container&comp=metadata", "", "x-ms-meta-a", "v  w \t x"), 200, "")
		got = rig.want(t, blob("GET /acct/cont?restype=container", ""), 200, "").header
		require.Equal(t, "v  w \t x", got.Get("x-ms-meta-a"), "signed as it is stored")
	}
}
