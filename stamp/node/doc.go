// Package node is one member of a stamp: its data folder, and the scheduler that
// drives all its replicas.
//
// Node holds the parts together: stores (what is on its disk), placement (which nodes have which
// ranges), scheduler (the goroutine that drives all ranges), and a hostedRange for each range with a
// replica here.
//
// Invariant: an answer leaves the node only after the fsync it depends on. One
// scheduler pass does one log write and one fsync for all ranges.
package node
