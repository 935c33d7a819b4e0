// Package services and the packages below it define what an account, a table, a blob is:
// pure commands and queries over stamp/kv, with payloads as chunk references. They know no
// HTTP and no Raft, and read no clock: the time of a write is an argument.
//
// Invariant: a command's effect depends only on the state that it reads and the time that
// it is given, so it may be evaluated again.
package services

import (
	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Write is one write command on one partition.
type Write interface {
	// Partition is what the write changes.
	Partition() keys.Partition
	// Evaluate returns the effect of the write on the state that get shows, at
	// commit time at. On error nothing is changed. It may be called again.
	Evaluate(get kv.Getter, at geo.Timestamp) (Effect, error)
	// Gone is the error where the partition's table, container or queue was deleted.
	Gone() error
}

// Effect is what a write does to its partition.
type Effect struct {
	Ops    []change.Op
	Chunks []extent.Ref
}
