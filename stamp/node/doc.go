// Package node is one member of a stamp: its data folder, and the scheduler that
// drives all its replicas.
//
// Invariant: an answer leaves the node only after the fsync it depends on. One
// scheduler pass does one log write and one fsync for all ranges.
package node
