package api_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api"
	"antipode/api/routing"
	"antipode/geo"
)

// A listener works on so many requests at once, a quarter of them of one account, so that two accounts together leave half
// of them; the others are refused with 503 and Retry-After, and served when those are answered. So it is at the location that
// has the accounts, at the other one, and at a gateway.
// It holds invariant 8.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	serving := stub(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
		w.WriteHeader(http.StatusNoContent)
	})
	accounts := directory{"acct": "north", "other": "north", "third": "north", "fourth": "north", "fifth": "north"}
	elsewhere := func() *routing.Forwarder { return routing.NewForwarder("test", at(serving), nil) }
	for name, o := range map[string]api.Options{
		"primary":   {Location: "north", Leader: ledBy(serving), Directory: accounts},
		"secondary": {Location: "south", Forward: elsewhere(), Directory: accounts},
		"gateway":   {Locations: []geo.Location{"north"}, Forward: elsewhere()},
	} {
		t.Run(name, func(t *testing.T) {
			o.RequestsMax = 8
			f := newFrontEnd(t, o)
			requireBounded(t, f, entered, leave)
		})
	}
}

// requireBounded lets a front end for 8 requests have as many, of several accounts.
func requireBounded(t *testing.T, f *frontEnd, entered <-chan struct{}, leave chan<- struct{}) {
	t.Helper()
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
		if t.Name() != "TestRequestsAreBounded/gateway" {
			f.requireCounted(t, op+" 503")
		}
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

// A client that goes on sending what was refused is none of the requests under way, of the listener or of its account: at a
// location, at a gateway, and at a gateway that calls the location.
func TestLingeringUploadsHoldNoPlace(t *testing.T) {
	t.Parallel()
	north := startFrontEnd(t, api.Options{Location: "north", RequestsMax: 4, Leader: ledHere})
	local := func(_ geo.Location, _ geo.Service, w http.ResponseWriter, r *http.Request) bool {
		north.Handler(geo.Table).ServeHTTP(w, r)
		return true
	}
	gateway := func(local routing.Local) *frontEnd {
		return startFrontEnd(t, api.Options{
			Locations: []geo.Location{"north"}, RequestsMax: 4, Local: local, Forward: routing.NewForwarder("test", at(north.url), nil),
		})
	}
	for name, f := range map[string]*frontEnd{"location": north, "gateway": gateway(nil), "calling gateway": gateway(local)} {
		for range 8 {
			w := dialWire(t, f.url)
			_, err := io.WriteString(w, "POST "+insert+" HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: 2021-12-02\r\nContent-Length: 100\r\n\r\n")
			require.NoError(t, err)
			status, code, _ := w.answer(t, http.MethodPost)
			require.Equal(t, "401 NoAuthenticationInformation", fmt.Sprint(status, " ", code), name)
		}
	}
}
