package tables

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A batch and its parts are checked in the order in which a request is (8.2): path and verb
// before media types, media types before the length of the body, $top before $filter.
func TestPartsAreCheckedAsRequestsAre(t *testing.T) {
	r := newRig(t)
	const (
		notImplemented = "501 NotImplemented 0:The requested operation is not implemented on the specified resource."
		notAllowed     = "405 MethodNotAllowed 0:The requested method is not allowed on the specified resource."
		badPart        = "400 InvalidInput 0:One of the request inputs is not valid."
	)
	before := r.state()
	for _, tc := range []struct{ request, want string }{
		{set(op("POST", "Tables", `{"TableName":"made"}`, "Accept: image/png")), badPart},
		{set(op("POST", key("p", "r"), `{}`, "Accept: image/png")), notAllowed},
		{set(op("POST", "tbl?comp=acl", `{}`, "Accept: image/png")), badPart},
		{set(op("GET", key("p", "r"), "", "Accept: image/png")), badPart},
		{single(op("GET", "Tables('tbl')", "", "Accept: image/png")), badPart},
		{single(op("GET", "tbl()?$orderby=v&$filter=aaa%20bbb%20ccc", "")), notImplemented},
		{single(op("GET", "tbl()?$top=x&$filter=a%20eq%20b", "")), badPart},
		{single(op("GET", "tbl()?$skip=1", "")) + single(op("GET", "tbl()", "")), notImplemented},
		{single(op("GET", key("p", "r")+"?$select=a%FF", "")) + single(op("GET", "tbl()", "")), badPart},
	} {
		require.Equal(t, []string{tc.want}, r.parts(r.batch(tc.request+end)), tc.request)
	}
	large := strings.Repeat("x", bodyMax+1)
	require.Equal(t, badInput, r.outcome(r.batch(large, "Content-Type", "application/json")))
	require.Equal(t, badInput, r.outcome(r.batch(large, "Content-Type", "multipart/mixed", "Content-MD5", "?")))
	a := r.batch(large, "Content-MD5", "?")
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Equal(t, "InvalidMd5", a.header.Get("x-ms-error-code"))
	require.Equal(t, before, r.state())
}
