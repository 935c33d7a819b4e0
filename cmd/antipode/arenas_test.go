//go:build cgo && linux && !race

// With the race detector Pebble has half of all processes use heaps of Go instead of the C library's.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/internal/malloc"
	"antipode/stamp/state"
)

// Invariant 8: with glibc, what the C library keeps of freed memory is bounded.
func TestArenasAreBounded(t *testing.T) {
	needGlibc(t)
	require.True(t, boundArenas())
}

func needGlibc(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "getconf", "GNU_LIBC_VERSION").Run(); err != nil {
		t.Skip("another C library than glibc")
	}
}

// Memory that the block cache frees goes back to the system, also from between blocks that stay.
func TestArenasAreTrimmed(t *testing.T) {
	needGlibc(t)
	const rows, kept = 2000, 20
	caches := []*state.Shared{state.NewShared(64<<20, 100), state.NewShared(64<<20, 100)}
	for i := range caches {
		defer func() {
			if caches[i] != nil {
				caches[i].Close()
			}
		}()
	}
	var stores []*state.Store
	for i, c := range caches {
		s, err := state.Open(fmt.Sprint(i), state.Options{FS: vfs.NewMem(), Shared: c})
		require.NoError(t, err)
		b := s.NewBatch()
		for i := range rows {
			require.NoError(t, b.Set(fmt.Appendf(nil, "%06d", i), make([]byte, 16<<10)))
		}
		require.NoError(t, s.Commit(b))
		require.NoError(t, b.Close())
		require.NoError(t, s.Flush())
		stores = append(stores, s)
	}
	for i := range rows { // The blocks of the second store lie between those of the first one.
		for j, s := range stores {
			if j == 1 && i%(rows/kept) != 0 {
				continue
			}
			_, ok, err := s.Get(fmt.Appendf(nil, "%06d", i))
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	require.Greater(t, caches[0].CacheBytes(), int64(rows*16<<10))
	require.Positive(t, caches[1].CacheBytes())
	require.NoError(t, stores[0].Close())
	caches[0].Close()
	caches[0] = nil
	before := resident(t)
	require.True(t, malloc.Trim())
	require.Less(t, resident(t), before-rows*8<<10)
	require.NoError(t, stores[1].Close())
}

// resident is the memory of this process without pages of files, in bytes.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	var kib int64
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}
