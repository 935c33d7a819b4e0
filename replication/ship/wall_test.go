package ship

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
)

// closedAt commits a closed time above one that another clock gave.
type closedAt struct {
	above geo.Timestamp
	wall  time.Time
}

func (c *closedAt) Evaluate(tx *ranges.Tx) error {
	c.wall = tx.Now()
	tx.ClosedAfter(c.above)
	return nil
}

// R13: a closed record has a wall where its time is ahead of the clock, from the feature level on: what the clock
// showed as the group was evaluated. A closed record made of what an earlier leader had committed has none. So it is
// with a full one.
func TestR13WallIsThatOfTheGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("acct")
	var last *change.Closed
	closed := func(above geo.Timestamp) *closedAt {
		c := &closedAt{above: above}
		require.NoError(t, w.leader().Do(t.Context(), c))
		w.drain(func(f change.Frame) { last = f.Closed })
		return c
	}
	closed(0)
	require.Zero(t, last.Wall, "no time is ahead")
	ahead := geo.TimestampOf(time.Now().Add(20 * 365 * 24 * time.Hour))
	closed(ahead)
	require.Greater(t, last.T, ahead)
	require.Zero(t, last.Wall, "the level is not active")

	levels := w.leader().Levels()
	levels.Raise(levels.Known(), levels.Known())
	c := closed(0)
	require.Greater(t, last.T, ahead)
	require.Equal(t, geo.TimestampOf(c.wall), last.Wall)
	full, err := w.ship.Full()
	require.NoError(t, err)
	require.Equal(t, last.Wall, full.Wall)

	w.open(Options{})
	w.drain(func(f change.Frame) { last = f.Closed })
	require.Greater(t, last.T, ahead)
	require.Zero(t, last.Wall, "when it was given is not known to a new process")
}
