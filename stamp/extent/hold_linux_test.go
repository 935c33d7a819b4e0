package extent

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var holdChunks = flag.Int("hold-chunks", 10_000_000, "how many chunks BenchmarkLockHold enters into the index")

// threadCPU is what this thread used so far.
func threadCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// holds measures the longest hold of mu, by the clock and in processor time: by the clock it
// also has the time in which the machine ran something else.
type holds struct {
	began, beganCPU     time.Duration
	longest, longestCPU time.Duration
	count, steps, over  int
}

func wallClock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func (h *holds) watch(s *Store) {
	s.mu.locked = func() { h.began, h.beganCPU = wallClock(), threadCPU() }
	s.mu.unlocking = func(steps int) {
		h.longest = max(h.longest, wallClock()-h.began)
		cpu := threadCPU() - h.beganCPU
		h.longestCPU = max(h.longestCPU, cpu)
		if cpu > time.Millisecond {
			h.over++
		}
		h.count, h.steps = h.count+1, max(h.steps, steps)
	}
}

// largeIndex is a store whose index holds n chunks of 16 KiB in extents of 256 MiB, of which
// there are no files.
func largeIndex(b *testing.B, n int) (*Store, []ChunkID) {
	b.Helper()
	s := open(b, vfs.NewMem(), Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]ChunkID, n)
	var e *file
	for i := range ids {
		binary.LittleEndian.PutUint64(ids[i][:], rng.Uint64())
		binary.LittleEndian.PutUint64(ids[i][8:], rng.Uint64())
	}
	for i, id := range ids {
		s.mu.Lock()
		if e == nil || e.size >= s.opts.ExtentBytesMax {
			e = &file{number: s.nextNumber, sealed: true, keep: true, refs: 2, size: pageBytes}
			s.nextNumber++
			s.addFile(e)
		}
		c := cell{id: id, offset: e.size, length: 16 << 10, crc: uint32(i), sliceBytes: sliceBytesMax, unit: recordBytes, round: s.round}
		s.list(entry{e, c})
		s.setSize(e, c.end())
		s.mu.Unlock()
	}
	return s, ids
}

// The longest time for which one call keeps the others from a store of ten million chunks.
// By hand: go test ./stamp/extent -run=- -bench=LockHold -benchtime=1x
func BenchmarkLockHold(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := *holdChunks
	s, ids := largeIndex(b, n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perChunk := float64(after.HeapAlloc-before.HeapAlloc)/float64(n) - 16 // Without ids.
	round := func(named []ChunkID) {
		s.BeginRound(true)
		for _, id := range named {
			s.Durable(id)
		}
		s.EndRound()
	}
	run := func(name string, prepare, call func()) {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var h holds
			for range b.N {
				b.StopTimer()
				prepare()
				h.watch(s)
				b.StartTimer()
				call()
				b.StopTimer()
				s.mu.locked, s.mu.unlocking = nil, nil
				b.StartTimer()
			}
			b.ReportMetric(float64(h.longest.Nanoseconds())/1000, "max-hold-us")
			b.ReportMetric(float64(h.longestCPU.Nanoseconds())/1000, "max-hold-cpu-us")
			b.ReportMetric(float64(h.over), "holds-over-1ms-cpu")
			b.ReportMetric(float64(h.count)/float64(b.N), "holds/op")
			b.ReportMetric(float64(h.steps), "max-steps")
			b.ReportMetric(perChunk, "index-B/chunk")
		})
	}
	nothing := func() {}
	sweep := func() {
		_, _, err := s.Sweep(n)
		require.NoError(b, err)
	}
	run("empty", nothing, func() { // What the machine adds by itself: interrupts, and what its host takes.
		for range n {
			s.mu.Lock()
			s.mu.Unlock() //nolint:staticcheck // The hold is what is measured.
		}
	})
	run("sweep-nothing", func() { round(nil); round(ids) }, sweep)
	run("pick-none", nothing, func() { require.False(b, s.pickVictim()) })
	run("durable", nothing, func() {
		for _, id := range ids[:min(n, 1_000_000)] {
			s.Durable(id)
		}
	})
	run("refs", nothing, func() { require.Len(b, s.Refs(), n) })
	run("stats", nothing, func() {
		for range 1000 {
			s.Stats()
		}
	})
	run("damaged", func() {
		e, c := s.find(ids[n-1])
		s.setDamaged(entry{e, *c})
	}, func() { require.Len(b, s.Damaged(10), 1) })
	third := make([]ChunkID, 0, n/3+1)
	for i := 0; i < n; i += 3 {
		third = append(third, ids[i])
	}
	run("sweep-two-thirds", func() { round(third); round(third) }, sweep)
	run("pick-victim", nothing, func() { require.True(b, s.pickVictim()); s.nextMovable() })
	run("list", nothing, func() {
		last := s.order[len(s.order)-1]
		for i := range n / 2 {
			var id ChunkID
			binary.LittleEndian.PutUint64(id[:], uint64(i)*0x9e3779b97f4a7c15)
			s.mu.Lock()
			s.list(entry{last, cell{id: id, length: 1, sliceBytes: sliceBytesMax, unit: recordBytes}})
			s.mu.Unlock()
		}
	})
}
