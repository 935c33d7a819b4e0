package secondary

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/stamptest"
)

// R13, R16: a stream of a former epoch is not stopped, for whatever reason: the gate has dropped it, and nothing would end
// the stop. One of the present epoch is.
//
// Capability: Proofs: Redundancy across recoveries with loss (R7, R10, R17, R19).
func TestR16FormerEpochIsNotStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		gate := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RoleSecondary, Open: true}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		applier := NewApplier(s, s.Route())
		stopped := func(n geo.EpochNumber, why change.StopReason) bool {
			st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: n, Location: "north"}, Range: id, Lane: geo.Lane(why)}
			done := make(chan error, 1)
			applier.Stop(st, change.Stop{Reason: why, There: geo.Head{Seq: 3}}, func(err error) { done <- err })
			require.NoError(t, <-done)
			_, ok := s.Leader(id).Machine.Stopped(st)
			return ok
		}
		for _, why := range []change.StopReason{change.StopForked, change.StopLost, change.StopPoison, change.StopVersion, change.StopBudget} {
			require.False(t, stopped(1, why), why.String())
			require.True(t, stopped(2, why), why.String())
		}
	})
}
