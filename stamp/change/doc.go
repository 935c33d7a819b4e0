// Package change defines the change record, the unit that the local replicas
// apply and that travels from the primary stamp to the secondary stamp, and what
// carries it: the group (one Raft entry), the frame (one stream message) and the
// closed record.
//
// Invariant: within one stream Seq is dense and each record carries the hash of
// the one before it; within one range CommitTime strictly increases. A decoder
// returns a value whose CRC32C was right, or an error, for any input, and never
// holds on to more than the bytes it was given. Layouts: docs/format/change.md,
// frozen by testdata/*.golden.
package change
