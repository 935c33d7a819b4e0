package main

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Invariant 8: what a heap grows between collections is bounded where gcPercent alone would let it grow without a
// bound, and never below what Go does by itself.
//
// Capability: Two locations: Memory of a node stays flat on a slow link.
func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		live    uint64
		percent int
	}{
		{0, 400},
		{10 << 20, 400},
		{16 << 20, 400},
		{32 << 20, 200},
		{40 << 20, 160},
		{64 << 20, 100},
		{1 << 30, 100},
		{1 << 40, 100},
	} {
		require.Equal(t, c.percent, gcPercentFor(c.live), "%d", c.live)
		if got := c.live * uint64(gcPercentFor(c.live)) / 100; c.live <= headroomMax {
			require.LessOrEqual(t, got, uint64(headroomMax), "%d", c.live)
		}
	}
}

// The percent is set again after each collection.
//
// Capability: Two locations: Memory of a node stays flat on a slow link.
func TestHeadroomFollowsCollections(t *testing.T) {
	percents := make(chan int, 1)
	boundHeadroom(func(percent int) {
		select {
		case percents <- percent:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		require.LessOrEqual(t, <-percents, gcPercent)
	}
	require.Positive(t, liveHeap())
}

// Freed memory is not given back after each of many collections.
func TestTrimsAreSpaced(t *testing.T) {
	now, calls := time.Duration(0), 0
	f := spaced(time.Second, func() time.Duration { return now }, func() { calls++ })
	for _, c := range []struct {
		at    time.Duration
		calls int
	}{{1, 1}, {2, 1}, {time.Second, 1}, {time.Second + 1, 2}, {time.Second + 2, 2}, {time.Minute, 3}} {
		now = c.at
		f()
		require.Equal(t, c.calls, calls, "at %s", now)
	}
}
