// Package blobs says what a blob's life is: its stored rows, the write commands of
// the blob service and its queries, over stamp/kv. Payload above InlineBytesMax is
// in chunks of stamp/extent, which a row names: that of the blob, or that of a block.
//
// Invariants: a blob's Modified is the commit time of its last write, so it strictly
// increases and its ETag is equal in both locations (R6). A row and the bytes it
// names are of one write: chunks are never changed, and a reader of a row gets its
// bytes or an error. A committed block list names rows of blocks, and a row that no
// list and no session under way names is never read again (see Dead).
//
// # Limits
//
//   - Block blobs; no snapshots, leases, tags.
//   - Rows of dropped blocks are deleted behind the write that dropped them. A crash
//     in between leaves them until the next such write of the blob.
//   - Chunks are never deleted. Those of an overwritten or deleted blob, and those of
//     an upload that failed before its commit, stay as orphans until the collector of
//     R9 is built. It must distinguish an orphan from the chunks of an upload under
//     way by a pin, which does not exist yet either.
package blobs
