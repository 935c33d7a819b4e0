package ranges_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// R16: while a stream is settled for the receiver's side, the group of each change says which units it has written,
// an entity by its row and a blob by its partition, for the present base; what is stated again is none. It ends with
// the settlement, and with a change to the source's side. A settlement for that side is not changed: what clients
// have written since it began is not known.
func TestR16WrittenSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, service := range []geo.Service{geo.Table, geo.Blob} {
			s := stamptest.New(t, "north", service)
			id := geo.FirstRange(service)
			gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
			stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
			p := keys.Partition{Service: service, Account: "acct", Container: "t", Object: "o"}
			st := geo.Stream{Account: "acct", Epoch: gate.Epoch, Range: id, Lane: p.Lane()}
			from := geo.Head{Seq: 5, Hash: 55}
			forked := func() {
				stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: change.StopForked, There: from}})
			}
			settle := func(take bool) ranges.SettleOutcome {
				c := &ranges.Settle{Stream: st, From: from, Take: take}
				arrive(t, s, id, c)
				return c.Outcome
			}
			write := func(rows ...string) {
				rec := change.Record{}
				for _, row := range rows {
					rec.Ops = append(rec.Ops, change.Op{Row: []byte(row), Value: []byte("v")})
				}
				stamptest.Submit(t, s, id, stamptest.Change{Partition: p, Record: rec})
			}
			why := func() change.Stop {
				why, _ := s.Leader(id).Machine.Stopped(st)
				return why
			}
			var base geo.Seq
			// written are the rows whose units are written since the base, of a, b and c, in flight too.
			written := func(base geo.Seq, first ...string) (out string) {
				stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
					for _, row := range first {
						rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Delete: true, Row: []byte(row)}}}
						require.NoError(t, tx.Change(p, rec))
					}
					out = ""
					for _, row := range []string{"a", "b", "c"} {
						is, err := tx.Written(st, base, p.Unit([]byte(row)))
						require.NoError(t, err)
						if is {
							out += row
						}
					}
				}))
				return out
			}
			whole := func(rows string) string {
				if service == geo.Blob && rows != "" {
					return "abc" // All rows of a blob are one unit.
				}
				return rows
			}
			write("a", "b", "c")
			forked()
			write("a")
			require.Equal(t, ranges.SettleBegun, settle(true))
			require.Equal(t, change.StopTaking, why().Reason)
			base = why().Here.Seq
			require.Equal(t, "", written(base), "before the base")
			stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
				rec := change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("a"), Value: []byte("v")}}}
				require.NoError(t, tx.Restate(p, rec))
			}))
			require.Equal(t, "", written(base), "no client wrote it")
			write("b", "b")
			require.Equal(t, whole("b"), written(base))
			require.Equal(t, whole("bc"), written(base, "c"), "a deletion in the same group")
			require.Equal(t, "", written(base+1), "of another base")
			require.Equal(t, ranges.SettleBegun, settle(true))
			require.Equal(t, base, why().Here.Seq, "once")
			head := s.Leader(id).Machine.Head(st)
			require.Equal(t, ranges.SettleBegun, settle(false))
			require.Equal(t, change.StopSettling, why().Reason, "the rest for the side of the source")
			require.Equal(t, head, s.Leader(id).Machine.Head(st), "from the same base")
			require.Equal(t, "", written(base), "forgotten")
			write("a")
			require.Equal(t, "", written(base))
			require.Equal(t, ranges.SettleOther, settle(true))

			forked()
			require.Equal(t, ranges.SettleBegun, settle(true))
			stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
				takes, err := tx.Takes(p, []byte("a"))
				require.NoError(t, err)
				require.True(t, takes)
				require.NoError(t, tx.Leave(p, []byte("a")))
				takes, err = tx.Takes(p, []byte("a"))
				require.NoError(t, err)
				require.False(t, takes, "it is left as it is")
			}))
			former := why().Here.Seq
			require.Equal(t, whole("a"), written(former))
			forked()
			require.Equal(t, ranges.SettleBegun, settle(true))
			write("a")
			base = why().Here.Seq
			require.Equal(t, whole("a"), written(base))
			require.Equal(t, "", written(former), "a settlement that did not end leaves nothing")
			arrive(t, s, id, &ranges.EndSettle{Stream: st, Base: why().Here})
			require.Equal(t, change.Stop{}, why())
			require.Equal(t, "", written(base), "it has ended")
			write("a")
			require.Equal(t, "", written(base))
		}
	})
}

// R16: the receiver's side is not kept where the receiver lacks what it had acknowledged, whatever it has stopped the
// stream for: a fork that was found before it was recovered with loss stays its reason. Nor by a command for another cursor
// than that which the settlement under way began from. The source's side may be kept.
func TestR16SideThatLacksRecordsIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "north", geo.Table)
		id := geo.FirstRange(geo.Table)
		gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		p := keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "o"}
		st := geo.Stream{Account: "acct", Epoch: gate.Epoch, Range: id, Lane: p.Lane()}
		for range 4 {
			rec := change.Record{Ops: []change.Op{{Row: []byte("a"), Value: []byte("v")}}}
			stamptest.Submit(t, s, id, stamptest.Change{Partition: p, Record: rec})
		}
		stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) { require.NoError(t, tx.Trim(st, 2)) }))
		for _, c := range []struct {
			reason change.StopReason
			from   geo.Seq
			take   bool
			want   ranges.SettleOutcome
		}{
			{change.StopForked, 1, true, ranges.SettleLacks},
			{change.StopTaking, 1, true, ranges.SettleLacks},
			{change.StopLost, 9, true, ranges.SettleLacks},
			// A new base would not say what clients have written since the first one.
			{change.StopTaking, 9, true, ranges.SettleNotStopped},
			{change.StopSettling, 9, true, ranges.SettleNotStopped},
			{change.StopTaking, 9, false, ranges.SettleBegun},
			{change.StopForked, 2, true, ranges.SettleBegun},
			{change.StopForked, 9, true, ranges.SettleBegun},
			{change.StopForked, 1, false, ranges.SettleBegun},
			{change.StopLost, 1, false, ranges.SettleBegun},
		} {
			stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: c.reason, Here: geo.Head{Seq: 2}, There: geo.Head{Seq: 7}}})
			head := s.Leader(id).Machine.Head(st)
			cmd := &ranges.Settle{Stream: st, From: geo.Head{Seq: c.from, Hash: 5}, Take: c.take}
			arrive(t, s, id, cmd)
			require.Equal(t, c.want, cmd.Outcome, c)
			require.Equal(t, c.want == ranges.SettleBegun, s.Leader(id).Machine.Head(st) != head, c)
		}
	})
}

// R16: rows are taken from a receiver at a record only if that record is one of the source's chain, by number and hash.
// It is known of those from the last one that was deleted to the head, but not of one before a record that cannot be
// decoded (R11).
func TestR16HoldsWhatIsOfItsChain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 5)
		stamptest.Submit(t, s, st.Range, trims{st, []geo.Seq{2}})
		holds := func(at geo.Head) (is bool) {
			stamptest.Submit(t, s, st.Range, command(func(tx *ranges.Tx) {
				var err error
				is, err = tx.Holds(st, at)
				require.NoError(t, err)
			}))
			return is
		}
		m := s.Leader(st.Range).Machine
		chain := []geo.Head{m.TrimmedHead(st)}
		records, err := m.Outbox(st, 4, 1<<20)
		require.NoError(t, err)
		for i, r := range records {
			h, err := change.ParseHeader(r)
			require.NoError(t, err)
			chain = append(chain, geo.Head{Seq: geo.Seq(3 + i), Hash: h.Prev})
		}
		chain = append(chain, m.Head(st))
		require.Len(t, chain, 4)
		for i, at := range chain {
			require.EqualValues(t, 2+i, at.Seq)
			require.True(t, holds(at), at)
			require.False(t, holds(geo.Head{Seq: at.Seq, Hash: at.Hash + 1}), at)
		}
		require.False(t, holds(geo.Head{Seq: 1, Hash: chain[0].Hash}), "it is deleted")
		require.False(t, holds(geo.Head{}), "it is deleted")
		require.False(t, holds(geo.Head{Seq: 6, Hash: chain[3].Hash}), "it is above the head")
		stamptest.Submit(t, s, st.Range, spoils{st, 4, 4})
		require.False(t, holds(chain[1]))
		require.True(t, holds(chain[2]))
	})
}
