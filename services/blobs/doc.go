// Package blobs defines the stored rows of a blob, the write commands of the blob service
// and its queries, over stamp/kv. Payload above InlineBytesMax is in chunks of
// stamp/extent, which the row of the blob or of a block names.
//
// Invariants: a blob's Modified is the commit time of its last write but an action on its lease, so it strictly
// increases and its ETag is equal in both locations (R6). A row and the bytes it names are of one write: chunks are
// never changed, and a reader of a row gets its bytes or an error. A committed block list names rows of blocks. A row
// is never read again if no list of the blob or of a snapshot and no open session names it (see Dead).
//
// # Limits
//
//   - Block and append blobs; no tags.
//   - Rows of dropped blocks are deleted after the write that dropped them. A crash in
//     between leaves them until the next such write of the blob.
//   - Chunks of an overwritten or deleted blob, and those of an upload that failed before
//     its commit, stay until the collector of stamp/scrub drops them (R9).
package blobs
