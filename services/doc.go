// Package services and the packages below it define what an account, a table, a blob is:
// pure commands and queries over stamp/kv, with payloads as chunk references. They know no
// HTTP and no Raft, and read no clock: the time of a write is an argument.
//
// Invariant: a command's effect depends only on the state that it reads and the time that
// it is given, so it may be evaluated again.
package services

import (
	"context"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
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

// Founder is a Write that begins a generation. InEpoch gives it the epoch of the account's gate in
// the range that evaluates, before each evaluation. A generation takes its epoch from there alone
// (R8): what the request read of the account before may be of an older epoch.
type Founder interface {
	Write
	InEpoch(e geo.EpochNumber)
}

// Timed is a Write whose promises to clients end by the clock: commit times may be ahead of it (R6). InTime gives it what the
// leader's clock shows, before each evaluation.
type Timed interface {
	Write
	InTime(now geo.Timestamp)
}

// Deletion is a Write that may only delete: Deletes reports whether this one does. Such a write is taken while
// the disk is nearly full.
type Deletion interface {
	Write
	Deletes() bool
}

// Remainder is a Write that does what another one, which is committed, has left over: the answer to that one waits for
// it. So it is not held back while changes of the account are late.
type Remainder interface {
	Write
	IsRemainder()
}

// Writer is the write role of a location.
type Writer interface {
	// Write commits a write and waits until it is on every in-sync replica. Errors: the write's
	// own, under which nothing changed; kv.ErrBusy, nothing happened; kv.ErrUnknown, it may have
	// happened.
	Write(ctx context.Context, w Write) error
	// CloseGeneration commits that a generation of a container takes no more changes (R8).
	CloseGeneration(ctx context.Context, s geo.Service, a geo.Account, container string, g keys.Generation) error
}

// AllWriter is a Writer that also commits many writes at once.
type AllWriter interface {
	Writer
	// WriteAll is Write for up to 500 writes, of which those of a range are evaluated in their order, with nothing in
	// between. They are separate changes: it returns the error of each. None is a Remainder.
	WriteAll(ctx context.Context, ws []Write) []error
}

// Effect is what a write does to its partition.
type Effect struct {
	Ops    []change.Op
	Chunks []extent.Ref
	// Level is the feature level that a program has to know to read what the ops write; zero for Base. The write is refused
	// before it is active.
	Level feature.Level
}
