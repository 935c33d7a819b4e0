package dev

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/location"
)

// A change that does not reach the secondary within the RPO target is an event at the primary, though the link
// is cut, and another one when it has arrived; services without such a change have none.
//
// Capability: Two locations: A change that is not at the secondary within the RPO target is an event, and its arrival
// another.
func TestLateAndArrivedChanges(t *testing.T) {
	t.Parallel()
	var suspended atomic.Int64 // Both locations are on one machine, so that nothing waits for a clock.
	const target = 20 * time.Second
	c := startAdjusted(t, func(o *location.Options) { o.Clock, o.RPOTarget = suspendedClock{o.Clock, &suspended}, target })
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "v")
	drained(t, c)
	c.link.Cut()
	put(t, c, "northacct", "k", "late")
	events := func() []string { return accountEvents(c, North, "northacct", geo.Table) }
	require.Empty(t, events())
	suspended.Store(int64(target))
	eventually(t, "the change is late", func() bool { return len(events()) > 0 })
	c.link.Heal()
	eventually(t, "it has arrived", func() bool { return len(events()) > 1 })
	require.Equal(t, []string{"late changes are not at southcentralus after 20s", "arrived"}, events())
	require.Empty(t, accountEvents(c, North, "northacct", geo.Blob))
	require.Equal(t, "late", read(t, c, "northacct", "-secondary", "k"))
}

// Past the RPO target an account may refuse its writes, or slow them, until its changes have arrived. What it has is
// read all the while, and an account without such a policy writes as ever.
func TestLateWritesAreHeld(t *testing.T) {
	t.Parallel()
	var suspended atomic.Int64
	const target = 20 * time.Second
	c := startAdjusted(t, func(o *location.Options) { o.Clock, o.RPOTarget = suspendedClock{o.Clock, &suspended}, target })
	createAs(t, c, "alerts", North, "RA-GRS")
	for account, policy := range map[geo.Account]string{"northacct": "refuse", "southacct": "slow", "alerts": ""} {
		createTable(t, c, account)
		put(t, c, account, "k", "v")
		if policy == "" {
			continue
		}
		a, err := adminClient(t, c).UpdateAccount(t.Context(), account, wire.UpdateAccount{WhenLate: policy})
		require.NoError(t, err)
		requireReached(t, a)
		require.Equal(t, policy, a.WhenLate)
	}
	drained(t, c)
	c.link.Cut()
	for _, account := range []geo.Account{"northacct", "southacct", "alerts"} {
		put(t, c, account, "k", "late")
	}
	held := func(how string) float64 {
		metrics := gather(t, c)
		return metrics[`antipode_held_writes_total{how="`+how+`",location="northcentralus"}`] +
			metrics[`antipode_held_writes_total{how="`+how+`",location="southcentralus"}`]
	}
	require.Zero(t, held("refused")+held("slowed"))
	write := func() answer {
		return once(t, c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", "k"), `{"v":"more"}`)
	}
	suspended.Store(int64(target))
	eventually(t, "writes are refused", func() bool { return write().status == http.StatusServiceUnavailable })
	require.Equal(t, "ServerBusy", write().header.Get("x-ms-error-code"))
	read(t, c, "northacct", "", "k")
	require.Positive(t, held("refused"))
	eventually(t, "writes are slowed", func() bool {
		put(t, c, "southacct", "k", "slowed")
		return held("slowed") > 0
	})
	put(t, c, "alerts", "k", "more")
	eventually(t, "the event", func() bool {
		return slices.Contains(accountEvents(c, North, "northacct", geo.Table), "late changes are not at southcentralus after 20s; writes are refused")
	})

	c.link.Heal()
	eventually(t, "writes are taken", func() bool { return write().status == http.StatusNoContent })
	drained(t, c)
	require.Equal(t, "more", read(t, c, "northacct", "-secondary", "k"))
}

// suspendedClock is that of a machine that was suspended for as long as a test says.
type suspendedClock struct {
	clock.Clock
	suspended *atomic.Int64
}

func (c suspendedClock) Now() time.Time {
	return c.Clock.Now().Add(time.Duration(c.suspended.Load()))
}

func (c suspendedClock) Mono() time.Duration {
	return c.Clock.Mono() + time.Duration(c.suspended.Load())
}
