package dev

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stats"
)

// oneStream starts a cluster with one stream, of a table, whose changes up to its head have arrived.
func oneStream(t *testing.T) (c *Cluster, st geo.Stream, at geo.Head) {
	t.Helper()
	c = startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	eventually(t, "a value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "before" })
	heads, _ := leaderOf(c, North, geo.FirstRange(geo.Table)).Machine.Heads()
	for st, at = range heads {
		require.Equal(t, geo.Account("northacct"), st.Account)
	}
	return c, st, at
}

// R11: a stream that stopped at both ends for a record of a later version goes on by itself, with all that waited, once the
// receiving location was started with a program that knows it, as after its upgrade.
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11StreamGoesOnByItself(t *testing.T) {
	t.Parallel()
	c, st, at := oneStream(t)
	stop := func(l geo.Location, why change.Stop) {
		require.NoError(t, c.locations[l].Submit(t.Context(), st.Range, stopByHand{st, why}))
	}
	stop(South, change.Stop{Reason: change.StopVersion})
	eventually(t, "the receiver sees the stop", func() bool { return tableStats(c, South, "northacct").Reason == stats.Version })
	put(t, c, "northacct", "k", "waits")
	put(t, c, "northacct", "k", "waits, too")
	next, err := leaderOf(c, North, st.Range).Machine.Outbox(st, at.Seq+1, 1)
	require.NoError(t, err)
	require.Len(t, next, 1)
	stop(South, change.Stop{Reason: change.StopVersion, Here: at, There: geo.Head{Seq: at.Seq + 1, Hash: change.HashOf(next[0])}})
	stopped := func(l geo.Location) bool {
		why, _ := leaderOf(c, l, st.Range).Machine.Stopped(st)
		return why.Reason == change.StopVersion
	}
	eventually(t, "the source stops it, too", func() bool { return stopped(North) })
	require.Equal(t, "before", read(t, c, "northacct", "-secondary", "k"))

	require.NoError(t, c.servers[South].Stop())
	require.NoError(t, c.servers[South].Start(t.Context()))
	eventually(t, "what waited arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "waits, too" })
	eventually(t, "the source lets it go on", func() bool { return !stopped(North) && !stopped(South) })
	put(t, c, "northacct", "k", "after")
	eventually(t, "the stream goes on", func() bool { return read(t, c, "northacct", "-secondary", "k") == "after" })
	eventually(t, "the statistics are live", func() bool { return tableStats(c, South, "northacct").Status == stats.Live })
	eventually(t, "nothing waits", func() bool {
		return gather(t, c)[`antipode_stream_backlog_records{location="northcentralus",service="table"}`] == 0
	})
}

// R11: a stream that stopped at both ends for a record of a later version goes on, with all that waited, when
// an operator ends the stops; one that is forked does not.
//
// Capability: Two locations: A record that cannot be decoded stops its own stream alone (R11).
func TestR11ResumedStreamGoesOn(t *testing.T) {
	t.Parallel()
	c, st, _ := oneStream(t)
	stop := func(why change.StopReason) {
		for _, l := range []geo.Location{South, North} {
			require.NoError(t, c.locations[l].Submit(t.Context(), st.Range, stopByHand{st, change.Stop{Reason: why}}))
		}
	}
	stop(change.StopVersion)
	eventually(t, "the receiver sees the stop", func() bool { return tableStats(c, South, "northacct").Reason == stats.Version })
	put(t, c, "northacct", "k", "waits")

	name := wire.StreamName{Account: st.Account, Epoch: wire.EpochOf(st.Epoch), Range: st.Range, Lane: st.Lane}
	for _, l := range []geo.Location{North, South} {
		r, err := c.resumeStream(t.Context(), l, name)
		require.NoError(t, err)
		require.Equal(t, wire.Resumed{Stream: st.String(), Location: l, Reason: "version"}, r)
	}
	eventually(t, "what waited arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "waits" })
	eventually(t, "the statistics are live", func() bool { return tableStats(c, South, "northacct").Status == stats.Live })
	put(t, c, "northacct", "k", "after")
	eventually(t, "the stream goes on", func() bool { return read(t, c, "northacct", "-secondary", "k") == "after" })

	requireCode := func(code string, status int) {
		t.Helper()
		_, err := c.resumeStream(t.Context(), South, name)
		var refused *wire.Error
		require.True(t, errors.As(err, &refused), "%v", err)
		require.Equal(t, code, refused.Code)
		require.Equal(t, status, refused.Status)
	}
	requireCode(wire.CodeNotStopped, http.StatusNotFound)
	stop(change.StopForked)
	requireCode(wire.CodeStopKept, http.StatusConflict)
	eventually(t, "the receiver sees that", func() bool { return tableStats(c, South, "northacct").Reason == stats.Forked })
}
