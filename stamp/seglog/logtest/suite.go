package logtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/stamp/state"
)

// Open opens the log in the folder "log" of a file system.
type Open func(t require.TestingT, fs vfs.FS) state.Log

// Run checks a log that keeps at least 1 MiB of each range's newest entries in memory
// and at most 5 MiB.
func Run(t *testing.T, open Open) {
	for _, tt := range []struct {
		name  string
		check func(*testing.T, Open)
	}{
		{"steps", steps},
		{"reset", reset},
		{"max size", maxSize},
		{"twin", twin},
		{"crash", crash},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, open) })
	}
}

// Step by step, and again after reopening: append, hard state, a conflicting suffix
// replaced, trim with the term at the cut kept, one range untouched by the other.
func steps(t *testing.T, open Open) {
	fs := vfs.NewMem()
	l := open(t, fs)
	g, other := Range(t, l, 4), Range(t, l, 5)
	var want Model
	Require(t, &want, g)
	step := func(stage func(b state.LogBatch) error) {
		Commit(t, l, true, stage)
		Require(t, &want, g)
		require.NoError(t, l.Close())
		l = open(t, fs)
		g, other = Range(t, l, 4), Range(t, l, 5)
		Require(t, &want, g)
	}
	want.Append(Entries(1, 1, 5, 100)...)
	step(func(b state.LogBatch) error { return g.Append(b, Entries(1, 1, 5, 100)) })
	want.Hard = [3]uint64{2, 3, 4}
	term, vote, index := uint64(2), uint64(3), uint64(4)
	step(func(b state.LogBatch) error {
		return g.SetHardState(b, &pb.HardState{Term: &term, Vote: &vote, Commit: &index})
	})
	want.Append(Entries(3, 2, 1, 60)...) // Entries 4 and 5 go with 3.
	step(func(b state.LogBatch) error { return g.Append(b, Entries(3, 2, 1, 60)) })
	want.Trim(2)
	step(func(b state.LogBatch) error { return g.Trim(b, 2) })
	step(func(b state.LogBatch) error { return g.Trim(b, 1) }) // Already gone.
	want.Trim(3)
	step(func(b state.LogBatch) error { return g.Trim(b, 3) })
	require.Zero(t, g.Bytes())
	conf := []*pb.Entry{Entry(4, 3, pb.EntryNormal, nil), Entry(5, 3, pb.EntryConfChangeV2, []byte("two nodes"))}
	want.Append(conf...)
	step(func(b state.LogBatch) error { return g.Append(b, conf) })
	require.Greater(t, g.Bytes(), uint64(len("two nodes")))
	count, bytes := g.UpTo(4)
	require.EqualValues(t, 1, count)
	require.LessOrEqual(t, bytes, g.Bytes())
	require.ErrorIs(t, g.Trim(l.NewBatch(), 6), raft.ErrUnavailable)
	Require(t, &Model{}, other)
	_, cs, err := g.InitialState()
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, cs.GetVoters())
	require.NoError(t, l.Close())
}

// A reset behind, at and above where the log ends lets it begin again there, in one batch
// with what follows, and keeps the hard state; a reset to zero empties the log.
func reset(t *testing.T, open Open) {
	for _, index := range []uint64{3, 5, 9, 0} {
		fs := vfs.NewCrashableMem()
		l := open(t, fs)
		g := Range(t, l, 4)
		term, vote, commit := uint64(4), uint64(2), uint64(3)
		want := Model{Hard: [3]uint64{term, vote, commit}}
		Commit(t, l, true, func(b state.LogBatch) error {
			if err := g.Append(b, Entries(1, 1, 5, 8)); err != nil {
				return err
			}
			return g.SetHardState(b, &pb.HardState{Term: &term, Vote: &vote, Commit: &commit})
		})
		cut := min(index, 1) * 4 // The term at zero is zero.
		last := geo.EntryID{Term: cut, Index: index}
		want.Reset(last)
		want.Append(Entries(index+1, 4, 2, 8)...)
		Commit(t, l, true, func(b state.LogBatch) error {
			if err := g.Reset(b, last); err != nil {
				return err
			}
			return g.Append(b, Entries(index+1, 4, 2, 8))
		})
		Require(t, &want, g)
		clone := fs.CrashClone(vfs.CrashCloneCfg{})
		require.NoError(t, l.Close())
		l = open(t, clone)
		Require(t, &want, Range(t, l, 4))
		require.NoError(t, l.Close())
	}
}

// Entries gives all that fits maxSize, at least one, from disk, from memory and across
// the two, and overwriting reaches behind what is in memory (table against a plain
// count).
func maxSize(t *testing.T, open Open) {
	const count, size, overhead = 20, 300 << 10, 32
	l := open(t, vfs.NewMem())
	g := Range(t, l, 4)
	all := Entries(1, 1, count, size)
	Commit(t, l, true, func(b state.LogBatch) error { return g.Append(b, all) })
	for lo := uint64(1); lo <= count+1; lo++ {
		for _, hi := range []uint64{lo, min(lo+1, count+1), min(lo+9, count+1), count + 1} {
			for fits, bytes := range []uint64{0, size + overhead, 3*(size+overhead) - 1, 3 * (size + overhead)} {
				got, err := g.Entries(lo, hi, bytes)
				require.NoError(t, err)
				want := min(int(hi-lo), max(1, fits)) // 0 and 1: one; just under three: two.
				require.Len(t, got, want, "[%d, %d) in %d bytes", lo, hi, bytes)
				for i, e := range got {
					require.Equal(t, Plain(all[int(lo)-1+i]), Plain(e))
				}
			}
		}
	}
	want := Model{Entries: all}
	Require(t, &want, g)
	want.Append(Entries(3, 2, 2, 10)...)
	Commit(t, l, true, func(b state.LogBatch) error { return g.Append(b, Entries(3, 2, 2, 10)) })
	Require(t, &want, g)
	require.NoError(t, l.Close())
}

// ranges are those that the random tests use.
func ranges() []geo.RangeID { return []geo.RangeID{4, 5, 9} }

// The log reads like plain slices through any run of appends, overwrites, trims and
// reopenings, synced or not, entries on disk and in memory alike (property).
func twin(t *testing.T, open Open) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		size := rapid.SampledFrom([]int{100, 8 << 10, 300 << 10}).Draw(t, "size")
		fs := vfs.NewMem()
		l := open(t, fs)
		models := map[geo.RangeID]*Model{}
		logs := map[geo.RangeID]state.RangeLog{}
		for _, id := range ranges() {
			models[id], logs[id] = &Model{}, Range(t, l, id)
		}
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				Commit(t, l, rapid.Bool().Draw(t, "sync"), func(b state.LogBatch) error {
					for range rapid.IntRange(1, 6).Draw(t, "steps") {
						id := rapid.SampledFrom(ranges()).Draw(t, "range")
						if err := Step(rng, logs[id], models[id], b, size); err != nil {
							return err
						}
					}
					return nil
				})
			},
			"reopen": func(t *rapid.T) {
				require.NoError(t, l.Close())
				l = open(t, fs)
				for _, id := range ranges() {
					logs[id] = Range(t, l, id)
				}
			},
			"read": func(t *rapid.T) {
				for _, id := range ranges() {
					Require(t, models[id], logs[id])
				}
			},
		})
		for _, id := range ranges() {
			Require(t, models[id], logs[id])
		}
		require.NoError(t, l.Close())
	})
}

// Whatever Commit(true) returned for survives a crash of the file system, for every
// range in the batch; what was not synced survives whole batches from the oldest on, or
// not at all (R3, R4, invariant 1; over seeds, three crashes each).
func crash(t *testing.T, open Open) {
	for _, percent := range []int{0, 50} {
		for seed := range uint64(6) {
			crashLog(t, open, percent, rand.New(rand.NewPCG(seed, uint64(percent))))
		}
	}
}

func crashLog(t *testing.T, open Open, percent int, rng *rand.Rand) {
	fs := vfs.NewCrashableMem()
	models := [2]*Model{{}, {}}
	for range 3 {
		l := open(t, fs)
		logs := [2]state.RangeLog{Range(t, l, 4), Range(t, l, 5)}
		// states[i] is the log after i batches; those from synced on may be found.
		states, synced := []string{fmt.Sprint(models[0], models[1])}, 0
		after := [][2]*Model{{models[0].Clone(), models[1].Clone()}}
		for range 5 + rng.IntN(30) {
			sync := rng.IntN(3) == 0
			Commit(t, l, sync, func(b state.LogBatch) error {
				for range 1 + rng.IntN(4) {
					i := rng.IntN(2)
					if err := Step(rng, logs[i], models[i], b, 8<<10); err != nil {
						return err
					}
				}
				return nil
			})
			states = append(states, fmt.Sprint(models[0], models[1]))
			after = append(after, [2]*Model{models[0].Clone(), models[1].Clone()})
			if sync {
				synced = len(states) - 1
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		require.NoError(t, l.Close())
		fs = crashed
		l = open(t, fs)
		var found [2]*Model
		for i, id := range []geo.RangeID{4, 5} {
			var err error
			found[i], err = Read(Range(t, l, id))
			require.NoError(t, err)
		}
		require.NoError(t, l.Close())
		got := fmt.Sprint(found[0], found[1])
		require.Contains(t, states[synced:], got)
		for i := synced; i < len(states); i++ {
			if states[i] == got {
				models = [2]*Model{after[i][0].Clone(), after[i][1].Clone()}
			}
		}
	}
}
