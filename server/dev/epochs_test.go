package dev

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

// R20, without a witness: both locations run, the link between them is cut, and the south is promoted. The north does not know
// it, and takes what comes to it. Clients of the gateway, which reaches both, are served by the south as soon as the gateway
// has learned of the epoch: nothing that it acknowledged from then on is lost, and no client gets a denial.
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
// Capability: Failover: An unplanned failover of an account (R20).
func TestR20GatewayFollowsAPromotion(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	drained(t, c)
	c.link.Cut()
	put(t, c, "northacct", "k", "lost")
	_, err := c.locations[South].Promote(t.Context(), "northacct", wire.Failover{})
	require.NoError(t, err)
	eventually(t, "the gateway learns", func() bool {
		e, secondary := c.follower.Newest(t.Context(), "northacct")
		return e.Location == South && secondary == North
	})
	there, err := c.locations[North].Directory.Account(t.Context(), "northacct")
	require.NoError(t, err)
	require.Equal(t, North, there.Primary, "the north does not know it")

	at := func(l geo.Location, key string) answer {
		return call(t, c.ports[l], "northacct", http.MethodGet, entityPath("northacct", "", key), "")
	}
	served := 0
	eventually(t, "the south serves 20 writes", func() bool {
		key := fmt.Sprint("after", served)
		got := call(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", key), `{"v":"2"}`)
		second := once(t, c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "k"), "")
		require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, second.status, second.body)
		require.Equal(t, http.StatusNotFound, at(North, key).status)
		if got.status == http.StatusServiceUnavailable {
			return false // Its gates open, or the machine is busy.
		}
		require.Equal(t, http.StatusNoContent, got.status, got.body)
		require.Equal(t, http.StatusOK, at(South, key).status)
		served++
		return served == 20
	})
	require.Equal(t, "before", read(t, c, "northacct", "", "k"))
	require.Contains(t, at(North, "k").body, "lost", "what does not come through the gateway goes on there")

	// While the new primary is away the former one is not asked in its place.
	require.NoError(t, c.stopLocation(t.Context(), South))
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPut: `{"v":"lost"}`} {
		got := call(t, c.gateway, "northacct", method, entityPath("northacct", "", "k"), body)
		require.Equal(t, http.StatusServiceUnavailable, got.status, got.body)
	}
	require.NoError(t, c.startLocation(t.Context(), South))
	putEventually(t, c, "northacct", "again")
	c.link.Heal()
	eventually(t, "the north is the secondary", func() bool {
		got := once(t, c.gateway, "northacct", http.MethodGet, entityPath("northacct", "-secondary", "k"), "")
		require.NotEqual(t, http.StatusForbidden, got.status)
		return got.status == http.StatusOK && strings.Contains(got.body, "again")
	})
	require.Equal(t, "again", read(t, c, "northacct", "", "k"))
}
