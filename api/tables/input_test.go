package tables

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// A batch and its parts are checked in the order in which a request is (8.2): path and verb
// before media types, media types before the length of the body, $top before $filter.
//
// Capability: The house: A request is read once.
func TestPartsAreCheckedAsRequestsAre(t *testing.T) {
	t.Parallel()
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

// busy is a stamp whose range of entities refuses all reads and writes.
type busy struct {
	Stamp
	services.Writer
}

// Read implements ranges.Reader.
func (b busy) Read(ctx context.Context, r geo.RangeID, f func(ranges.State) error) error {
	if r == geo.FirstRange(geo.Table) {
		return storageerr.ServerBusy
	}
	return b.Stamp.Read(ctx, r, f)
}

// Write implements services.Writer.
func (busy) Write(context.Context, services.Write) error { return storageerr.ServerBusy }

// A failure after the table was found forbids caches, as a success does, whatever was asked
// for; a missing table is an early failure (3).
func TestLateFailuresForbidCaches(t *testing.T) {
	t.Parallel()
	r := newRig(t).with(func(h *Handler) {
		b := busy{h.Stamp, h.Writer}
		h.Stamp, h.Writer = b, b
	})
	entity := `{"PartitionKey":"p","RowKey":"r"}`
	for _, a := range []received{
		r.do(http.MethodGet, "/acct/tbl()", ""), r.do(http.MethodGet, "/acct/"+key("p", "r"), ""),
		r.do(http.MethodPost, "/acct/tbl", entity), r.do(http.MethodPut, "/acct/"+key("p", "r"), entity),
		r.batch(set(insert("p", "r", "x")) + end), r.batch(single(op("GET", key("p", "r"), "")) + end),
	} {
		require.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
		require.Equal(t, "no-cache", a.header.Get("Cache-Control"), "%s %s", a.request.Method, a.request.URL)
	}
	a := r.do(http.MethodGet, "/acct/nosuch()", "")
	require.Equal(t, http.StatusNotFound, a.status)
	require.Empty(t, a.header.Get("Cache-Control"))
}

// $select came with 2011-08-18: before, a client that sends it is refused, not answered with all
// properties (11.4).
func TestSelectSince(t *testing.T) {
	t.Parallel()
	query, err := protocol.ParseQuery("$select=a")
	require.NoError(t, err)
	for version, want := range map[protocol.Version]error{
		protocol.Version20090919: storageerr.InvalidInput, protocol.Version20110818: nil, protocol.Version20190202: nil,
	} {
		in := input{row: &operation.Operation{}, handler: &handler{options: (*options).ofEntity}}
		require.Equal(t, want, in.parse(version, source{header: http.Header{}, query: query}), version)
	}
}
