package ranges_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

func trimmedPartition() keys.Partition {
	return keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "p"}
}

// writes is a command that makes n changes of one partition.
type writes struct{ n int }

func (c writes) Evaluate(tx *ranges.Tx) error {
	p := trimmedPartition()
	for i := range c.n {
		rec := change.Record{
			CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte(fmt.Sprint(i)), Value: []byte("v")}},
		}
		if err := tx.Change(p, rec); err != nil {
			return err
		}
	}
	return nil
}

// trims is a command that asks to trim one stream up to each of several numbers.
type trims struct {
	s    geo.Stream
	upTo []geo.Seq
}

func (c trims) Evaluate(tx *ranges.Tx) error {
	for _, n := range c.upTo {
		if err := tx.Trim(c.s, n); err != nil {
			return err
		}
	}
	return nil
}

// stampWithStream returns a stamp with a stream of some records.
func stampWithStream(t *testing.T, records int) (*stamp.Stamp, geo.Stream) {
	s := stamptest.New(t, "north", geo.Table)
	id := geo.FirstRange(geo.Table)
	epoch := geo.Epoch{Number: 1, Location: "north"}
	gate := change.Gate{Epoch: epoch, Role: change.RolePrimary, Open: true, Numbered: true}
	stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
	for left := records; left > 0; left -= 4000 {
		stamptest.Submit(t, s, id, writes{min(left, 4000)})
	}
	return s, geo.Stream{Account: "acct", Epoch: epoch, Range: id, Lane: trimmedPartition().Lane()}
}

// A group deletes 10,000 rows of the outbox at most, of all its trims together; the next one goes
// on, and what is left behind is counted without a row being read (invariant 8).
func TestTrimRowsMax(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, outbox.TrimRowsMax+100)
		id := geo.FirstRange(geo.Table)
		machine := func() *ranges.Machine { return s.Leader(id).Machine }
		require.EqualValues(t, outbox.TrimRowsMax+100, machine().Head(st).Seq)

		stamptest.Submit(t, s, id, trims{st, []geo.Seq{10}})
		require.EqualValues(t, 10, machine().Trimmed(st))
		records, err := machine().Outbox(st, 11, 1)
		require.NoError(t, err)
		h, err := change.ParseHeader(records[0])
		require.NoError(t, err)
		require.Equal(t, geo.Head{Seq: 10, Hash: h.Prev}, machine().TrimmedHead(st), "the last record deleted is still known by its hash")

		stamptest.Submit(t, s, id, trims{st, []geo.Seq{outbox.TrimRowsMax + 100}})
		require.EqualValues(t, outbox.TrimRowsMax+10, machine().Trimmed(st))
		b, err := machine().Backlog()
		require.NoError(t, err)
		require.EqualValues(t, 90, b.Records)
		require.NotZero(t, b.Oldest)

		// A number above the head, or below what is deleted, asks for nothing more.
		stamptest.Submit(t, s, id, trims{st, []geo.Seq{5, outbox.TrimRowsMax + 1000}})
		require.Equal(t, machine().Head(st), machine().TrimmedHead(st))
		b, err = machine().Backlog()
		require.NoError(t, err)
		require.Zero(t, b)
	})
}

// A stopped stream is not trimmed, in whichever order a group stops and trims it (R16).
func TestR16StoppedStreamIsNotTrimmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := stampWithStream(t, 10)
		id := geo.FirstRange(geo.Table)
		stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: change.StopForked}})
		stamptest.Submit(t, s, id, trims{st, []geo.Seq{10}})
		require.Zero(t, s.Leader(id).Machine.Trimmed(st))
		stamptest.Submit(t, s, id, &stop{s: st})
		stamptest.Submit(t, s, id, trims{st, []geo.Seq{10}})
		require.EqualValues(t, 10, s.Leader(id).Machine.Trimmed(st))
	})
}

// spoils is a command that makes rows of a stream's outbox ones that cannot be decoded.
type spoils struct {
	s        geo.Stream
	from, to geo.Seq
}

func (c spoils) Evaluate(tx *ranges.Tx) error {
	for n := c.from; n <= c.to; n++ {
		key := keys.Outbox(tx.Range(), c.s, n)
		end := len(key) - 1
		rec := change.Record{CommitTime: tx.Timestamp(0), Partition: key[:end], Ops: []change.Op{{Row: key[end:], Value: []byte("no record")}}}
		if err := tx.Change(keys.Partition{Service: geo.Table, Account: "stranger"}, rec); err != nil {
			return err
		}
	}
	return nil
}

// R10, R11: a record that cannot be decoded, just behind what one group may delete, keeps no stream of a former epoch in
// the outbox: the group deletes up to one before. Where none can be decoded the rows stay, and who ends the streams
// is not asked for more for ever.
func TestR11UnreadableRecordOfAFormerEpochIsDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to geo.Seq
		left     int64
	}{
		"one": {outbox.TrimRowsMax + 1, outbox.TrimRowsMax + 1, 0},
		"all": {1, outbox.TrimRowsMax + 100, outbox.TrimRowsMax + 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, st := stampWithStream(t, outbox.TrimRowsMax+100)
				for n := c.from; n <= c.to; n += 1000 {
					stamptest.Submit(t, s, st.Range, spoils{st, n, min(n+999, c.to)})
				}
				next := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
				stamptest.Submit(t, s, st.Range, stamptest.Gate{Account: "acct", Gate: next})
				for turn, more := 0, true; more; turn++ {
					require.Less(t, turn, 3)
					stamptest.Submit(t, s, st.Range, command(func(tx *ranges.Tx) {
						var err error
						more, err = tx.EndStreams("acct")
						require.NoError(t, err)
						more = tx.ForgetStreams("acct", next.Epoch) || more
					}))
				}
				require.Equal(t, c.left > 0, s.Leader(st.Range).Machine.Head(st).Seq > 0, "it is forgotten once nothing of it is left")
				b, err := s.Leader(st.Range).Machine.Backlog()
				require.NoError(t, err)
				require.Equal(t, c.left, b.Records)
			})
		})
	}
}
