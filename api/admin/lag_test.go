package admin

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A query for a lag is checked before anybody is asked, and a port of a location asks for that alone.
func TestLagQuery(t *testing.T) {
	f := newFake()
	get := func(path string, q url.Values) int {
		return send(f, Options{Location: south}, request(http.MethodGet, path+"?"+q.Encode(), nil)).Code
	}
	for _, q := range []url.Values{
		{"service": {"file"}},
		{"service": {"catalog"}},
		{"partition": {"people/smith"}},
		{"service": {"table"}, "partition": {"people"}},
		{"service": {"blob"}, "partition": {"photos/"}},
		{"service": {"blob"}, "partition": {"/cat.jpg"}},
		{"service": {"queue"}, "partition": {"jobs"}},
	} {
		require.Equal(t, http.StatusBadRequest, get("/v1/accounts/pictures/lag", q), "%v", q)
	}
	require.Equal(t, http.StatusNotFound, get("/v1/accounts/No/lag", nil))
	require.Empty(t, f.asked)
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/lag", url.Values{"service": {"table"}, "partition": {"people/"}}))
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/flow", nil))
	require.Equal(t, http.StatusOK, get("/v1/accounts/pictures/why", url.Values{"threshold": {"2.5"}}))
	for _, threshold := range []string{"0", "-1", "1s", "NaN", "Inf"} {
		require.Equal(t, http.StatusBadRequest, get("/v1/accounts/pictures/why", url.Values{"threshold": {threshold}}), threshold)
	}
	require.Equal(t, []string{"lag pictures {Service:table Partition:people/} " + string(south), "flows pictures " + string(south), "why pictures 2.5s " + string(south)}, f.asked)
}
