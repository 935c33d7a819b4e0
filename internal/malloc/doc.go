// Package malloc is the C library's heaps, in which the state store has its block cache and its memtables.
package malloc
