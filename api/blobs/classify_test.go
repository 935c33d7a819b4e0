package blobs

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
)

// Every operation that a request can be routed to declares its effect.
func TestRoutesDeclareTheirEffect(t *testing.T) {
	for _, table := range []routes{accountRoutes, containerRoutes, blobRoutes, informationRoutes} {
		for _, verbs := range table {
			for _, name := range verbs {
				require.Equal(t, name, operation.Named(geo.Blob, name).Name)
			}
		}
	}
	for request, want := range map[[2]string]string{
		{http.MethodGet, "/c/b"}:                 opGetBlob,
		{http.MethodPut, "/c/b"}:                 opPutBlob,
		{http.MethodPost, "/c/b"}:                operation.Unknown,
		{http.MethodGet, "/c/%zz"}:               operation.Unknown,
		{http.MethodPut, "/c?restype=container"}: opCreateContainer,
	} {
		hr := httptest.NewRequest(request[0], "/", nil)
		r := &protocol.Request{HTTP: hr}
		r.Service = geo.Blob
		r.Resource = request[1]
		if len(r.Resource) > 3 && r.Resource[2] == '?' {
			r.Resource, r.Query = "/c", protocol.Query{{Name: "restype", Value: "container"}}
		}
		require.Equal(t, want, Lookup(r).Name, request)
	}
}
