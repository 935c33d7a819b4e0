package ranges_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// falls is a command that lets a copy fall out.
type falls struct{ outbox.Copy }

func (c falls) Evaluate(tx *ranges.Tx) error { return tx.FallOut(c.Copy) }

// R18: a copy that falls out of the budget has all its streams stopped, also those without a record, with
// the head as of then and the last record that was acknowledged, whatever a stream was stopped for before.
// Its rows go in groups of 10,000 at most, also those numbered since; numbers go on. Another account, and another epoch of the same account, keep theirs. All
// of it is state: another leader after a restart finds it. In a later epoch nothing is left of it.
//
// Capability: Two locations: The outbox has a budget.
func TestR18FallOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const records = outbox.TrimRowsMax + 100
		s, st := stampWithStream(t, records)
		id := st.Range
		machine := func() *ranges.Machine { return s.Leader(id).Machine }
		stamptest.Submit(t, s, id, trims{st, []geo.Seq{10}})
		forked := st
		forked.Lane = (st.Lane + 1) % geo.LaneCount
		stamptest.Submit(t, s, id, &stop{s: forked, why: change.Stop{Reason: change.StopForked, There: geo.Head{Seq: 7, Hash: 7}}})
		held := machine().Holdings()
		require.Len(t, held, 1)
		require.EqualValues(t, records-10, held[0].Records)
		require.False(t, held[0].FellOut)

		c := outbox.Copy{Account: "acct", Epoch: st.Epoch}
		later := c
		later.Epoch.Number++
		for _, other := range []outbox.Copy{later, {Account: "other", Epoch: st.Epoch}} {
			stamptest.Submit(t, s, id, falls{other})
			require.Len(t, machine().Stops(), 1, "%v is not numbered", other)
		}

		acked, head := machine().TrimmedHead(st), machine().Head(st)
		for i, left := range []int64{90, 0} {
			stamptest.Submit(t, s, id, falls{c})
			require.Len(t, machine().Stops(), geo.LaneCount)
			for of, why := range machine().Stops() {
				require.Equal(t, change.StopBudget, why.Reason, "%s", of)
			}
			why, _ := machine().Stopped(st)
			require.Equal(t, [2]geo.Head{head, acked}, [2]geo.Head{why.Here, why.There})
			b, err := machine().Backlog()
			require.NoError(t, err)
			require.Equal(t, left, b.Records, "round %d", i)
		}
		why, _ := machine().Stopped(forked)
		require.EqualValues(t, 7, why.There.Seq, "what is known of a fork is kept")

		stamptest.Submit(t, s, id, writes{5})
		require.EqualValues(t, records+5, machine().Head(st).Seq)
		require.EqualValues(t, 5, machine().Holdings()[0].Records)
		stops := machine().Stops()
		for _, n := range s.Nodes() {
			require.NoError(t, s.Stop(n, true))
			require.NoError(t, s.Start(n))
		}
		stamptest.Submit(t, s, id, falls{c})
		require.Equal(t, stops, machine().Stops(), "the first stop stays")
		require.Equal(t, []ranges.Holding{{Copy: c, FellOut: true}}, machine().Holdings())
		require.Equal(t, machine().Head(st), machine().TrimmedHead(st))

		gate := change.Gate{Epoch: later.Epoch, Role: change.RolePrimary, Open: true, Numbered: true}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		stamptest.Submit(t, s, id, ends{"acct"})
		require.Empty(t, machine().Stops())
		require.Empty(t, machine().Holdings())
		stamptest.Submit(t, s, id, writes{1})
		require.EqualValues(t, 1, machine().Holdings()[0].Records)
	})
}

// ends is a command that ends the streams of an account's former epochs.
type ends struct{ a geo.Account }

func (c ends) Evaluate(tx *ranges.Tx) error {
	more, err := tx.EndStreams(c.a)
	if more {
		return fmt.Errorf("%s has more than one group may delete", c.a)
	}
	return err
}

// R18: the oldest record of each copy is found, and none is read of one that has none.
//
// Capability: Two locations: The outbox has a budget.
func TestR18Oldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 3)
		m := s.Leader(st.Range).Machine
		records, err := m.Outbox(st, 1, 1)
		require.NoError(t, err)
		h, err := change.ParseHeader(records[0])
		require.NoError(t, err)
		got, err := m.Oldest()
		require.NoError(t, err)
		require.Equal(t, map[outbox.Copy]geo.Timestamp{{Account: "acct", Epoch: st.Epoch}: h.CommitTime}, got)
		stamptest.Submit(t, s, st.Range, trims{st, []geo.Seq{3}})
		got, err = m.Oldest()
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

// drops is a command that drops the streams of an account's former epochs.
type drops struct{ a geo.Account }

func (c drops) Evaluate(tx *ranges.Tx) error {
	_, err := tx.DropStreams(c.a)
	return err
}

// R13: a stream that loses records which were not acknowledged, since the account has left its epoch, is stopped until it
// is ended. One that loses none is not stopped, by a late call either; and nothing is dropped of the present epoch, or
// once the gate has numbers: the other location then knows.
func TestR13DroppedStreamsAreStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 3)
		m := s.Leader(st.Range).Machine
		stamptest.Submit(t, s, st.Range, trims{st, []geo.Seq{1}})
		stamptest.Submit(t, s, st.Range, drops{"acct"})
		require.Empty(t, m.Stops())
		require.EqualValues(t, 1, m.Trimmed(st))

		gate := change.Gate{Epoch: geo.Epoch{Number: st.Epoch.Number + 1, Location: st.Epoch.Location}, Role: change.RolePrimary, Open: true, Numbered: true}
		stamptest.Submit(t, s, st.Range, stamptest.Gate{Account: "acct", Gate: gate})
		stamptest.Submit(t, s, st.Range, drops{"acct"})
		require.Empty(t, m.Stops())
		require.EqualValues(t, 1, m.Trimmed(st))

		gate.Numbered = false
		stamptest.Submit(t, s, st.Range, stamptest.Gate{Account: "acct", Gate: gate})
		for range 2 {
			at := m.TrimmedHead(st)
			stamptest.Submit(t, s, st.Range, drops{"acct"})
			require.EqualValues(t, 3, m.Trimmed(st))
			why, stopped := m.Stopped(st)
			require.True(t, stopped)
			if at.Seq == 1 {
				why.At = 0
				require.Equal(t, change.Stop{Reason: change.StopBudget, Here: m.Head(st), There: at}, why)
			}
		}
		stamptest.Submit(t, s, st.Range, ends{"acct"})
		stamptest.Submit(t, s, st.Range, drops{"acct"})
		require.Empty(t, m.Stops())
	})
}
