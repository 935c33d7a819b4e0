// Package state is a node's disk: the log, whose appends are durable when a
// commit returns, and the state store, whose write-ahead log is off and which is
// recovered by replaying the log from its durable applied index (DESIGN section 4).
//
// Invariant: what the log reported committed survives any crash; the state store
// after a crash is the state as of some applied index at or below the log's last
// entry, and the log still holds everything above it.
package state
