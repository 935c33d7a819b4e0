package tables

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// bodyMax is the longest body of the table service, in bytes (protocol/table.md 4.6).
const bodyMax = 4 << 20

// Every row of the table that is built has a handler, and every handler a row. The calls of
// the service itself are package accounts'.
func TestHandlersAreTheBuiltRows(t *testing.T) {
	t.Parallel()
	built := map[string]bool{}
	for _, o := range operation.Of(geo.Table) {
		if !o.Built || o.On == operation.Service {
			continue
		}
		built[o.Name] = true
		require.NotNil(t, handlers[o.Name], o.Name)
		require.NotNil(t, handlers[o.Name].run, o.Name)
		if o.Body.Kind != operation.None {
			limit := bodyMax
			if o.Body.Kind == operation.XML {
				limit = 256 << 10
			}
			require.EqualValues(t, limit, o.BodyMax(protocol.Newest), o.Name)
		}
	}
	require.Len(t, handlers, len(built))
}

// A POST that stands for another verb writes, whatever it is sent to.
func TestLookup(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"", "/Tables", "/Tables('t')", "/t", "/t()", "/t(PartitionKey='p',RowKey='r')", "/$batch", "/t(", "/%zz"} {
		for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "MERGE", "OPTIONS", "TRACE", "get"} {
			for _, instead := range []string{"", "MERGE", "GET", "DELETE"} {
				for _, query := range []protocol.Query{nil, {{Name: "comp", Value: "acl"}}, {{Name: "comp", Value: "x"}}} {
					hr := httptest.NewRequest(http.MethodGet, "/", nil)
					hr.Method = method
					if instead != "" {
						hr.Header.Set("X-HTTP-Method", instead)
					}
					r := &protocol.Request{HTTP: hr, Query: query}
					r.Resource = resource
					r.Service = geo.Table
					name := Lookup(r).Name
					if Lookup(r).Effect == operation.Reads {
						require.Contains(t, []string{"GET", "HEAD"}, method, "%s %s", name, resource)
						require.True(t, instead == "" || query != nil)
					}
				}
			}
		}
	}
}

// The error of a request that is none of the operations has the metadata level that the client
// asks of documents. What is wrong with the request goes before a type that is not served.
func TestErrorOfNoOperationHasTheLevelAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const row = "/acct/tbl(PartitionKey='p',RowKey='r')"
	for _, q := range []struct {
		method, target, instead string
		status                  int
	}{
		{"TRACE", "/acct/tbl", "", http.StatusBadRequest},
		{"FOO", "/acct/$batch", "", http.StatusBadRequest},
		{"POST", "/acct/tbl", "GET", http.StatusBadRequest},
		{"PUT", row, "MERGE", http.StatusBadRequest},
		{"GET", "/acct/", "", http.StatusBadRequest},
		{"GET", "/acct/tbl?comp=list", "", http.StatusBadRequest},
	} {
		for accept, level := range map[string]string{
			"application/json;odata=fullmetadata": "fullmetadata", "application/json;odata=nometadata": "nometadata",
			"application/json": "minimalmetadata", "": "minimalmetadata", "application/json;odata=verbose": "minimalmetadata",
		} {
			a := r.do(q.method, q.target, "", "Accept", accept, "X-HTTP-Method", q.instead)
			require.Equal(t, q.status, a.status, "%s %s: %s", q.method, q.target, a.body)
			require.Contains(t, a.header.Get("Content-Type"), "odata="+level+";", "%s %s %s", q.method, q.target, accept)
		}
	}
}
