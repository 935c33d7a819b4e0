// Package blobs says what a blob's life is: its stored row, the write commands of
// the blob service and its queries, over stamp/kv. Payload above InlineBytesMax is
// in chunks of stamp/extent, which the row names.
//
// Invariants: a blob's Modified is the commit time of its last write, so it strictly
// increases and its ETag is equal in both locations (R6). A row and the bytes it
// names are of one write: chunks are never changed, and whoever read a row reads its
// bytes or an error.
//
// # Limits
//
//   - Block blobs written in one piece; no blocks, snapshots, leases, tags.
//   - Chunks are never deleted. Those of an overwritten or deleted blob, and those of
//     an upload that failed before its commit, stay as orphans until the collector of
//     R9 is built. It must tell an orphan from the chunks of an upload under way by a
//     pin, which does not exist yet either.
package blobs
