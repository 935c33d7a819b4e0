package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/stamp/extent"
)

// fixer repairs rows of a world at once: what it answers for a row is already at the secondary.
type fixer struct {
	w     *world
	calls [][]string
	// before answers in place of the repair, where it is not nil and returns a fate.
	before func(key string) (Repaired, bool)
	fail   func(call int) error
	found  []Result
	last   Repairs
}

func newFixer(w *world) *fixer { return &fixer{w: w} }

func (f *fixer) rows(_ context.Context, rows [][]byte, _ func(context.Context, int) error) (out []Repaired, bytes uint64, err error) {
	call := make([]string, 0, len(rows))
	for _, key := range rows {
		call = append(call, string(key))
	}
	f.calls = append(f.calls, call)
	if f.fail != nil {
		if err := f.fail(len(f.calls)); err != nil {
			return nil, 0, err
		}
	}
	for _, key := range call {
		if f.before != nil {
			if fate, answered := f.before(key); answered {
				out = append(out, fate)
				continue
			}
		}
		fate, n := f.one(key)
		out, bytes = append(out, Repaired{Fate: fate}), bytes+n
	}
	return out, bytes, nil
}

// one makes a row of the secondary, and its payload, what it is at the primary.
func (f *fixer) one(key string) (Fate, uint64) {
	f.w.near.mu.Lock()
	value, present := f.w.near.rows[key]
	f.w.near.mu.Unlock()
	f.w.far.mu.Lock()
	defer f.w.far.mu.Unlock()
	if !present {
		delete(f.w.far.rows, key)
		return FateDeleted, uint64(len(key))
	}
	f.w.far.rows[key] = value
	refs, _ := rowChunks(nil, []byte(value))
	for _, ref := range refs {
		delete(f.w.far.lost, ref.ID)
		delete(f.w.far.bad, ref.ID)
	}
	return FateSet, uint64(len(key) + len(value))
}

// run repairs, and returns what was done and what the last comparison found.
func (f *fixer) run(t require.TestingT) (Repairs, Result) {
	out, err := f.repair(context.Background())
	require.NoError(t, err)
	require.Empty(t, f.w.source.open)
	require.Empty(t, f.w.receiver.open)
	require.Equal(t, []uint64{out.Set, out.Deleted, out.Gone, out.Not}, f.last.counts(out))
	require.Len(t, out.Rows, int(out.Set+out.Deleted+out.Gone+out.Not))
	return out, f.found[len(f.found)-1]
}

// counts are those of the last report, with what is given up without a call.
func (o Repairs) counts(end Repairs) []uint64 { return []uint64{o.Set, o.Deleted, o.Gone, end.Not} }

func (f *fixer) repair(ctx context.Context) (Repairs, error) {
	return Repair(ctx, Repairing{
		Comparison: f.w.c, Rows: f.rows, Clock: f.w.clock, RepairBytesPerSecond: 1 << 40,
		Compared: func(r Result) { f.found = append(f.found, r) }, Repaired: func(r Repairs) { f.last = r },
	})
}

// Whatever is planted at the secondary is found and repaired, each row once and nothing else:
// rows that are missing, extra (deleted ones that came back, too), or different in one bit, payload
// that is lost or damaged. The next comparison is clean.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
func TestPlantedDifferencesAreRepaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.c.Payload = PayloadRead
		w.c.DifferencesMax = rapid.SampledFrom([]int{0, 20}).Draw(t, "at once")
		n := rapid.IntRange(0, 400).Draw(t, "rows")
		partitions := rapid.IntRange(1, 60).Draw(t, "partitions")
		row := func(i int) string { return rowKey("t", fmt.Sprint(i%partitions), fmt.Sprint(i)) }
		for i := range n {
			value := fmt.Sprint("value ", i)
			if i%3 == 0 {
				value = chunkRow(i)
			}
			w.both(row(i), value)
		}
		want := map[string]Fate{}
		for _, i := range rapid.SliceOfDistinct(rapid.IntRange(0, 500), func(i int) int { return i }).Draw(t, "planted") {
			switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
			case i >= n:
				w.far.rows[row(i)] = "extra"
				want[row(i)] = FateDeleted
				continue
			case kind == 0:
				delete(w.far.rows, row(i))
			case kind == 1 && i%3 == 0:
				w.far.lost[chunkID(i)] = true
			case kind == 2 && i%3 == 0:
				w.far.bad[chunkID(i)] = true
			default:
				value := []byte(w.far.rows[row(i)])
				value[0] ^= 1
				w.far.rows[row(i)] = string(value)
			}
			want[row(i)] = FateSet
		}
		f := newFixer(w)
		out, last := f.run(t)
		require.Zero(t, last.Total)
		require.Zero(t, out.Not)
		require.False(t, out.More)
		got := map[string]Fate{}
		for key, r := range out.Rows {
			got[key] = r.Fate
		}
		require.Equal(t, want, got)
		asked := slices.Concat(f.calls...)
		require.Len(t, asked, len(want), "each row once")
		for l := range w.near.rows {
			if _, named := want[l]; named {
				require.Equal(t, w.near.rows[l], w.far.rows[l])
			}
		}
		again, err := Run(context.Background(), w.c)
		require.NoError(t, err)
		require.Zero(t, again.Total)
	})
}

// Many rows are repaired in calls of a bounded number of rows, and in several rounds where more differ than
// one comparison lists.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
func TestRepairOfManyRows(t *testing.T) {
	w := newWorld()
	for i := range 3000 {
		w.near.set(rowKey("t", fmt.Sprint(i), "r"), "v")
	}
	w.c.DifferencesMax = 700
	f := newFixer(w)
	out, last := f.run(t)
	require.Zero(t, last.Total)
	require.EqualValues(t, 3000, out.Set)
	require.Greater(t, len(f.found), 3)
	for _, call := range f.calls {
		require.LessOrEqual(t, len(call), RepairRowsMax)
		require.True(t, slices.IsSorted(call), "rows of a partition follow each other")
	}
}

// Rows that a call leaves for later are asked for again at once, and rows that wait for payload after a
// pause. A call that fails, as without a leader, is repeated as it was.
//
// Capability: Two locations: What differs is repaired from the primary while clients write.
func TestRepairIsAskedAgain(t *testing.T) {
	w := newWorld()
	for i := range 6 {
		w.near.set(rowKey("t", "p", fmt.Sprint(i)), "v")
	}
	f := newFixer(w)
	asked := map[string]int{}
	f.before = func(key string) (Repaired, bool) {
		asked[key]++
		switch row := key[len(key)-3]; {
		case row == '5' && asked[key] < 3:
			return Repaired{Fate: FateLater}, true
		case row == '4' && asked[key] < 4:
			return Repaired{Fate: FateWaits}, true
		case row == '3':
			return Repaired{Fate: FateGone}, true
		}
		return Repaired{}, false
	}
	f.fail = func(call int) error {
		if call < 4 {
			return errors.New("no leader")
		}
		return nil
	}
	key := rowKey("t", "p", "3")
	w.prefixes = [][]byte{containerPrefix("t")}
	w.c.Progress = func(Progress) {
		if len(f.calls) > 4 { // The container of that row is gone: it is not compared any more.
			delete(w.near.rows, key)
		}
	}
	out, last := f.run(t)
	require.Zero(t, last.Total)
	require.Equal(t, []uint64{5, 0, 1, 0}, []uint64{out.Set, out.Deleted, out.Gone, out.Not})
	require.Equal(t, 4, asked[rowKey("t", "p", "4")])
	require.GreaterOrEqual(t, w.waited, 3*payloadPause+askPause+2*askPause+4*askPause)
}

// Rows that cannot be repaired are named with their reason, and end the repair. The reasons are: payload
// that never comes to the leader, rows that cannot be read at the primary, rows that differ again and
// again, and no call that succeeds.
func TestRepairGivesUp(t *testing.T) {
	w := newWorld()
	for i := range 5 {
		w.near.set(rowKey("t", "p", fmt.Sprint(i)), "v")
	}
	f := newFixer(w)
	f.before = func(key string) (Repaired, bool) {
		switch key[len(key)-3] {
		case '1':
			return Repaired{Fate: FateWaits}, true
		case '2':
			return Repaired{FateNot, "damaged at the primary"}, true
		case '3':
			return Repaired{Fate: FateSet}, true // It is not.
		}
		return Repaired{}, false
	}
	out, last := f.run(t)
	require.EqualValues(t, 3, last.Total)
	require.Equal(t, []uint64{2, 0, 0, 3}, []uint64{out.Set, out.Deleted, out.Gone, out.Not})
	require.Contains(t, out.Rows[rowKey("t", "p", "1")].Reason, "payload is not at the node that leads")
	require.Equal(t, "damaged at the primary", out.Rows[rowKey("t", "p", "2")].Reason)
	require.Contains(t, out.Rows[rowKey("t", "p", "3")].Reason, "differs again after it was repaired 3 times")

	f = newFixer(w)
	f.fail = func(int) error { return errors.New("no leader") }
	out, last = f.run(t)
	require.EqualValues(t, 3, last.Total)
	require.EqualValues(t, 3, out.Not)
	require.Equal(t, "no leader", out.Rows[rowKey("t", "p", "1")].Reason)
	require.Len(t, f.calls, askTries)
}

// A repair that was interrupted is continued by the next: only what differs still is repaired.
func TestRepairIsResumed(t *testing.T) {
	w := newWorld()
	for i := range 3 * RepairRowsMax {
		w.near.set(rowKey("t", fmt.Sprint(i), "r"), "v")
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := newFixer(w)
	f.fail = func(call int) error {
		if call == 2 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	out, err := f.repair(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, RepairRowsMax, out.Set)
	next := newFixer(w)
	out, last := next.run(t)
	require.EqualValues(t, 2*RepairRowsMax, out.Set)
	require.Zero(t, last.Total)
}

// A repair keeps its rate: what it sends, and what each row costs besides.
func TestRepairPace(t *testing.T) {
	w := newWorld()
	w.advance = true
	for i := range 4 * RepairRowsMax {
		w.near.set(rowKey("t", fmt.Sprint(i), "r"), "v")
	}
	began := w.clock.Mono()
	out, err := Repair(context.Background(), Repairing{
		Comparison: w.c, Clock: w.clock, RepairBytesPerSecond: 1 << 20, Compared: func(Result) {}, Repaired: func(Repairs) {},
		Rows: func(ctx context.Context, rows [][]byte, read func(context.Context, int) error) ([]Repaired, uint64, error) {
			if err := read(ctx, 1<<19); err != nil {
				return nil, 0, err
			}
			fates, _, err := newFixer(w).rows(ctx, rows, read)
			return fates, 1 << 20, err
		},
	})
	require.NoError(t, err)
	require.EqualValues(t, 4<<20, out.Bytes)
	require.GreaterOrEqual(t, w.clock.Mono()-began, 5*time.Second)
	require.Less(t, w.clock.Mono()-began, 7*time.Second)
}

// Two chunks that are damaged in one row are one repair.
func TestRepairOfARowWithTwoDamages(t *testing.T) {
	w := newWorld()
	key := rowKey("t", "p", "r")
	w.both(key, chunkRow(1))
	two := func(_, value []byte) ([]extent.Ref, error) {
		refs, err := rowChunks(nil, value)
		return append(refs, refs...), err
	}
	w.receiver.o.RowChunks = two
	w.far.lost[chunkID(1)] = true
	w.c.Payload = PayloadPresent
	f := newFixer(w)
	out, last := f.run(t)
	require.Zero(t, last.Total)
	require.EqualValues(t, 2, f.found[0].Total)
	require.EqualValues(t, 1, out.Set)
	require.Equal(t, [][]string{{key}}, f.calls)
}
