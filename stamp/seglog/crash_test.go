package seglog

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/rawtest"
	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

// A crash before any write, sync, creation, rename or removal loses nothing that was
// synced and invents nothing, and so does a second one while the first is recovered
// from; with segments recycled and a laggard's entries copied forward on the way
// (R3, R4, invariants 1 and 6; over seeds). Frames are written past the page cache, as on
// Linux, and torn by sectors; or through it, where the disk refuses that.
//
// Capability: Storage on a node: Segment log.
func TestCrashAnywhere(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		mem := rawtest.New()
		mem.Refuses = seed%3 == 2
		var s *story
		crashes := 0
		fs := &hookFS{FS: mem, before: func(string, string) error {
			if s != nil && rng.IntN(6) == 0 {
				crashes++
				for _, percent := range []int{0, 50, 100} {
					requireOneOf(t, crashed(t, mem, percent, rng), s.states[s.synced:], rng)
				}
			}
			return nil
		}}
		for range 3 {
			l := mustOpen(t, fs)
			s = newStory(t, l, rng)
			for range 150 {
				require.NoError(t, s.commit(rng.IntN(3) > 0))
			}
			s.synced = len(s.states) - 1 // Close keeps it all; its crashes may find less.
			last := s.states[s.synced]
			s = nil
			require.Greater(t, l.nextNumber, uint64(6), "segments never changed")
			require.NoError(t, l.Close())
			requireOneOf(t, crashed(t, mem, 0, rng), []string{last}, rng)
		}
		require.Greater(t, crashes, 100)
		require.Equal(t, !mem.Refuses, mem.Directs > 100, "%d frames went past the page cache", mem.Directs)
	}
}

// crashed is the disk after a crash that keeps a part of what was not synced.
func crashed(t *testing.T, d *rawtest.Disk, percent int, rng *rand.Rand) *rawtest.Disk {
	t.Helper()
	after, err := d.Crash(percent, rng)
	require.NoError(t, err)
	return after
}

// requireOneOf opens a crashed disk, crashing again on the way, and finds one of the
// states; the same after a third crash.
func requireOneOf(t *testing.T, mem *rawtest.Disk, states []string, rng *rand.Rand) {
	errCrash := errors.New("crash")
	left, broken, opened := rng.IntN(12), false, false
	l, err := open(&hookFS{FS: mem, before: func(string, string) error {
		if left--; left < 0 && !opened {
			broken = true
			return errCrash
		}
		return nil
	}}, rng.Uint64())
	opened = true
	if broken {
		require.ErrorIs(t, err, errCrash)
		mem = crashed(t, mem, 50, rng)
		l, err = open(mem, rng.Uint64())
	}
	require.NoError(t, err)
	got, err := logState(l)
	require.NoError(t, err)
	require.True(t, slices.Contains(states, got), "found\n%s\nwhich is none of %d states, the first of them\n%s", got, len(states), states[0])
	again := crashed(t, mem, 0, rng)
	require.NoError(t, l.Close())
	l, err = open(again, rng.Uint64())
	require.NoError(t, err)
	gotAgain, err := logState(l)
	require.NoError(t, err)
	require.Equal(t, got, gotAgain, "what Open returned was not durable")
	require.NoError(t, l.Close())
}

// After a failed fsync what was written may be in the page cache only. Open finds it,
// and it is durable when Open returns: not by a second fsync of the same pages, but
// because it was written again (R4).
func TestFoundIsRewritten(t *testing.T) {
	mem := vfs.NewCrashableMem()
	failing := false
	errSync := errors.New("sync failed")
	l := mustOpen(t, &hookFS{FS: mem, before: func(op, _ string) error {
		if failing && op == "sync" {
			return errSync
		}
		return nil
	}})
	s := newStory(t, l, rand.New(rand.NewPCG(1, 1)))
	for range 5 {
		require.NoError(t, s.commit(true))
	}
	failing = true
	require.ErrorIs(t, s.commit(true), errSync)

	// The same disk, not crashed: the pages are there, and a sync of that file lies.
	old := l.active().path
	l2, err := open(&hookFS{FS: mem, before: func(op, path string) error {
		if op == "sync" && path == old {
			return errors.New("a sync of the old file proves nothing")
		}
		return nil
	}}, 3)
	require.NoError(t, err)
	got, err := logState(l2)
	require.NoError(t, err)
	require.Equal(t, s.text(), got)
	l3 := mustOpen(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	after, err := logState(l3)
	require.NoError(t, err)
	require.Equal(t, got, after)
	for _, l := range []*Log{l, l2, l3} {
		require.NoError(t, l.Close())
	}
}

// A failed write, sync, creation, rename or folder sync takes the log out of service:
// that Commit and every later one fails, nothing more is written, not even by Close,
// and what was acknowledged before is there after a crash (table over
// the operations).
//
// Capability: Storage on a node: Segment log.
func TestFailures(t *testing.T) {
	for _, op := range []string{"write", "sync", "create", "rename"} {
		for nth := range 8 {
			rng := rand.New(rand.NewPCG(uint64(nth), 3))
			mem := rawtest.New()
			errInjected := errors.New("no space left on device")
			left, failed, after := -1, false, 0
			l := mustOpen(t, &hookFS{FS: mem, before: func(is, _ string) error {
				if failed {
					after++
				}
				if left >= 0 && is == op {
					if left--; left < 0 {
						failed = true
						return errInjected
					}
				}
				return nil
			}})
			s := newStory(t, l, rng)
			for range 20 {
				require.NoError(t, s.commit(true))
			}
			if left = nth; op == "write" || op == "sync" {
				left = 20 * nth
			} else {
				left = nth / 2
			}
			var err error
			for range 400 {
				if err = s.commit(true); err != nil {
					break
				}
			}
			if err == nil && op == "create" {
				require.NoError(t, l.Close())
				continue // All spares: nothing is created any more.
			}
			require.ErrorIs(t, err, errInjected, "%s %d", op, nth)
			require.ErrorIs(t, err, ErrFailed)
			for range 3 {
				require.ErrorIs(t, s.commit(true), errInjected)
				require.ErrorIs(t, s.commit(false), errInjected)
			}
			require.NoError(t, l.Close())
			require.Zero(t, after, "the disk was changed after a failure")
			requireOneOf(t, crashed(t, mem, 0, rng), s.states[s.synced:], rng)
		}
	}
}

// A range that is never trimmed does not keep the segments in which others came and
// went: its entries are copied forward, and stay as they are over reopenings. One that
// is idle keeps its hard state and trimmed index.
//
// Capability: Storage on a node: Segment log.
func TestLaggard(t *testing.T) {
	mem := vfs.NewMem()
	l := mustOpen(t, mem)
	laggard, busy, idle := geo.RangeID(2), geo.RangeID(4), geo.RangeID(5)
	models := map[geo.RangeID]*logtest.Model{laggard: {}, busy: {}, idle: {}}
	rng := rand.New(rand.NewPCG(1, 1))
	b := l.NewBatch()
	g := logtest.Range(t, l, idle)
	require.NoError(t, g.Append(b, logtest.Entries(1, 3, 2, 100)))
	models[idle].Append(logtest.Entries(1, 3, 2, 100)...)
	require.NoError(t, g.SetHardState(b, hardState(3, 1, 2)))
	models[idle].Hard = [3]uint64{3, 1, 2}
	require.NoError(t, g.Trim(b, 2))
	models[idle].Trim(2)
	require.NoError(t, b.Commit(true))
	most, live := 0, 0
	for i := range 2000 {
		b := l.NewBatch()
		if i%40 == 0 && i < 1500 {
			m := models[laggard]
			entries := logtest.Entries(m.Last()+1, 1, 1, 2000)
			m.Append(entries...)
			live += 2000
			require.NoError(t, logtest.Range(t, l, laggard).Append(b, entries))
		}
		m, g := models[busy], logtest.Range(t, l, busy)
		entries := logtest.Entries(m.Last()+1, 1, 1, 1000+rng.IntN(6000))
		m.Append(entries...)
		require.NoError(t, g.Append(b, entries))
		if len(m.Entries) > 5 {
			index := m.Last() - 2
			m.Trim(index)
			require.NoError(t, g.Trim(b, index))
		}
		require.NoError(t, b.Commit(true))
		most = max(most, len(l.chain)+len(l.spares))
		if i == 1000 {
			require.NoError(t, l.Close())
			l = mustOpen(t, mem)
		}
	}
	require.Greater(t, l.nextNumber, uint64(100), "the log did not go round")
	require.LessOrEqual(t, most, segmentsMin+sparesMax+1+3*live/testSegment)
	files, err := mem.List(testDir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(files), most)
	for range 2 {
		for id, m := range models {
			logtest.Require(t, m, logtest.Range(t, l, id))
		}
		require.NoError(t, l.Close())
		l = mustOpen(t, mem)
	}
	require.NoError(t, l.Close())
}

// A synced commit of one batch is one write and one sync; an unsynced one is none.
func TestOneWriteOneSync(t *testing.T) {
	ops := map[string]int{}
	l, err := Open(testDir, state.Options{FS: &hookFS{FS: rawtest.New(), before: func(op, _ string) error {
		ops[op]++
		return nil
	}}})
	require.NoError(t, err)
	g := logtest.Range(t, l, 4)
	clear(ops)
	for i := range uint64(10) {
		logtest.Commit(t, l, true, func(b state.LogBatch) error { return g.Append(b, logtest.Entries(1+i*64, 1, 64, 1024)) })
		logtest.Commit(t, l, false, func(b state.LogBatch) error { return g.SetHardState(b, hardState(1, 1, i*64)) })
	}
	require.Equal(t, map[string]int{"write": 10, "sync": 10}, ops)
	require.NoError(t, l.Close())
}

// A segment is used again only when what made its entries dead is durable: a batch
// trims all there is and needs a new segment itself, and every crash on the way finds
// the log as before or after it (R4).
func TestTrimFreesAfterSync(t *testing.T) {
	mem := rawtest.New()
	var check func()
	l := mustOpen(t, &hookFS{FS: mem, before: func(string, string) error {
		if check != nil {
			check()
		}
		return nil
	}})
	g := logtest.Range(t, l, 4)
	for i := range uint64(3) {
		logtest.Commit(t, l, true, func(b state.LogBatch) error { return g.Append(b, logtest.Entries(1+20*i, 1, 20, 2000)) })
	}
	require.Empty(t, l.spares)
	require.Len(t, l.chain, 3)
	before, err := logState(l)
	require.NoError(t, err)
	b := l.NewBatch()
	require.NoError(t, g.Trim(b, 60))
	require.NoError(t, g.Append(b, logtest.Entries(61, 1, 20, 2000)))
	after, err := logState(l)
	require.NoError(t, err)
	rng, crashes := rand.New(rand.NewPCG(1, 1)), 0
	check = func() {
		for _, percent := range []int{0, 50, 50, 50, 100} {
			crashes++
			requireOneOf(t, crashed(t, mem, percent, rng), []string{before, after}, rng)
		}
	}
	require.NoError(t, b.Commit(true))
	check = nil
	require.Greater(t, crashes, 20)
	require.Len(t, l.spares, 3)
	require.NoError(t, l.Close())
}

// A copied record fills an index that the log has, with the entry that it has there;
// one that would append, or change an entry, is damage (DESIGN section 4).
func TestCopyNeverAppends(t *testing.T) {
	for what, s := range map[string]struct {
		index uint64
		term  uint32
		ok    bool
	}{
		"the same entry": {2, 1, true}, "beyond the last": {3, 1, false}, "another term": {2, 2, false}, "trimmed": {1, 1, false},
	} {
		mem := vfs.NewMem()
		l := mustOpen(t, mem)
		g := logtest.Range(t, l, 4)
		logtest.Commit(t, l, true, func(b state.LogBatch) error { return g.Append(b, logtest.Entries(1, 1, 2, 100)) })
		logtest.Commit(t, l, true, func(b state.LogBatch) error { return g.Trim(b, 1) })
		e := logtest.Entries(s.index, uint64(s.term), 1, 100)[0]
		l.stageEntry(l.ranges[4], recordCopy, s.index, slot{size: uint32(entryBytes + len(e.Data)), term: s.term}, 0, e.Data)
		require.NoError(t, l.write())
		d := readDisk(t, mem)
		again, err := open(d.fs(t), 1)
		if s.ok {
			require.NoError(t, err, what)
			require.NoError(t, again.Close())
		} else {
			require.ErrorIs(t, err, state.ErrLogCorrupt, what)
		}
		require.NoError(t, l.Close())
	}
}
