//go:build cgo && linux

package main

/*
#include <malloc.h>

// bound_arenas returns 0 where the C library has no such bounds.
static int bound_arenas(int arenas, int mapped) {
#ifdef __GLIBC__
	return mallopt(M_ARENA_MAX, arenas) && mallopt(M_MMAP_THRESHOLD, mapped);
#else
	return 0;
#endif
}
*/
import "C"

const (
	// arenasMax is how many heaps the C library keeps for all threads together.
	arenasMax = 2
	// mappedMin is from how many bytes on an allocation is a mapping, which goes back to the system when it is freed.
	mappedMin = 1 << 20
)

// boundArenas bounds what the C library keeps of freed memory, and reports whether it can. Pebble has its block cache
// and its memtables there. By default each thread may have a heap in which free blocks lie between used ones, which
// came to twice the cache's bytes and more, and grew for hours.
func boundArenas() bool { return C.bound_arenas(arenasMax, mappedMin) != 0 }
