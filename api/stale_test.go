package api_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/services/catalog"
)

// R21: a process that stood still between the commit of a write and its answer, so long that its epochs are not confirmed
// any more, gives no answer: the commit may be one that is lost. A refusal of the server and a read are answered.
//
// Capability: Failover: SIGSTOP of the old primary across a promotion, with processes (R21).
func TestR21AnswerBehindAPauseIsBrokenOff(t *testing.T) {
	t.Parallel()
	var paused, passed atomic.Bool
	status := http.StatusNoContent
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		paused.Store(true) // When this has committed.
		w.WriteHeader(status)
	})
	f := startFrontEnd(t, api.Options{
		Location: "north", Leader: ledBy(leader), Authority: authority{
			upToDate: func(*catalog.Account) bool { return !paused.Load() },
			passed:   func(*catalog.Account) bool { return passed.Load() },
		},
	})
	ask := func(method string) (*http.Response, error) {
		paused.Store(false)
		r := signed(t, method, f.url+insert, strings.NewReader(`{"PartitionKey":"p","RowKey":"r"}`))
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := transport.RoundTrip(r)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		return resp, err
	}
	for _, status = range []int{http.StatusNoContent, http.StatusConflict} {
		_, err := ask(http.MethodPost) //nolint:bodyclose // It is closed where there is one.
		require.Error(t, err, status)
	}
	passed.Store(true) // The account has moved as planned, and its new primary has answered.
	status = http.StatusNoContent
	resp, err := ask(http.MethodPost) //nolint:bodyclose // It is closed.
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	passed.Store(false)
	status = http.StatusServiceUnavailable
	resp, err = ask(http.MethodPost) //nolint:bodyclose // It is closed.
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	status = http.StatusOK
	resp, err = ask(http.MethodGet) //nolint:bodyclose // It is closed.
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	// What was never confirmed is left to the leader, which looks, too.
	paused.Store(true)
	status = http.StatusNoContent
	r := signed(t, http.MethodPost, f.url+insert, strings.NewReader(`{"PartitionKey":"p","RowKey":"r"}`))
	require.Equal(t, http.StatusNoContent, send(t, r).status)
}
