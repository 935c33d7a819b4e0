// Package ranges owns what a range is above its log: the state machine that every
// replica applies (Machine), and at the leader the one proposal queue, clock, heads
// and overlay (Range). Both roles, primary and secondary, submit commands through
// the Command interface and so write one group without seeing each other.
//
// Invariants (R1, R6): a group takes effect whole or not at all, and only on top of
// the group it was evaluated on; commit times strictly increase within the range;
// numbers are dense and chained within each stream.
package ranges
