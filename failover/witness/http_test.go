package witness_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/failover/witness"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/internal/identity"
	"antipode/internal/identity/identitytest"
)

// R21: a node renews and claims for the location in its certificate, and for no other; one of another place is not
// answered, nor is a witness of another name believed. What was claimed comes back as a time on the caller's clock.
//
// Capability: Two locations: A witness at a third place (R21).
func TestR21OverTLS(t *testing.T) {
	p, ca := newPlace(t), identitytest.NewAuthority(t)
	ring := func(l geo.Location) *identity.Keyring {
		return ca.Keyring(identity.Identity{Stamp: "prod", Location: l, Node: 1}, clock.System{})
	}
	srv := httptest.NewUnstartedServer(witness.Handler(p.Witness))
	srv.TLS = ring("third").LocationsServerConfig("north", "south")
	srv.StartTLS()
	t.Cleanup(srv.Close)
	client := func(l, at geo.Location) *witness.Client {
		c := &witness.Client{URL: srv.URL, Clock: p.clock, HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: ring(l).PairConfig(at)}}}
		t.Cleanup(c.HTTP.CloseIdleConnections)
		return c
	}
	north, south := client("north", "third"), client("south", "third")
	g, err := north.Renew(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, g.Life)
	p.clock.Advance(4 * time.Second)
	until, err := south.Claim(t.Context(), map[geo.Account]geo.EpochNumber{"acct": 2}, "south")
	require.NoError(t, err)
	require.Equal(t, p.clock.Mono()+6*time.Second, until)
	g, err = north.Renew(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, g.Claims[0].Epoch())
	_, err = north.Claim(t.Context(), map[geo.Account]geo.EpochNumber{"acct": 1}, "north")
	require.ErrorIs(t, err, witness.ErrPassed)
	_, err = north.Claim(t.Context(), map[geo.Account]geo.EpochNumber{"acct": 9}, "south")
	require.ErrorContains(t, err, "its own location only")
	require.NoError(t, south.Withdraw(t.Context(), "acct", 2))
	g, err = north.Renew(t.Context(), g.Version)
	require.NoError(t, err)
	require.Equal(t, []geo.Account{"acct"}, g.Withdrawn)

	many := map[geo.Account]geo.EpochNumber{}
	for i := range 2500 {
		many[geo.Account("a"+strings.Repeat("x", i%20)+string(rune('a'+i/100))+string(rune('a'+i%26))+string(rune('a'+i/20%5)))] = 3
	}
	_, err = south.Claim(t.Context(), many, "south")
	require.NoError(t, err)
	g, err = north.Renew(t.Context(), g.Version)
	require.NoError(t, err)
	require.Len(t, g.Claims, len(many))

	gone := client("north", "third")
	gone.URL = "https://127.0.0.1:1"
	_, err = gone.Renew(t.Context(), 0)
	require.ErrorContains(t, err, "witness: dial tcp 127.0.0.1:1", "an operator reads it beside the address: no URL")

	_, err = client("west", "third").Renew(t.Context(), 0)
	require.Error(t, err, "a node of another place")
	_, err = client("north", "fourth").Renew(t.Context(), 0)
	require.Error(t, err, "the witness is of another place")
	for _, bad := range []string{"", "{", `{"after":"x"}`} {
		resp, err := north.HTTP.Post(srv.URL+"/v1/renew", "application/json", strings.NewReader(bad))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, "%q", bad)
	}
	for _, bad := range []map[geo.Account]geo.EpochNumber{{"": 2}, {"acct": 0}} {
		_, err = south.Claim(t.Context(), bad, "south")
		require.ErrorContains(t, err, "400 Bad Request", "it would stay for ever")
		for name, n := range bad {
			require.ErrorContains(t, south.Withdraw(t.Context(), name, n), "400 Bad Request", "so would what is kept of it")
		}
	}
	p.clock.Advance(time.Minute)
}
