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

// R11: a stream that stopped at both ends for a record of a later version goes on, with all that waited, when
// an operator ends the stops; one that is forked does not.
func TestR11ResumedStreamGoesOn(t *testing.T) {
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "k", "before")
	eventually(t, "a value arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "before" })
	table := geo.FirstRange(geo.Table)
	var st geo.Stream
	heads, _ := leaderOf(c, North, table).Machine.Heads()
	for st = range heads {
		require.Equal(t, geo.Account("northacct"), st.Account)
	}
	stop := func(why change.StopReason) {
		for _, l := range []geo.Location{South, North} {
			require.NoError(t, c.locations[l].Submit(t.Context(), table, stopByHand{st, change.Stop{Reason: why}}))
		}
	}
	stop(change.StopVersion)
	eventually(t, "the receiver sees the stop", func() bool { return tableStats(c, South, "northacct").Reason == stats.Version })
	put(t, c, "northacct", "k", "waits")

	name := wire.StreamName{Account: st.Account, Epoch: wire.EpochOf(st.Epoch), Range: st.Range, Lane: st.Lane}
	for _, l := range []geo.Location{North, South} {
		r, err := c.admin.ResumeStream(t.Context(), l, name)
		require.NoError(t, err)
		require.Equal(t, wire.Resumed{Stream: st.String(), Location: l, Reason: "version"}, r)
	}
	eventually(t, "what waited arrives", func() bool { return read(t, c, "northacct", "-secondary", "k") == "waits" })
	eventually(t, "the statistics are live", func() bool { return tableStats(c, South, "northacct").Status == stats.Live })
	put(t, c, "northacct", "k", "after")
	eventually(t, "the stream goes on", func() bool { return read(t, c, "northacct", "-secondary", "k") == "after" })

	requireCode := func(code string, status int) {
		t.Helper()
		_, err := c.admin.ResumeStream(t.Context(), South, name)
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
