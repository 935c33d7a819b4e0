package tables

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/tables"
)

// Get and Set Table ACL (protocol/table.md 9.3): what is set is got in the stored form, by HEAD too; faults are faults of
// the document and change nothing; nothing at all clears.
func TestACL(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const acl, none = "/acct/TBL?comp=acl", "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers />"
	get := func() string {
		a := r.do(http.MethodGet, acl, "")
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.Equal(t, "application/xml", a.header.Get("Content-Type"))
		head := r.do(http.MethodHead, acl, "")
		require.Equal(t, http.StatusOK, head.status)
		require.Equal(t, a.header.Get("Content-Length"), head.header.Get("Content-Length"))
		return a.body
	}
	policy := func(inner string) string {
		return "<SignedIdentifiers><SignedIdentifier>" + inner + "</SignedIdentifier></SignedIdentifiers>"
	}
	require.Equal(t, none, get())
	// The elements may come in any order, and a policy may be but a name.
	set := "<SignedIdentifiers><SignedIdentifier><AccessPolicy><Permission>dr</Permission><Expiry>2030-01-02T03:04Z</Expiry>" +
		"<Start>2020-01-01</Start></AccessPolicy><Id>one</Id></SignedIdentifier><SignedIdentifier><Id>two</Id></SignedIdentifier></SignedIdentifiers>"
	a := r.do(http.MethodPut, acl, set, "Content-Type", "application/xml")
	require.Equal(t, http.StatusNoContent, a.status, a.body)
	require.Empty(t, a.body)
	kept := get()
	require.Contains(t, kept, "<Id>one</Id><AccessPolicy><Start>2020-01-01T00:00:00.0000000Z</Start>"+
		"<Expiry>2030-01-02T03:04:00.0000000Z</Expiry><Permission>dr</Permission></AccessPolicy>")
	require.Contains(t, kept, "<Id>two</Id>")
	for body, status := range map[string]int{
		"<": 400, "<Others />": 400, policy(""): 400, policy("<Id></Id>"): 400, policy("<Id>" + strings.Repeat("x", 65) + "</Id>"): 400,
		policy("<Id>a</Id><AccessPolicy><Start>2020-01-01T00:00:00.123456789Z</Start></AccessPolicy>"): 400,
		policy("<Id>a</Id><AccessPolicy><Permission>rw</Permission></AccessPolicy>"):                   400,
		policy("<Id>a</Id><AccessPolicy><Permission>rr</Permission></AccessPolicy>"):                   400,
		policy("<Id>a</Id></SignedIdentifier><SignedIdentifier><Id>a</Id>"):                            400,
	} {
		before := r.state()
		a := r.do(http.MethodPut, acl, body, "Content-Type", "application/xml")
		require.Equal(t, status, a.status, body)
		require.Equal(t, "InvalidXmlDocument", a.header.Get("x-ms-error-code"), body)
		require.Equal(t, before, r.state(), body)
	}
	require.Equal(t, kept, get())
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		a := r.do(method, "/acct/none?comp=acl", "")
		require.Equal(t, http.StatusNotFound, a.status)
		require.Equal(t, "TableNotFound", a.header.Get("x-ms-error-code"))
		a = r.do(method, acl, "", "x-ms-version", "2011-08-18")
		require.Equal(t, http.StatusBadRequest, a.status)
	}
	for _, nothing := range []string{"", "<SignedIdentifiers />"} {
		require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, acl, set).status)
		require.Equal(t, http.StatusNoContent, r.do(http.MethodPut, acl, nothing).status)
		require.Equal(t, none, get())
	}
	require.Equal(t, []string{}, r.rows("tbl"))
}

// Both ends are inside, an empty ToRK is the whole partition, and keys compare as tables order them.
func TestKeyRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys     tables.KeyRange
		pk, rk   string
		isInside bool
	}{
		{tables.KeyRange{Open: true}, "", "", true},
		{tables.KeyRange{FromPK: "b", FromRK: "2", Open: true}, "b", "2", true},
		{tables.KeyRange{FromPK: "b", FromRK: "2", Open: true}, "b", "1", false},
		{tables.KeyRange{FromPK: "b", FromRK: "2", Open: true}, "c", "", true},
		{tables.KeyRange{FromPK: "b", Open: true}, "a", "9", false},
		{tables.KeyRange{ToPK: "b"}, "b", "9", true},
		{tables.KeyRange{ToPK: "b"}, "c", "", false},
		{tables.KeyRange{ToPK: "b", ToRK: "2"}, "b", "2", true},
		{tables.KeyRange{ToPK: "b", ToRK: "2"}, "b", "3", false},
		{tables.KeyRange{ToPK: "b", ToRK: "2"}, "a", "3", true},
		{tables.KeyRange{FromPK: "\U00010000", ToPK: "\ue000"}, "\U00010001", "", true},
	} {
		require.Equal(t, c.isInside, reachOf(&c.keys).Contains(c.pk, c.rk), "%+v %q %q", c.keys, c.pk, c.rk)
	}
}
