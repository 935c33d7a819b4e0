package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/geo"
)

// A listener works on so many requests at once, a quarter of them of one account, so that two accounts together leave half
// of them; the others are refused with 503 and Retry-After, and served when those are answered.
func TestRequestsAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	leader := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
		w.WriteHeader(http.StatusNoContent)
	})
	f := newFrontEnd(t, api.Options{
		Location: "north", Leader: ledBy(leader), RequestsMax: 8, Directory: directory{"acct": "north", "other": "north", "third": "north", "fourth": "north", "fifth": "north"},
	})
	h := f.Handler(geo.Table)
	get := func(account string) answer {
		r := signed(t, http.MethodGet, "http://127.0.0.1/"+account+"/things()", nil)
		r.RequestURI = "/" + account + "/things()"
		w := record(h, r)
		return answer{w.Code, w.Header().Get("x-ms-error-code"), w.Header(), w.Body.String()}
	}
	done := make(chan answer)
	begin := func(account string) {
		go func() { done <- get(account) }()
		<-entered
	}
	busy := func(account, op string) {
		a := get(account)
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Equal(t, "ServerBusy", a.code)
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Contains(t, a.body, "odata.error")
		f.requireCounted(t, op+" 503")
	}
	begin("acct")
	begin("acct")
	busy("acct", "TooManyRequestsOfAccount")
	begin("other")
	begin("other")
	busy("other", "TooManyRequestsOfAccount")
	for _, account := range []string{"third", "third", "fourth", "fourth"} {
		begin(account)
	}
	busy("fifth", "TooManyRequests")
	for range 8 {
		leave <- struct{}{}
		require.Equal(t, http.StatusNoContent, (<-done).status)
	}
	f.requireCounted(t)
	begin("acct")
	leave <- struct{}{}
	require.Equal(t, http.StatusNoContent, (<-done).status)
}
