package routing

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services/storageerr"
)

// What a location of this process breaks off before its answer begins may have had an effect, so it is sent nowhere else,
// not by a hop either (R1). A read goes to the next location, once. Whatever it was, the request is the client's afterwards.
func TestLocalAnswerThatBreaksOff(t *testing.T) {
	for method, want := range map[string][]string{http.MethodPut: {"north"}, http.MethodGet: {"north", "south"}} {
		var asked []string
		f := NewForwarder("gateway", func(l geo.Location, _ geo.Service) []string {
			asked = append(asked, "hop to "+string(l))
			return nil
		}, nil).WithSecret("secret")
		var breaks any = http.ErrAbortHandler
		begins := false
		g := NewGateway([]geo.Location{"north", "south"}, nil, func(l geo.Location, _ geo.Service, w http.ResponseWriter, r *http.Request) bool {
			asked = append(asked, string(l))
			require.Equal(t, "gateway", r.Header.Get(gatewayAskHeader))
			require.Equal(t, "secret", r.Header.Get(secretHeader))
			if begins {
				w.WriteHeader(http.StatusOK)
			}
			panic(breaks)
		}, f, unobserved{})
		pass := func() error {
			r := httptest.NewRequest(method, "/acct/things", http.NoBody)
			r.Header.Set("X-Ms-Version", "2019-02-02")
			r.Header.Set(epochHeader, "9@south") // A client's invention.
			sent := r.Header.Clone()
			defer func() { require.Equal(t, sent, r.Header) }()
			return g.Pass(Request{W: httptest.NewRecorder(), R: r, Reads: method == http.MethodGet}, "acct", false)
		}
		require.ErrorIs(t, pass(), storageerr.OperationTimedOut, method)
		require.Equal(t, want, asked)
		begins = true
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { _ = pass() }, "half an answer is not followed by another")
		begins, breaks = false, "a bug"
		require.PanicsWithValue(t, breaks, func() { _ = pass() })
		f.Close()
	}
}

// The answer of a location of this process is the client's as net/http would have made it: 200 unless it says otherwise, with
// the headers of the moment when it begins, and nothing of one that leaves the request to another location.
func TestLocalAnswer(t *testing.T) {
	const kept = "X-Kept"
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		status int
		body   string
	}{
		"nothing written": {func(http.ResponseWriter) {}, 200, ""},
		"written":         {func(w http.ResponseWriter) { _, _ = w.Write([]byte("a")); _, _ = w.Write([]byte("b")) }, 200, "ab"},
		"status": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
			w.Header().Set(kept, "late")
			_, _ = w.Write([]byte("a"))
		}, 418, "a"},
	} {
		var learned []string
		h := hop{mark: gatewayAskHeader, refusal: notHereHeader, lost: new(int), answered: func(h http.Header) { learned = append(learned, h.Get(servedByHeader)) }}
		g := NewGateway(nil, nil, func(l geo.Location, _ geo.Service, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set(kept, string(l))
			w.Header().Set(servedByHeader, string(l))
			if l == "north" {
				w.Header().Set(notHereHeader, string(l))
			}
			c.answer(w)
			return true
		}, NewForwarder("gateway", nil, nil), unobserved{})
		w := httptest.NewRecorder()
		w.Header().Set("X-Gateways", "x")
		q := Request{W: w, R: httptest.NewRequest(http.MethodGet, "/acct/things", http.NoBody)}
		here, err := g.call(q, "north", h)
		require.True(t, here, name)
		require.ErrorIs(t, err, errRefused, name)
		require.Empty(t, w.Body.String(), name)
		here, err = g.call(q, "south", h)
		require.True(t, here, name)
		require.NoError(t, err, name)
		require.Equal(t, c.status, w.Code, name)
		require.Equal(t, c.body, w.Body.String(), name)
		require.Equal(t, http.Header{kept: {"south"}}, w.Result().Header, name)
		require.Equal(t, []string{"north", "south"}, learned, "%s: each answer is learned once", name)
	}
}

// A request of whose body a location of this process has read something cannot be sent elsewhere: a refusal is the answer,
// and a read that was broken off is lost.
func TestLocalTookTheBody(t *testing.T) {
	for name, breaks := range map[string]bool{"refusal": false, "lost": true} {
		var asked []geo.Location
		f := NewForwarder("gateway", nil, nil)
		g := NewGateway([]geo.Location{"north", "south"}, nil, func(l geo.Location, _ geo.Service, w http.ResponseWriter, r *http.Request) bool {
			asked = append(asked, l)
			_, err := r.Body.Read(make([]byte, 1))
			require.NoError(t, err)
			if breaks {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set(notHereHeader, string(l))
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}, f, unobserved{})
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/acct/things", strings.NewReader("body"))
		protocol.WatchSender(w, r)
		err := g.Pass(Request{W: w, R: r, Reads: true}, "acct", false)
		require.Equal(t, []geo.Location{"north"}, asked, name)
		if breaks {
			require.ErrorIs(t, err, storageerr.OperationTimedOut)
		} else {
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
		}
	}
}
