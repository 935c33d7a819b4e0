package node

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/identity/identitytest"
	"antipode/server/config"
)

// A drain names what is left: the ranges that the node leads and nobody else takes, and those
// that nobody leads. The node is not ready as soon as the drain begins, while it still takes requests.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestDrainNamesWhatIsLeft(t *testing.T) {
	ca := identitytest.NewAuthority(t)
	for _, peer := range []bool{false, true} {
		c := alone(t, ca)
		c.Drain = config.Drain{Timeout: "1m", Notice: "3s"}
		left := " is still led here"
		if peer { // It is away, so that there is no quorum.
			c.Peers = []config.Peer{{ID: 2, Address: nobody, Hop: nobody}}
			left, c.Drain.Notice = " has no leader", "0s"
		}
		n, err := open(c)
		require.NoError(t, err)
		require.Empty(t, n.Drain(), "before the start nothing is left")
		require.NoError(t, n.Start(t.Context()))
		if !peer {
			require.Eventually(t, func() bool {
				for _, r := range n.location.Route().Ranges() {
					if n.location.Leader(r.ID) == nil {
						return false
					}
				}
				return true
			}, time.Minute, 5*time.Millisecond)
		}
		began := time.Now()
		drained := make(chan []string, 1)
		go func() { drained <- n.Drain() }()
		require.Eventually(t, n.location.Draining, time.Minute, time.Millisecond)
		require.Contains(t, n.Waiting(t.Context()), "drains")
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.Listen.Blob, nil)
		require.NoError(t, err)
		if !peer {
			a, err := http.DefaultTransport.RoundTrip(q)
			if late := time.Since(began) > 3*time.Second; !late || err == nil { // A starved machine may have slept through it.
				require.NoError(t, err, "requests are taken during the notice")
				require.NoError(t, a.Body.Close())
				require.True(t, a.Close, "and their connections end")
			}
		}
		list := <-drained
		require.Less(t, time.Since(began), 20*time.Second, "the time of the drain is not waited for")
		require.Len(t, list, len(geo.Services)+1, list)
		for i, what := range []string{"catalog", "blob", "queue", "table"} {
			require.Contains(t, list[i], "the "+what+" range"+left)
		}
		_, err = http.DefaultTransport.RoundTrip(q)
		require.Error(t, err)
		calls := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		admin, err := wire.New("http://"+c.Listen.Admin, calls)
		require.NoError(t, err)
		ready, err := admin.Readiness(context.Background())
		require.NoError(t, err, "the admin port answers until the end")
		require.False(t, ready.Ready)
		require.NoError(t, n.Close())
	}
}
