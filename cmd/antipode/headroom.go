package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"antipode/internal/clock"
	"antipode/internal/malloc"
)

const (
	// headroomMax bounds, in bytes, how far the heap of a node grows between two collections. With gcPercent
	// alone, each byte that is in use longer, such as a pooled buffer of the stream's server, would cost four
	// more of resident memory.
	headroomMax = 64 << 20
	// gcPercentMin is Go's default. With less, a large heap would be scanned too often.
	gcPercentMin = 100
)

// gcPercentFor is the percent with which a live heap of so many bytes grows by headroomMax, within gcPercentMin
// and gcPercent.
func gcPercentFor(live uint64) int {
	if live <= headroomMax*100/gcPercent {
		return gcPercent
	}
	return max(int(headroomMax*100/live), gcPercentMin)
}

// boundHeadroom sets the percent for the live heap after each collection, as long as the process runs.
func boundHeadroom(set func(percent int)) {
	afterCollections(func() { set(gcPercentFor(liveHeap())) })
}

// afterCollections calls f after each collection, as long as the process runs. The finalizer of an object that
// nobody uses runs after the next collection, so no goroutine has to watch.
func afterCollections(f func()) {
	type collected struct{ _ [64]byte }
	var again func(*collected)
	again = func(*collected) {
		f()
		runtime.SetFinalizer(&collected{}, again)
	}
	runtime.SetFinalizer(&collected{}, again)
}

// liveHeap is what the last collection found in use, with the stacks and globals, of which the percent is too.
func liveHeap() (sum uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}

// tuneNode is tuneRuntime with bounded headroom. A node shares its machine with others, and its memory is to
// stay flat while the other location is slow or away.
func tuneNode() {
	tuneRuntime()
	if os.Getenv("GOGC") == "" {
		boundHeadroom(func(percent int) { debug.SetGCPercent(percent) })
	}
	afterCollections(spaced(trimEvery, clock.System{}.Mono, func() { malloc.Trim() }))
}

// trimEvery is how often freed memory is given back at most after a collection. Beside a cache of 256 MiB that took 10 to
// 100 ms, while the cache took no block: a busy node collects several times a second.
const trimEvery = 2 * time.Second

// spaced returns f, which does nothing within a time after a call that did something. mono is monotonic time.
func spaced(every time.Duration, mono func() time.Duration, f func()) func() {
	next := time.Duration(0)
	return func() {
		if now := mono(); now >= next {
			next = now + every
			f()
		}
	}
}
