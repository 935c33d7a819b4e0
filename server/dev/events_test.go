package dev

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/server/location"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// accountEvents are the events of a location about a service of an account, oldest first.
func accountEvents(c *Cluster, l geo.Location, account geo.Account, s geo.Service) (out []string) {
	for _, e := range c.locations[l].Events() {
		if e.Account == account && e.Service == s.String() {
			line := e.Kind
			if e.Reason != "" {
				line += " " + e.Reason
			}
			out = append([]string{line}, out...)
		}
	}
	return out
}

// R16: a stopped stream shows in the event log of the secondary, once for the service and with the
// reason.
//
// Capability: Two locations: An account's service that becomes unavailable, and one that is live again, is an event
// with its reason.
func TestR16UnavailableServiceIsAnEvent(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	stream := geo.Stream{Account: "northacct", Epoch: geo.Epoch{Number: 1, Location: North}, Range: geo.FirstRange(geo.Table), Lane: 3}
	require.NoError(t, c.locations[South].Submit(t.Context(), stream.Range, stopByHand{stream, change.Stop{Reason: change.StopForked}}))
	want := []string{"unavailable forked"}
	eventually(t, "the event", func() bool { return len(accountEvents(c, South, "northacct", geo.Table)) == len(want) })
	require.Equal(t, want, accountEvents(c, South, "northacct", geo.Table))
	require.Empty(t, accountEvents(c, South, "northacct", geo.Blob))
	require.Empty(t, accountEvents(c, North, "northacct", geo.Table))
	require.Positive(t, gather(t, c)[`antipode_events_total{kind="unavailable",location="southcentralus"}`])
}

// R6: while a receiver holds back what is ahead of the clock here, the services of the account are
// unavailable with reason clock, which is an event; another shows that they are live again. Here the
// source was started with a clock that is ahead, while it could not ask for that of the other location.
//
// Capability: Two locations: An account's service that becomes unavailable, and one that is live again, is an event
// with its reason.
func TestR6AheadOfTheClockIsUnavailable(t *testing.T) {
	t.Parallel()
	behind := map[geo.Location]*atomic.Int64{North: {}, South: {}}
	c := startAdjusted(t, func(o *location.Options) { o.Clock = lateClock{o.Clock, behind[o.Name]} })
	require.NoError(t, c.servers[North].Stop())
	c.link.Cut()
	behind[North].Store(-int64(time.Minute))
	require.NoError(t, c.servers[North].Start(t.Context()))
	eventually(t, "it gives times", func() bool {
		lead := c.locations[North].Leader(geo.FirstRange(geo.Catalog))
		return lead != nil && lead.Do(t.Context(), &ranges.Close{}) == nil
	})
	c.link.Heal()
	eventually(t, "unavailable because of the clock", func() bool {
		r := tableStats(c, South, "northacct")
		return r.Status == stats.Unavailable && r.Reason == stats.Clock
	})
	events := func() []string { return accountEvents(c, South, "northacct", geo.Table) }
	eventually(t, "the event", func() bool { return len(events()) > 0 })
	behind[South].Store(-int64(time.Minute))
	eventually(t, "the end of the episode", func() bool { return len(events()) > 1 })
	require.Equal(t, []string{"unavailable clock", "live"}, events())
	require.Equal(t, stats.Live, tableStats(c, South, "northacct").Status)
}
