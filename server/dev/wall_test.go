package dev

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/location"
	"antipode/stats"
)

// afterTheRollover starts both locations with clocks that are ahead by twenty years, as by a GPS rollover, has writes
// acknowledged with times of then, and sets all clocks right.
func afterTheRollover(t *testing.T, finalize bool) *Cluster {
	t.Helper()
	const by = 20 * 365 * 24 * time.Hour
	var behind atomic.Int64
	behind.Store(-int64(by))
	c := startAdjusted(t, func(o *location.Options) { o.Clock = lateClock{o.Clock, &behind} })
	if finalize {
		_, err := c.admin.Finalize(t.Context(), wire.Finalize{})
		require.NoError(t, err)
	}
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "of 2046")
	drained(t, c)
	require.Greater(t, time.Until(tableStats(c, South, "northacct").LastSync.Time()), by-time.Hour)
	behind.Store(0)
	return c
}

// shown waits for a Last Sync Time that is not before at, which is a time of now, and checks that it is none of the future,
// and that it never goes back.
func shown(t *testing.T, c *Cluster, l geo.Location, account geo.Account, at time.Time) {
	t.Helper()
	last := geo.Timestamp(0)
	eventually(t, fmt.Sprintf("Last Sync Time of %s at %s", account, l), func() bool {
		r := tableStats(c, l, account)
		if !r.Known() {
			return false
		}
		require.LessOrEqual(t, time.Until(r.LastSync.Time()), geo.ClockOffMax)
		require.GreaterOrEqual(t, r.LastSync, last)
		last = r.LastSync
		return !last.Time().Before(at)
	})
}

// R6, R13: both locations gave times of 2046. Once their clocks are right, Last Sync Time is back, though each later time is of
// 2046 too, and it is true: what was acknowledged before it is readable at the secondary. So it is after a planned failover
// and back, and an unplanned one says what it may have lost by times of now.
func TestR6LastSyncTimeAfterTheRollover(t *testing.T) {
	t.Parallel()
	c := afterTheRollover(t, true)
	acknowledged := func(l geo.Location, value string) {
		t.Helper()
		put(t, c, "northacct", "k", value)
		shown(t, c, l, "northacct", time.Now())
		require.Equal(t, value, read(t, c, "northacct", "-secondary", "k"))
	}
	acknowledged(South, "one")
	acknowledged(South, "two")
	before := tableStats(c, South, "northacct").LastSync
	moveTo(t, c, "northacct", North, South)
	eventually(t, "Last Sync Time at the former primary", func() bool {
		r := tableStats(c, North, "northacct")
		require.True(t, !r.Known() || r.LastSync >= before, "it goes back by a failover")
		return r.Known()
	})
	acknowledged(North, "three")
	moveTo(t, c, "northacct", South, North)
	acknowledged(South, "four")

	began := time.Now()
	shown(t, c, South, "northacct", began)
	require.NoError(t, c.servers[North].Stop())
	c.link.Cut()
	lost := serviceLoss(t, promote(t, c, "northacct"), geo.Table)
	require.Zero(t, lost.KnownRecords)
	for _, at := range []time.Time{lost.LastSyncTime.Time, lost.UnboundedSince.Time} {
		require.False(t, at.Before(began), at)
		require.LessOrEqual(t, time.Until(at), geo.ClockOffMax)
	}
	require.Equal(t, "four", read(t, c, "northacct", "", "k"))
}

// Before the upgrade is finalized nothing is written that the version before does not know: then there is no Last Sync Time,
// which is said, and it is back once it is finalized.
func TestR6RolloverBeforeFinalize(t *testing.T) {
	t.Parallel()
	c := afterTheRollover(t, false)
	put(t, c, "northacct", "k", "after")
	drained(t, c)
	require.Equal(t, stats.UnavailableFor(stats.Clock), tableStats(c, South, "northacct"))
	s, err := c.admin.Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(s.Locations[0].Warnings), "antipodectl cluster finalize")
	_, err = c.admin.Finalize(t.Context(), wire.Finalize{})
	require.NoError(t, err)
	shown(t, c, South, "northacct", time.Now())
	s, err = c.admin.Status(t.Context())
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(s.Locations[0].Warnings), "Last Sync Time goes by the clock")
}
