package blobs

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Get and Set Container ACL (protocol/blob.md C5, C6): letters are stored in their order, the tag changes with them, and
// what is refused changes nothing.
func TestACL(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const acl, none = "/cont?restype=container&comp=acl", `<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers />`
	policy := func(letters string) []byte {
		return []byte("<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>" + letters +
			"</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>")
	}
	before := r.get(acl)
	require.Equal(t, none, string(before.body))
	set := r.do(http.MethodPut, acl, policy("ldwr"))
	require.Equal(t, http.StatusOK, set.status, string(set.body))
	after := r.get(acl)
	require.Contains(t, string(after.body), "<Id>p</Id><AccessPolicy><Permission>rwdl</Permission></AccessPolicy>")
	require.Equal(t, set.header.Get("ETag"), after.header.Get("ETag"))
	require.NotEqual(t, before.header.Get("ETag"), after.header.Get("ETag"))
	for _, c := range []struct {
		body   []byte
		header []string
		status int
		code   string
	}{
		{policy("rr"), nil, 400, "InvalidXmlNodeValue"},
		{policy("rz"), nil, 400, "InvalidXmlNodeValue"},
		{[]byte("<"), nil, 400, "InvalidXmlDocument"},
		{policy("r"), []string{"x-ms-blob-public-access", "blob"}, 409, "PublicAccessNotPermitted"},
		{policy("r"), []string{"x-ms-blob-public-access", "blob", "x-ms-lease-id", "k"}, 400, "InvalidHeaderValue"},
		{policy("r"), []string{"If-Unmodified-Since", "Wed, 23 Oct 2013 22:05:54 GMT"}, 412, "ConditionNotMet"},
		{policy("r"), []string{"If-Match", "*"}, 400, "ConditionHeadersNotSupported"},
		{policy("r"), []string{"x-ms-lease-id", "00000000-0000-4000-8000-000000000001"}, 412, "LeaseNotPresentWithContainerOperation"},
	} {
		state := r.state()
		r.requireCode(r.do(http.MethodPut, acl, c.body, c.header...), c.status, c.code)
		require.Equal(t, state, r.state(), c.code)
	}
	r.requireCode(r.get("/none?restype=container&comp=acl"), 404, "ContainerNotFound")
	require.Equal(t, http.StatusOK, r.do(http.MethodPut, acl, nil).status)
	require.Equal(t, none, string(r.get(acl).body))
}
