package outbox

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/state"
)

// accountAll calls Account until it is through.
func accountAll(t require.TestingT, store *state.Store, rowsMax int) (sum Tally) {
	local := keys.RangeLocal(testRange)
	for at, first := (Place{}), true; first || at.Begun(); first = false {
		it, err := store.Scan(local, keys.PrefixEnd(local))
		require.NoError(t, err)
		next, tally, err := Account(it, testRange, at, rowsMax)
		require.NoError(t, err)
		require.NoError(t, it.Close())
		sum.Add(tally)
		at = next
	}
	return sum
}

// R14, R16: the rows of an outbox that is filled and trimmed at random are all accounted for. Rows
// that are taken out, and rows beyond either end, are counted, whatever the size of a step.
//
// Capability: Two locations: Every number between what a stream has trimmed and its head is in the outbox (R14, R16).
func TestR16Account(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, err := state.Open("state", state.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		fill(t, store, rapid.IntRange(0, 60*geo.LaneCount).Draw(t, "records"))
		o, err := Open(testRange, store)
		require.NoError(t, err)
		b := store.NewBatch()
		left := map[geo.Stream][2]geo.Seq{}
		for lane := range geo.LaneCount {
			s := laneStream(lane)
			to := geo.Seq(rapid.Uint64Range(0, uint64(o.Head(s).Seq)).Draw(t, "trim"))
			at := o.heads[s]
			if to < at.Seq {
				var ok bool
				at, ok, err = Before(store, testRange, s, to+1)
				require.NoError(t, err)
				require.True(t, ok)
			}
			require.NoError(t, o.ApplyTrim(b, s, at))
			left[s] = [2]geo.Seq{to + 1, o.Head(s).Seq}
		}
		require.NoError(t, store.Commit(b))
		require.NoError(t, b.Close())
		rowsMax := rapid.IntRange(1, 100).Draw(t, "rowsMax")
		sum := accountAll(t, store, rowsMax)
		want := 0
		for _, ends := range left {
			want += int(ends[1] + 1 - ends[0])
		}
		require.Equal(t, Tally{Records: want, Bytes: sum.Bytes}, sum)

		var missing, extra int64
		b = store.NewBatch()
		for lane := range geo.LaneCount {
			s := laneStream(lane)
			ends := left[s]
			if ends[1] == 0 {
				continue
			}
			if ends[0] <= ends[1] && rapid.Bool().Draw(t, "drop") {
				n := geo.Seq(rapid.Uint64Range(uint64(ends[0]), uint64(ends[1])).Draw(t, "dropped"))
				require.NoError(t, b.SingleDelete(keys.Outbox(testRange, s, n)))
				missing++
			}
			if rapid.Bool().Draw(t, "above") {
				require.NoError(t, b.Set(keys.Outbox(testRange, s, ends[1]+2), []byte("row")))
				extra++
			}
			// A step that ends among the rows that are trimmed does not come back to them.
			if ends[0] > 1 && rapid.Bool().Draw(t, "below") {
				require.NoError(t, b.Set(keys.Outbox(testRange, s, ends[0]-1), []byte("row")))
				extra++
			}
		}
		require.NoError(t, store.Commit(b))
		require.NoError(t, b.Close())
		sum = accountAll(t, store, rowsMax)
		require.Equal(t, []int64{missing, extra}, []int64{sum.Missing, sum.Extra})
		if missing+extra > 0 {
			require.Contains(t, left, sum.First)
		}
	})
}
