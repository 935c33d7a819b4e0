package ranges_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// arrive has a command evaluated as one that came from another node, and returns its result there.
func arrive(t *testing.T, s *stamp.Stamp, id geo.RangeID, sent ranges.Portable) {
	t.Helper()
	arrived, err := ranges.OwnCommands()[sent.Kind()](sent.Encode())
	require.NoError(t, err)
	stamptest.Submit(t, s, id, arrived)
	require.NoError(t, sent.DecodeResult(arrived.EncodeResult()))
}

// R16: a settlement begins with a base above all that either end has seen, once; it ends for that base alone. A
// stream that is not forked or lost, of another epoch or too far is left alone.
//
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16Settle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "north", geo.Table)
		id := geo.FirstRange(geo.Table)
		gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
		stamptest.Submit(t, s, id, stamptest.Gate{Account: "acct", Gate: gate})
		st := geo.Stream{Account: "acct", Epoch: gate.Epoch, Range: id, Lane: 3}
		cursor := geo.Head{Seq: 5, Hash: 55}
		settle := func(of geo.Stream, from geo.Head, above geo.Seq) ranges.SettleOutcome {
			t.Helper()
			for {
				c := &ranges.Settle{Stream: of, From: from, Above: above}
				if arrive(t, s, id, c); c.Outcome != ranges.SettleMore {
					return c.Outcome
				}
			}
		}
		m := func() *ranges.Machine { return s.Leader(id).Machine }
		require.Equal(t, ranges.SettleNotStopped, settle(st, cursor, 0))
		stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: change.StopPoison}})
		require.Equal(t, ranges.SettleNot, settle(st, cursor, 0))
		stamptest.Submit(t, s, id, &stop{s: st, why: change.Stop{Reason: change.StopForked, There: cursor}})
		require.Equal(t, ranges.SettleFar, settle(st, cursor, 1<<40))
		former := st
		former.Epoch.Number = 0
		require.Equal(t, ranges.SettleNotHere, settle(former, cursor, 0))
		require.Zero(t, m().Head(st), "nothing is numbered where nothing begins")

		require.Equal(t, ranges.SettleBegun, settle(st, cursor, 10_007), "more than one group")
		why, _ := m().Stopped(st)
		base := m().Head(st)
		require.Equal(t, geo.Seq(10_008), base.Seq)
		require.Equal(t, change.Stop{Reason: change.StopSettling, Here: base, There: cursor, At: why.At}, why)
		require.Equal(t, ranges.SettleBegun, settle(st, cursor, 0))
		require.Equal(t, base, m().Head(st), "once")
		settles := &ranges.Settle{Stream: st, From: base, Settles: true}
		arrive(t, s, id, settles)
		require.Equal(t, ranges.SettleBegun, settles.Outcome)
		require.Equal(t, base, m().Head(st), "a receiver that has it")
		require.Equal(t, ranges.SettleBegun, settle(st, geo.Head{Seq: 4, Hash: 44}, 0), "a receiver that was recovered with loss")
		again, _ := m().Stopped(st)
		require.Equal(t, base.Seq+1, again.Here.Seq)
		require.Equal(t, geo.Head{Seq: 4, Hash: 44}, again.There)

		end := &ranges.EndSettle{Stream: st, Base: base}
		arrive(t, s, id, end)
		require.False(t, end.Ended, "of the base before")
		end.Base = again.Here
		arrive(t, s, id, end)
		require.True(t, end.Ended)
		_, stopped := m().Stopped(st)
		require.False(t, stopped)
		for kind, bad := range map[string][]byte{"ranges.settle": []byte("{"), "ranges.endSettle": []byte(`{"Stream":{"Lane":99}}`), "ranges.dropFound": []byte("[")} {
			_, err := ranges.OwnCommands()[kind](bad)
			require.Error(t, err, kind)
		}
		require.Error(t, (&ranges.Settle{}).DecodeResult([]byte{200}))
		require.Error(t, (&ranges.EndSettle{}).DecodeResult([]byte{2}))
		require.Error(t, (&ranges.DropFound{}).DecodeResult([]byte{1}))
	})
}

// R16: what a settlement overwrites is kept once for each base, with the payload that the node has, and dropped
// by name alone. Rows of clients are not dropped that way.
//
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16LostAndFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stamptest.New(t, "south", geo.Table)
		id := geo.FirstRange(geo.Table)
		st := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: id, Lane: 3}
		here := extent.Ref{ID: extent.ChunkID{1}, Length: 1, CRC: 1}
		require.NoError(t, s.PutChunk(t.Context(), chunkOf("payload"), []byte("payload")))
		row := (keys.Partition{Service: geo.Table, Account: "acct", Container: "t", Object: "o"}).Append(nil)
		keep := func(base geo.Seq, value string) command {
			return func(tx *ranges.Tx) {
				require.NoError(t, tx.KeepFound(st, base, row, []byte(value), []extent.Ref{chunkOf("payload"), here}))
			}
		}
		stamptest.Submit(t, s, id, keep(7, "first"))
		stamptest.Submit(t, s, id, keep(7, "second"))
		stamptest.Submit(t, s, id, keep(8, "third"))
		get := func(base geo.Seq) (f change.Found, ok bool) {
			key := append(keys.Found(geo.Table, st, base).Append(nil), row...)
			require.NoError(t, s.Read(t.Context(), id, func(state ranges.State) error {
				v, found, err := state.Get(key)
				if ok = found; err == nil && found {
					f, err = change.ParseFound(v)
				}
				return err
			}))
			return f, ok
		}
		f, ok := get(7)
		require.True(t, ok)
		require.Equal(t, change.Found{At: f.At, Value: []byte("first"), Missing: 1, Chunks: []extent.Ref{chunkOf("payload")}}, f)
		f, _ = get(8)
		require.Equal(t, "third", string(f.Value))
		drop := &ranges.DropFound{Keys: [][]byte{append(keys.Found(geo.Table, st, 7).Append(nil), row...), append(keys.Found(geo.Table, st, 9).Append(nil), row...)}}
		arrive(t, s, id, drop)
		require.Equal(t, 1, drop.Dropped)
		_, ok = get(7)
		require.False(t, ok)
		done := make(chan error, 1)
		s.Leader(id).Submit(&ranges.DropFound{Keys: [][]byte{row}}, func(err error) { done <- err })
		require.Error(t, <-done)
	})
}

func chunkOf(data string) extent.Ref { return extent.NewRef(extent.ChunkID{9}, []byte(data)) }
