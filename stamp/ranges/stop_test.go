package ranges_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

type stop struct {
	s   geo.Stream
	why change.Stop
	// before is what the transaction saw first.
	before change.Stop
}

func (c *stop) Evaluate(tx *ranges.Tx) error {
	c.before, _ = tx.Stopped(c.s)
	tx.Stop(c.s, c.why)
	return nil
}

// A stop is state of the range: with both heads on every replica, there after a restart of each
// node, and gone when the stream may go on (R16).
//
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16StopIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id, Lane: 3}
		why := change.Stop{Reason: change.StopForked, Here: geo.Head{Seq: 7, Hash: 0x77}, There: geo.Head{Seq: 5, Hash: 0x55}}
		first := &stop{s: st, why: why}
		stamptest.Submit(t, s, id, first)
		require.Zero(t, first.before)

		for _, n := range s.Nodes() {
			require.NoError(t, s.Stop(n, true))
			require.NoError(t, s.Start(n))
		}
		again := &stop{s: st, why: why}
		stamptest.Submit(t, s, id, again)
		require.NotZero(t, again.before.At)
		again.before.At = 0
		require.Equal(t, why, again.before)

		stamptest.Submit(t, s, id, &stop{s: st})
		last := &stop{s: st}
		stamptest.Submit(t, s, id, last)
		require.Zero(t, last.before)
		require.Empty(t, s.Leader(id).Machine.Stops())
	})
}
