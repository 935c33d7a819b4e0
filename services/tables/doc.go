// Package tables has the write commands of the table service and its queries, over
// stamp/kv.
//
// Invariant: an entity's Timestamp is the commit time of its last write, so it
// strictly increases and its ETag is equal in both locations (R6).
package tables
