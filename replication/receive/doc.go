// Package receive is the receiving end of the geo stream: it takes frames from the
// bus of this location, submits their records in order to the Applier, fetches
// missing records from the source, and acknowledges.
//
// Invariants: a message is acknowledged to the bus only when each of its records is committed
// here or its stream is being pulled (R15). A record is acknowledged to the source only after it
// is on this stamp's replicas (R14). Frames may be lost, doubled or reordered: the order comes
// from the numbers (R11).
//
// A Receiver has no state that must outlive it: another one, in this process or in
// another process of the location, continues from the cursors. Two at once, as for a
// moment when the receiving node changes, lose and double nothing: if one acknowledges
// to the bus what the other has not committed, or ends with records in memory, the
// cursors show that these are missing.
package receive
