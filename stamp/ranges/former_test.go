package ranges_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// command is a command made of one function.
type command func(tx *ranges.Tx)

func (c command) Evaluate(tx *ranges.Tx) error { c(tx); return nil }

// R13: progress is kept by account and epoch. With the gate of a later epoch a secondary drops the
// account's streams of former ones: one that was behind or stopped holds up nothing, also after a restart,
// and a closed record that still names it does not bring it back. So does a location that holds
// no copy of the account from then on. A primary keeps them.
func TestR13FormerEpochsAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		src := geo.SourceRange{Origin: "north", Range: id}
		epoch := func(n geo.EpochNumber) geo.Epoch { return geo.Epoch{Number: n, Location: "north"} }
		stream := func(a geo.Account, n geo.EpochNumber, lane geo.Lane) geo.Stream {
			return geo.Stream{Account: a, Epoch: epoch(n), Range: id, Lane: lane}
		}
		closed := func(t geo.Timestamp, at ...geo.Stream) *change.Closed {
			c := &change.Closed{Origin: "north", Range: id, Full: true, T: t}
			for _, st := range at {
				c.Heads = append(c.Heads, change.StreamHead{Account: st.Account, Epoch: st.Epoch, Lane: st.Lane, Seq: 5})
			}
			return c
		}
		take := func(tx *ranges.Tx, c *change.Closed) {
			tx.DropFormer(c)
			tx.TakeClosed(c)
		}
		gate := func(a geo.Account, n geo.EpochNumber, role change.Role) command {
			return func(tx *ranges.Tx) { tx.SetGate(a, change.Gate{Epoch: epoch(n), Role: role, Open: true}) }
		}
		old, other := stream("acct", 1, 3), stream("other", 1, 3)
		stamptest.Submit(t, s, id, gate("acct", 1, change.RoleSecondary))
		stamptest.Submit(t, s, id, gate("other", 1, change.RoleSecondary))
		stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
			take(tx, closed(10, old, other))
			tx.Stop(old, change.Stop{Reason: change.StopForked})
			tx.Stop(other, change.Stop{Reason: change.StopForked})
		}))
		requireStreams := func(a geo.Account, streams, stops int) {
			t.Helper()
			p := s.Leader(id).Machine.Progress(src, a)
			require.Len(t, p.Streams, streams)
			require.Len(t, p.Stops, stops)
		}
		requireStreams("acct", 1, 1)

		stamptest.Submit(t, s, id, gate("acct", 2, change.RoleSecondary))
		requireStreams("acct", 0, 0)
		stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) { take(tx, closed(20, old, other, stream("acct", 2, 4), stream("acct", 3, 4))) }))
		requireStreams("acct", 2, 0)
		for _, n := range s.Nodes() {
			require.NoError(t, s.Stop(n, true))
			require.NoError(t, s.Start(n))
		}
		stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) { take(tx, closed(30, old)) }))
		requireStreams("acct", 2, 0)
		requireStreams("other", 1, 1)
		stamptest.Submit(t, s, id, gate("other", 2, change.RolePrimary))
		requireStreams("other", 1, 1)
		requireStreams(cursor.EveryAccount, 3, 1)
		left := s.Leader(id).Machine.Progress(src, cursor.EveryAccount)
		require.True(t, left.HasEnded(other), "this location is the primary in a higher epoch")
		require.False(t, left.HasEnded(stream("acct", 2, 4)))
		stamptest.Submit(t, s, id, gate("other", 3, change.RoleNone))
		requireStreams("other", 0, 0)
	})
}
