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
	"antipode/stamp/state"
)

// R17: a command reads rows as the commands before it in its group have left them, in the order of keys, those
// of its span alone and no more than it asks for. The range of the queue service keeps its changes in order, others do not.
//
// Capability: Two locations: The copy of an account is made while clients write, from LRS, and again (R17).
func TestR17RowsUnderChangesInFlight(t *testing.T) {
	t.Parallel()
	for _, service := range []geo.Service{geo.Table, geo.Queue} {
		t.Run(service.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { requireRowsInFlight(t, service) })
		})
	}
}

func requireRowsInFlight(t *testing.T, service geo.Service) {
	s := stamptest.New(t, "north", service)
	id := geo.FirstRange(service)
	stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: change.Gate{Role: change.RolePrimary, Open: true}})
	p := trimmedPartition()
	p.Service = service
	set := func(row, value string) change.Op {
		return change.Op{Row: []byte(row), Value: []byte(value), Delete: value == ""}
	}
	rec := func(ops ...change.Op) change.Record { return change.Record{Partition: p.Append(nil), Ops: ops} }
	stamptest.Submit(t, s, id, stamptest.Change{Partition: p, Record: rec(set("a", "1"), set("c", "1"), set("e", "1"), set("z", "1"))})
	key := func(row string) []byte { return append(p.Append(nil), row...) }
	var seen []string
	stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
		require.NoError(t, tx.Change(p, rec(set("b", "2"), set("c", ""), set("e", "2"), set("f", "2"), set("y", ""))))
		read := func(from, end string, most int) (out []string) {
			require.NoError(t, tx.Rows(key(from), key(end), func(k, v []byte) bool {
				if out = append(out, string(k[len(p.Append(nil)):])+"="+string(v)); len(out) == most {
					return false
				}
				return true
			}))
			return out
		}
		require.Equal(t, []string{"a=1", "b=2", "e=2", "f=2"}, read("a", "z", 9))
		require.Equal(t, []string{"a=1", "b=2"}, read("a", "z", 2))
		require.Equal(t, []string{"a=1"}, read("a", "z", 1))
		require.Equal(t, []string{"f=2"}, read("f", "z", 9), "all of them are in flight")
		require.Equal(t, []string{"e=2"}, read("c", "f", 9))
		seen = read("a", "zz", 9)
	}))
	require.Equal(t, []string{"a=1", "b=2", "e=2", "f=2", "z=1"}, seen)
}

// R17: a command reads no row that a wipe in flight deletes, but those that were set behind it.
//
// Capability: Storage on a node: Deleted tables and containers are swept.
func TestR17RowsBehindAWipe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		p := trimmedPartition()
		set := func(row string) change.Record {
			return change.Record{Partition: p.Append(nil), Ops: []change.Op{{Row: []byte(row), Value: []byte("v")}}}
		}
		stamptest.Submit(t, s, id, stamptest.Change{Partition: p, Record: set("a")})
		lower := keys.AppendAccount(nil, geo.Table, "acct")
		stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
			require.NoError(t, tx.Wipe(state.Span{Lower: lower, Upper: keys.PrefixEnd(lower)}))
			require.NoError(t, tx.Change(p, set("b")))
			var rows []byte
			require.NoError(t, tx.Rows(lower, keys.PrefixEnd(lower), func(k, _ []byte) bool {
				rows = append(rows, k[len(k)-1])
				return true
			}))
			require.Equal(t, "b", string(rows))
		}))
	})
}

// R17: how far an image is, is committed with the group, seen by the commands behind it, and kept over a restart.
func TestR17ImageIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "north", geo.Table)
		id := geo.FirstRange(geo.Table)
		m := change.Image{Epoch: geo.Epoch{Number: 2, Location: "north"}, Next: []byte("next"), Copied: change.ImageSize{Rows: 7}}
		image := func() (out change.Image) {
			stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
				var err error
				out, err = tx.Image("acct")
				require.NoError(t, err)
			}))
			return out
		}
		require.Zero(t, image())
		stamptest.Submit(t, s, id, command(func(tx *ranges.Tx) {
			tx.SetImage("acct", m)
			staged, err := tx.Image("acct")
			require.NoError(t, err)
			require.Equal(t, m, staged)
		}))
		require.Equal(t, m, image())
		for _, n := range s.Nodes() {
			require.NoError(t, s.Stop(n, true))
			require.NoError(t, s.Start(n))
		}
		require.Equal(t, m, image())
		there, err := ranges.ImageIn(s.Leader(id).State(), id, "acct")
		require.NoError(t, err)
		require.Equal(t, m, there)
	})
}

// R17: what the other location has acknowledged since an image's last step is counted from that step on, or from the
// first question, and again from zero in each epoch: what was acknowledged in a former one says nothing of the present streams.
func TestR17AcknowledgedSinceTheLastStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 6)
		var lengths []uint64
		records, err := s.Leader(st.Range).Machine.Outbox(st, 1, 1<<20)
		require.NoError(t, err)
		for _, r := range records {
			lengths = append(lengths, uint64(len(r)))
		}
		var waits change.Volume
		acked := func() (v change.Volume) {
			stamptest.Submit(t, s, st.Range, command(func(tx *ranges.Tx) {
				require.Zero(t, tx.AckedSinceImage("other"))
				v, waits = tx.AckedSinceImage("acct"), tx.Waiting("acct")
			}))
			return v
		}
		trim := func(upTo geo.Seq) { stamptest.Submit(t, s, st.Range, trims{st, []geo.Seq{upTo}}) }
		trim(2)
		require.Zero(t, acked())
		stamptest.Submit(t, s, st.Range, command(func(tx *ranges.Tx) { require.Zero(t, tx.AckedSinceImage("later")) }))
		trim(4)
		require.Equal(t, change.Volume{Bytes: lengths[2] + lengths[3]}, acked())
		require.Equal(t, change.Volume{Bytes: lengths[2] + lengths[3]}, acked(), "a question is no step")
		stamptest.Submit(t, s, st.Range, command(func(tx *ranges.Tx) { tx.SetImage("acct", change.Image{Epoch: st.Epoch}) }))
		require.Zero(t, acked())
		trim(5)
		require.Equal(t, change.Volume{Bytes: lengths[4]}, acked())
		require.Equal(t, change.Volume{Bytes: lengths[5]}, waits)

		st.Epoch.Number = 2
		gate := change.Gate{Epoch: st.Epoch, Role: change.RolePrimary, Open: true, Numbered: true}
		stamptest.Submit(t, s, st.Range, stamptest.Gate{Account: "acct", Gate: gate})
		require.Zero(t, acked())
		stamptest.Submit(t, s, st.Range, writes{1})
		require.Zero(t, acked(), "it waits")
		require.NotZero(t, waits)
		records, err = s.Leader(st.Range).Machine.Outbox(st, 1, 1<<20)
		require.NoError(t, err)
		trim(1)
		require.Equal(t, change.Volume{Bytes: uint64(len(records[0]))}, acked())
	})
}
