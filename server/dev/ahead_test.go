package dev

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// aheadOnce commits a closed time above a time that another clock gave.
type aheadOnce struct{ above geo.Timestamp }

func (c aheadOnce) Evaluate(tx *ranges.Tx) error {
	tx.Timestamp(c.above)
	tx.Closed()
	return nil
}

// R6: a range whose log holds a time of next year, as one does that had a wrong clock before this release, gives
// later ones alone. Status says so at its location, and at the other one, which takes none of them, that the
// clock is the reason.
func TestR6TimesOfTheFutureAreReported(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	warnings := func(l geo.Location) (found string) {
		status, err := c.admin.Status(t.Context())
		require.NoError(t, err)
		for _, at := range status.Locations {
			if at.Name == l {
				found = strings.Join(at.Warnings, "; ")
			}
		}
		return found
	}
	require.NotContains(t, warnings(North), "ahead of the clock")
	next := geo.TimestampOf(time.Now().Add(365 * 24 * time.Hour))
	require.NoError(t, c.locations[North].Submit(t.Context(), geo.FirstRange(geo.Table), aheadOnce{next}))
	eventually(t, "a warning", func() bool {
		return strings.Contains(warnings(North), "times of the table range are ahead of the clock here by 87")
	})
	require.NotContains(t, warnings(South), "ahead of the clock")
	eventually(t, "the reason", func() bool {
		r := tableStats(c, South, "northacct")
		return r.Status == stats.Unavailable && r.Reason == stats.Clock
	})
	status, err := c.admin.Status(t.Context())
	require.NoError(t, err)
	for _, a := range status.Accounts {
		for _, s := range a.Services {
			if a.Name == "northacct" && s.Service == geo.Table.String() {
				require.Equal(t, wire.Unavailable, s.Status)
			}
		}
	}
}
