package tables

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	operations "antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// Every operation that a request can be routed to declares its effect; a POST that stands
// for another verb writes.
func TestRoutesDeclareTheirEffect(t *testing.T) {
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
					if Lookup(r).Effect == operations.Reads {
						require.Contains(t, []string{"GET", "HEAD"}, method, "%s %s", name, resource)
						require.True(t, instead == "" || query != nil)
					}
				}
			}
		}
	}
}
