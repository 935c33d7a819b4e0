//go:build cgo && linux

package malloc

/*
#include <malloc.h>

// trim returns whether memory went back to the system.
static int trim(void) {
#ifdef __GLIBC__
	return malloc_trim(0);
#else
	return 0;
#endif
}
*/
import "C"

// Trim gives whole pages of the C library's freed memory back to the system, and reports whether there were any. The
// block cache is there. By itself the library gives back the end of a heap alone: when a compaction deletes tables,
// their blocks in the cache are freed between others, and stay resident.
func Trim() bool { return C.trim() != 0 }
