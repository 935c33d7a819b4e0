// Package state is the state store of a node, a Pebble whose write-ahead log is off, and the
// interface of the log from which it is recovered: by replaying the entries above its durable
// applied index (DESIGN section 4). Package seglog implements the log, whose appends are durable
// when a commit returns.
//
// Invariant: what the log reported committed survives any crash; the state store
// after a crash is the state as of some applied index at or below the log's last
// entry, and the log still holds everything above it.
package state
