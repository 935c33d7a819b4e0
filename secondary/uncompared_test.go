package secondary

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/route"
	"antipode/stamp/stamptest"
)

// R7, R13, R16: a range that a recovery has set back to before an account's epoch has cursors of the former one again,
// of which the source knows nothing any more. That is no fork: until the gates are compared no closed record is taken,
// and no time is shown. The gate of the epoch drops them.
func TestR16ForgottenStreamIsNoFork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		applier := NewApplier(s, route.First())
		src := geo.SourceRange{Origin: "north", Range: id}
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id}
		gate := change.Gate{Epoch: st.Epoch, Role: change.RoleSecondary, Open: true}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		p := keys.Partition{Service: geo.Table, Account: "acct"}
		rec := change.Record{
			Epoch: st.Epoch, Range: id, Lane: st.Lane, Service: geo.Table, Account: "acct", Seq: 1, CommitTime: 100, Partition: p.Append(nil),
		}
		encoded, err := change.AppendRecord(nil, &rec)
		require.NoError(t, err)
		take := func(heads ...change.StreamHead) *receive.Batch {
			b := &receive.Batch{Source: src, Closed: &change.Closed{Origin: "north", Range: id, Full: true, T: 200, Descriptor: 1, Heads: heads}}
			submit(t, func(done func(error)) { applier.Apply(b, done) })
			return b
		}
		first := &receive.Batch{Source: src, Records: []*receive.Record{{Record: rec, Bytes: encoded}}}
		submit(t, func(done func(error)) { applier.Apply(first, done) })
		require.Equal(t, receive.Applied, first.Records[0].Outcome)
		m := s.Leader(id).Machine
		stamptest.Submit(t, s, id, stamptest.Compared{As: 5})
		for range 2 {
			b := take()
			require.False(t, b.ClosedTaken)
			require.False(t, b.ClosedStops)
			require.Empty(t, m.Stops())
			require.Zero(t, m.Known(src))
		}
		gate.Epoch.Number = 2
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		stamptest.Submit(t, s, id, stamptest.Compared{})
		require.True(t, take().ClosedTaken)
		require.Empty(t, m.Stops())
		require.EqualValues(t, 200, m.Known(src).Closed)
	})
}
