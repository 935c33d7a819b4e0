// Package scrub looks after the stores of one node while it serves, in steps of a few MiB,
// one at a time and paced:
//
//	scrub     reads and checks everything on the disk, once in Options.Period
//	repair    copies a damaged or missing chunk from a peer
//	collect   drops chunks that nothing names any more, within minutes, or never did, after Options.Grace
//	compact   empties extents that hold mostly garbage
//	reclaim   gives the room of wiped rows back to the disk
//	account   compares the rows of the outboxes with the heads and trims of their streams
//
// Invariants: corruption of one copy is found and repaired from another, or reported so that
// the store is quarantined (invariant 5); no chunk is dropped that anything names, or is about
// to name (R9; collect.go has the argument).
//
// A Scrubber knows its node through the interface Node, and starts no goroutine: call Run on
// one, or Step from a simulation.
package scrub
