package verify

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/keys"
)

// Two equal copies: all lanes are compared, nothing is reported, and less than 1 % of the data crosses.
func TestEqual(t *testing.T) {
	w := newWorld()
	bytes := 0
	for i := range 2000 {
		key, value := rowKey("t", fmt.Sprint(i%400), fmt.Sprint(i)), fmt.Sprintf("%01000d", i)
		w.both(key, value)
		bytes += len(key) + len(value)
	}
	out := w.run(t)
	require.Equal(t, geo.LaneCount, out.Compared)
	require.Empty(t, out.Differences)
	require.Zero(t, out.Total)
	require.EqualValues(t, 2000, out.Rows)
	require.EqualValues(t, bytes, out.Bytes)
	require.Less(t, w.remote.Crossed(), out.Bytes/100)
}

// Whatever is planted at the secondary is found, each as what it is, and nothing else is: rows that are
// missing, extra, or different in one bit, in any partition, with few rows or many.
func TestPlantedDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		partitions := rapid.IntRange(1, 60).Draw(t, "partitions")
		n := rapid.IntRange(0, 600).Draw(t, "rows")
		all := make([]string, 0, n)
		for i := range n {
			key := rowKey("t", fmt.Sprint(i%partitions), fmt.Sprint(i))
			w.both(key, fmt.Sprintf("value %d", i))
			all = append(all, key)
		}
		want := map[string]Kind{}
		for _, i := range rapid.SliceOfDistinct(rapid.IntRange(0, 700), func(i int) int { return i }).Draw(t, "planted") {
			switch kind := rapid.SampledFrom([]Kind{Missing, Extra, Different}).Draw(t, "kind"); {
			case kind == Extra || i >= n:
				key := rowKey("t", fmt.Sprint(i%partitions), fmt.Sprint("extra ", i))
				w.far.rows[key] = "v"
				want[key] = Extra
			case kind == Missing:
				delete(w.far.rows, all[i])
				want[all[i]] = Missing
			default:
				value := []byte(w.far.rows[all[i]])
				value[len(value)-1] ^= 1
				w.far.rows[all[i]] = string(value)
				want[all[i]] = Different
			}
		}
		out := w.run(t)
		require.Equal(t, geo.LaneCount, out.Compared)
		require.Equal(t, want, found(out))
		require.EqualValues(t, len(want), out.Total)
		require.False(t, out.AtLeast)
		require.True(t, slices.IsSortedFunc(out.Differences, func(a, b Difference) int { return slices.Compare(a.Key, b.Key) }))
	})
}

// R8: rows of a generation that the primary's catalog has deleted are no differences, whichever of the two locations
// has skipped or swept them. Rows of another account or service are no differences either.
func TestR8DeletedGenerations(t *testing.T) {
	w := newWorld()
	w.both(rowKey("t", "p", "r"), "v")
	w.near.set(rowKey("deleted", "p", "r"), "the secondary skipped it")
	w.far.set(rowKey("swept", "p", "r"), "the primary has swept it")
	old := partition("t", "p")
	old.Generation.Created--
	w.far.set(string(keys.AppendString(old.Append(nil), "r")), "replaced")
	other := partition("t", "p")
	other.Account = "acct2"
	w.far.set(string(keys.AppendString(other.Append(nil), "r")), "another account")
	out := w.run(t)
	require.Empty(t, out.Differences)
	require.EqualValues(t, 1, out.Rows)
}

// R11: a lane whose two ends differ is tried again with other snapshots, and compared once they stand at
// the same record. What it had in between is never a difference.
func TestR11MovedLaneIsTriedAgain(t *testing.T) {
	w := newWorld()
	key := rowKey("t", "p", "r")
	lane := partition("t", "p").Lane()
	w.near.set(key, "new")
	w.far.set(key, "old")
	w.far.head(false, lane, geo.Head{Seq: 4, Hash: 3})
	w.far.before = func(n int) error {
		if n == triesMax+2 { // In the second round.
			w.far.set(key, "new")
			w.far.head(false, lane, geo.Head{Seq: 5, Hash: 9})
		}
		return nil
	}
	var rounds []Progress
	w.c.Progress = func(p Progress) { rounds = append(rounds, p) }
	out := w.run(t)
	require.Equal(t, geo.LaneCount, out.Compared)
	require.Empty(t, out.Differences)
	require.Empty(t, out.Uncompared)
	require.EqualValues(t, 1, out.Rows)
	require.Equal(t, 2, rounds[len(rounds)-1].Round)
}

// R11: a lane that never stands at the same record is listed as not compared, and so is one with the same
// number and another hash; the other lanes are compared.
func TestR11LaneThatAlwaysMoves(t *testing.T) {
	w := newWorld()
	key := rowKey("t", "p", "r")
	lane := partition("t", "p").Lane()
	forked := (lane + 1) % geo.LaneCount
	w.near.set(key, "new")
	w.far.set(key, "old")
	w.near.head(true, lane, geo.Head{Seq: 6, Hash: 1})
	w.far.head(false, forked, geo.Head{Seq: 5, Hash: 8})
	out := w.run(t)
	require.Equal(t, geo.LaneCount-2, out.Compared)
	require.Empty(t, out.Differences)
	require.ElementsMatch(t, []Uncompared{
		{lane, "moved: the secondary was at #5, the head at #6"}, {forked, "record #5 is not the same in both locations"},
	}, out.Uncompared)
}

// R16: a stream that is stopped at either end is listed as stopped, at once.
//
// Capability: Two locations: A fork is settled for the secondary's side too (R16).
func TestR16StoppedLane(t *testing.T) {
	w := newWorld()
	w.far.set(string(keys.Stop(testRange, stream(3))), string(stopValue()))
	w.near.set(string(keys.Stop(testRange, stream(4))), string(stopValue()))
	out := w.run(t)
	require.Equal(t, geo.LaneCount-2, out.Compared)
	require.Equal(t, []Uncompared{
		{3, "the stream is stopped at the secondary: forked"}, {4, "the stream is stopped at the primary: forked"},
	}, out.Uncompared)
	require.Equal(t, 1, w.near.opens)
}

// Each chunk that a row of the secondary names is looked for there, and read if that is asked for. A row
// that was replaced since the snapshot may have lost its chunks.
func TestPayload(t *testing.T) {
	w := newWorld()
	for i := range 5 {
		w.both(rowKey("t", "p", fmt.Sprint(i)), chunkRow(i))
	}
	w.both(rowKey("t", "p", "bad"), "bad row")
	w.far.lost[chunkID(1)], w.far.lost[chunkID(2)], w.far.bad[chunkID(3)] = true, true, true
	w.far.before = func(n int) error {
		if n == 2 { // The first look again, after the snapshot of the session.
			w.far.set(rowKey("t", "p", "1"), chunkRow(7))
		}
		return nil
	}
	w.c.Payload = PayloadPresent
	want := map[string]Kind{rowKey("t", "p", "2"): PayloadMissing, rowKey("t", "p", "bad"): PayloadCorrupt}
	out := w.run(t)
	require.Equal(t, want, found(out))
	require.EqualValues(t, 5, out.Chunks)
	require.Zero(t, out.ChunkBytes)

	w.far.before = nil
	w.both(rowKey("t", "p", "1"), chunkRow(7))
	w.c.Payload = PayloadRead
	want[rowKey("t", "p", "3")] = PayloadCorrupt
	out = w.run(t)
	require.Equal(t, want, found(out))
	require.EqualValues(t, (3*3+2)<<20, out.ChunkBytes, "three chunks whole, one up to its damage")
}

// More differences than are listed: all that is known is counted, the list is cut, and says so.
func TestManyDifferences(t *testing.T) {
	w := newWorld()
	for i := range 3000 {
		w.near.set(rowKey("t", fmt.Sprint(i), "r"), "v")
	}
	w.c.DifferencesMax = 100
	out := w.run(t)
	require.Len(t, out.Differences, 100)
	require.True(t, out.AtLeast)
	require.Greater(t, out.Total, uint64(100))
	require.LessOrEqual(t, out.Total, uint64(3000))

	w.c.DifferencesMax = 3000
	out = w.run(t)
	require.Len(t, out.Differences, 3000)
	require.EqualValues(t, 3000, out.Total)
	require.False(t, out.AtLeast)
}

// A session that is gone, or a call that fails, costs a round: nothing of that round is reported twice.
func TestSessionsGone(t *testing.T) {
	w := newWorld()
	w.both(rowKey("t", "p", "r"), "v")
	w.near.set(rowKey("t", "p", "missing"), "v")
	calls := 0
	w.fail = func() error {
		if calls++; calls == 3 {
			return errors.Join(w.receiver.Close(), errors.New("the node stops"))
		}
		return nil
	}
	out := w.run(t)
	require.Equal(t, map[string]Kind{rowKey("t", "p", "missing"): Missing}, found(out))
	require.EqualValues(t, 1, out.Total)
	require.EqualValues(t, 2, out.Rows)

	w.fail = func() error { return errors.New("the link is cut") }
	out = w.run(t)
	require.Zero(t, out.Compared)
	require.Len(t, out.Uncompared, geo.LaneCount)
	require.Contains(t, out.Uncompared[0].Reason, "the link is cut")
}
