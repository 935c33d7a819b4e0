package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
)

// The failover of a location needs the token and a type, and what does not belong to the type is refused before anybody is
// asked. A port of a location answers for that one alone.
func TestLocationFailover(t *testing.T) {
	f := newFake()
	port := Options{Location: south}
	post := func(body string) int {
		return send(f, port, request(http.MethodPost, "/v1/locations/"+string(south)+"/failover", strings.NewReader(body))).Code
	}
	for _, bad := range []string{
		`{}`, `{"type":"move"}`, `{"type":"planned","to":"northcentralus"}`,
		`{"type":"planned","without_witness":true}`, `{"type":"end","not_taken":true}`, `{"type":"end","within_seconds":3}`,
		`{"type":"planned","within_seconds":-1}`, `{"type":"end","dry_run":true}`,
	} {
		require.Equal(t, http.StatusBadRequest, post(bad), bad)
	}
	require.Equal(t, http.StatusForbidden, send(f, port, request(http.MethodGet, "/v1/locations/"+string(north)+"/failover", nil)).Code)
	require.Empty(t, f.asked)
	for _, good := range []string{
		`{"type":"planned","within_seconds":3}`, `{"type":"planned","dry_run":true}`, `{"type":"unplanned","without_witness":true}`,
		`{"type":"unplanned","dry_run":true}`, `{"type":"end"}`,
	} {
		require.Equal(t, http.StatusOK, post(good), good)
	}
	answer := send(f, port, request(http.MethodGet, "/v1/locations/"+string(south)+"/failover", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	require.JSONEq(t, `{"from":"southcentralus","waiting":0,"moving":{},"moved":3,"alone":0,"refused":0}`, answer.Body.String())
}

// What a port shows of the geo-replication of an account comes from its record and its lag.
func TestGeoReplication(t *testing.T) {
	f := newFake()
	answer := send(f, Options{}, request(http.MethodGet, "/v1/accounts/devstoreaccount1/geo", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	require.Contains(t, answer.Body.String(), `"status_of_primary": "`+wire.LocationAvailable)
	require.Contains(t, answer.Body.String(), `"post_failover_redundancy": "Standard_`)
	require.Equal(t, http.StatusNotFound, send(f, Options{}, request(http.MethodGet, "/v1/accounts/nobody/geo", nil)).Code)
}
