// Package receive is the other end of the geo stream: it takes frames from the
// stream of this location, hands their records in order to the Applier, fetches
// what is missing from the source, and acknowledges.
//
// Invariants: a message is acknowledged to the carrier only when each of its
// records is committed here or its stream was handed to the pull (R15); the source
// hears of a record only after it is on this stamp's replicas (R14). Frames may be
// lost, doubled or reordered: order comes from the numbers (R11).
//
// A Receiver keeps nothing that has to outlive it: another one, in this process or in
// another of the location, goes on from the cursors. Two at once, as for a moment when
// the node that receives changes, lose and double nothing: what one acknowledges to the
// carrier for the other, or takes along when it ends, the cursors show to be missing.
package receive
