// Package ranges is a range above its log: the state machine that every replica applies
// (Machine), and at the leader the one proposal queue, clock, heads and overlay (Range).
// Both roles, primary and secondary, submit commands through the Command interface, so that
// commands of both can be in one group although neither knows the other.
//
// Invariants (R1, R6): a group takes effect whole or not at all, and only on top of
// the group it was evaluated on; commit times strictly increase within the range;
// the numbers of a stream are dense, and each record has the hash of the one before.
package ranges
