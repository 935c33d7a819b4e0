// Package verify compares the two copies of an account while clients write.
//
// A lane is the unit of comparison: all changes of a partition are on one lane, and a stream orders
// the changes of a lane. Both locations take a snapshot of the state of a range. The head of each
// stream, at the primary, and its cursor, at the secondary, are read from that same snapshot. If head
// and cursor are the same record, the rows of the lane must be the same. A lane whose two ends differ
// has moved; it is tried again with other snapshots and is never reported as different.
//
// Sessions answers questions about snapshots of this location; Run asks two of them, its own and the
// one of the other location. A question about rows is answered with sums of hashes, so that little
// crosses while the copies are equal. Where the sums differ, Run asks for the sums of parts of the
// lane, until few rows are left. Each part is the rows whose keys have one prefix of a hash.
//
// Repair has the rows that differ repaired and compares again. It changes nothing itself: its caller
// commits ordinary changes of the rows at the primary.
//
// Invariant: a row is reported only if both snapshots held all changes of its lane up to the same
// record, and its container was not deleted before the comparison ended.
package verify
