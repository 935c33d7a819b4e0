package api_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
	"antipode/services/catalog"
)

// offering is a directory whose account acct is offered to the other location.
type offering struct {
	// asked gets a value when a request that waits asks again, and then waits for goOn.
	asked, goOn chan struct{}
	first, here atomic.Bool
}

// Resolve implements api.Directory.
func (d *offering) Resolve(ctx context.Context, name geo.Account, s geo.Service, c func(*catalog.Account) string) (*catalog.Account, *catalog.Found, []catalog.CORSRule, error) {
	a, found, rules, err := directory{"acct": "north", "other": "north"}.Resolve(ctx, name, s, c)
	if name != "acct" || d.here.Load() {
		return a, found, rules, err
	}
	a.Operation = &catalog.Operation{Kind: catalog.OperationMove, Move: catalog.Move{Phase: catalog.MoveOffered}}
	if !d.first.CompareAndSwap(true, false) {
		d.asked <- struct{}{}
		<-d.goOn
	}
	return a, found, rules, err
}

// R19: requests that wait for the failover of their account count as its requests, so that one which stays on its way does not
// keep those of others out; what is not signed is refused and does not wait.
func TestR19WaitingRequestsAreBounded(t *testing.T) {
	t.Parallel()
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	d := &offering{asked: make(chan struct{}), goOn: make(chan struct{})}
	f := newFrontEnd(t, api.Options{Location: "north", Leader: ledBy(leader), RequestsMax: 8, Directory: d})
	h := f.Handler(geo.Table)
	get := func(account string, authorized bool) int {
		r := signed(t, http.MethodGet, "http://127.0.0.1/"+account+"/things()", nil)
		if r.RequestURI = "/" + account + "/things()"; !authorized {
			r.Header.Set("Authorization", "SharedKeyLite "+account+":aaaa")
		}
		return record(h, r).Code
	}
	d.first.Store(true)
	require.Equal(t, http.StatusForbidden, get("acct", false))
	f.requireCounted(t, "Unknown 403")
	done := make(chan int)
	for range 2 {
		d.first.Store(true)
		go func() { done <- get("acct", true) }()
		<-d.asked
	}
	d.first.Store(true)
	require.Equal(t, http.StatusServiceUnavailable, get("acct", true))
	f.requireCounted(t, "TooManyRequestsOfAccount 503")
	require.Equal(t, http.StatusNoContent, get("other", true))
	f.requireCounted(t)
	d.here.Store(true)
	close(d.goOn)
	for range 2 {
		require.Equal(t, http.StatusNoContent, <-done)
	}
}
