package ranges_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// forgets is a command that forgets the streams of an account's epochs before one, as often as there are more.
type forgets struct {
	a     geo.Account
	known geo.Epoch
	more  *bool
}

func (c forgets) Evaluate(tx *ranges.Tx) error {
	*c.more = tx.ForgetStreams(c.a, c.known)
	return nil
}

// R13: a range that was recovered to before an epoch forgets no stream of the one before, though nothing waits in it: it
// would number it from the beginning.
func TestR13NothingIsForgottenUnderAFormerGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 3)
		stamptest.Submit(t, s, st.Range, trims{st, []geo.Seq{3}})
		more := true
		stamptest.Submit(t, s, st.Range, forgets{"acct", geo.Epoch{Number: 2, Location: "north"}, &more})
		require.False(t, more)
		require.EqualValues(t, 3, s.Leader(st.Range).Machine.Head(st).Seq)
	})
}

// R13: of streams of former epochs a range keeps nothing once the other location has the present one, also after a
// restart. Those of an epoch that the other location is not known to have stay, as do those with a record in them, those
// that are stopped, and the present ones; and under a gate of a former epoch nothing goes. One group forgets 256.
func TestR13FormerStreamsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 3)
		id := st.Range
		m := func() *ranges.Machine { return s.Leader(id).Machine }
		epoch := func(n geo.EpochNumber) geo.Epoch { return geo.Epoch{Number: n, Location: "north"} }
		forget := func(known geo.EpochNumber) (more bool) {
			stamptest.Submit(t, s, id, forgets{"acct", epoch(known), &more})
			return more
		}
		heads := func() int {
			h, _ := m().Heads()
			require.Len(t, m().TrimmedHeads(), len(h))
			return len(h)
		}
		enter := func(n geo.EpochNumber) {
			gate := change.Gate{Epoch: epoch(n), Role: change.RolePrimary, Open: true, Numbered: true}
			stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		}
		stamptest.Submit(t, s, id, trims{st, []geo.Seq{2}})
		require.False(t, forget(2), "its gate is of a former epoch")
		enter(2)
		require.False(t, forget(2), "a record waits, and none goes")
		require.False(t, forget(1), "the other location is not known to have the second epoch")
		require.Equal(t, 1, heads())
		stamptest.Submit(t, s, id, trims{st, []geo.Seq{3}})
		stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: change.StopBudget}})
		require.False(t, forget(2), "it is stopped")
		require.EqualValues(t, 3, m().Head(st).Seq)
		stamptest.Submit(t, s, id, ends{"acct"})
		require.False(t, forget(2))
		require.Zero(t, heads())
		require.Zero(t, m().Head(st))
		_, known, err := m().OutboxAt(st, 3)
		require.NoError(t, err)
		require.False(t, known)

		// Each of the next epochs has a stream for each lane.
		const epochs = outbox.ForgetMax/geo.LaneCount + 2
		for n := range geo.EpochNumber(epochs) {
			enter(2 + n)
			stamptest.Submit(t, s, id, writesEachLane{})
		}
		stamptest.Submit(t, s, id, ends{"acct"})
		last := st
		last.Epoch = epoch(1 + epochs)
		trimmed := m().TrimmedHeads()
		require.Len(t, trimmed, (epochs-1)*geo.LaneCount, "those of the present epoch are not acknowledged")
		require.NotContains(t, trimmed, last)
		require.True(t, forget(1+epochs))
		h, _ := m().Heads()
		require.Len(t, h, epochs*geo.LaneCount-outbox.ForgetMax)
		require.False(t, forget(1+epochs))
		for range 2 {
			h, _ = m().Heads()
			require.Len(t, h, geo.LaneCount)
			require.Empty(t, m().TrimmedHeads())
			require.Contains(t, h, last)
			b, err := m().Backlog()
			require.NoError(t, err)
			require.EqualValues(t, geo.LaneCount, b.Records)
			for _, n := range s.Nodes() {
				require.NoError(t, s.Stop(n, true))
				require.NoError(t, s.Start(n))
			}
			require.False(t, forget(1+epochs))
		}
	})
}

// writesEachLane writes a row of each lane.
type writesEachLane struct{}

func (writesEachLane) Evaluate(tx *ranges.Tx) error {
	done := map[geo.Lane]bool{}
	for i := 0; len(done) < geo.LaneCount; i++ {
		p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: fmt.Sprint(i)}
		if done[p.Lane()] {
			continue
		}
		done[p.Lane()] = true
		rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: []byte("v")}}}
		if err := tx.Change(p, rec); err != nil {
			return err
		}
	}
	return nil
}
