package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
)

// A gateway sends what a node passed on to the leader of its range to another node the next time, until the leader answers
// itself. Its clients do not learn of that, nor do those of a node.
func TestGatewayFindsTheLeader(t *testing.T) {
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	passed := 0
	node := startFrontEnd(t, api.Options{Location: "north", Leader: func(r geo.RangeID, s geo.Service) (string, bool) {
		passed++
		return ledBy(leader)(r, s)
	}})
	gateway := startFrontEnd(t, api.Options{Locations: []geo.Location{"north"}, Forward: routing.NewForwarder("test",
		func(geo.Location, geo.Service) []string { return []string{host(node.url), host(leader)} }, nil)})
	get := func(url string) {
		a := send(t, signed(t, http.MethodGet, url+"/acct/things()", nil))
		require.Equal(t, http.StatusNoContent, a.status, a.body)
		require.Empty(t, a.header.Get("X-Antipode-Passed-On"))
	}
	get(node.url)
	require.NotZero(t, passed)
	passed = 0
	get(gateway.url)
	require.NotZero(t, passed)
	passed = 0
	for range 3 {
		get(gateway.url)
	}
	require.Zero(t, passed)
}
