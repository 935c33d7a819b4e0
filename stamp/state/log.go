package state

import (
	"errors"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// ErrLogCorrupt: the log misses what was durable in it, or holds it altered: an entry
// or hard state does not fit its CRC32C, or is gone. The replica is lost (R4).
var ErrLogCorrupt = errors.New("state: log is damaged")

// Log is a node's log of all its ranges: entries and hard states. Package seglog implements it.
type Log interface {
	Verifier
	// Range opens the log of one range. voters is its configuration.
	Range(r geo.RangeID, voters []uint64) (RangeLog, error)
	// NewBatch collects what one scheduler pass appends. Batches are staged and
	// committed one after the other, by one goroutine. One with something staged must
	// be committed: readers see it from its staging on.
	NewBatch() LogBatch
	// Close closes the log.
	Close() error
}

// LogBatch is what one scheduler pass appends, for any number of ranges.
type LogBatch interface {
	// Commit writes the batch; with sync it is durable when Commit returns. After
	// an error nothing of this node's log may be acknowledged again.
	Commit(sync bool) error
}

// RangeLog is the log of one range: Raft's storage, and the appends to it. It is
// used by one goroutine at a time.
type RangeLog interface {
	raft.Storage
	// Append stages entries; from the first of them on they replace what is there.
	Append(b LogBatch, entries []*pb.Entry) error
	// SetHardState stages term, vote and commit.
	SetHardState(b LogBatch, hs *pb.HardState) error
	// Trim stages the deletion of all entries up to and including index.
	Trim(b LogBatch, index uint64) error
	// Reset stages the deletion of all entries: the log then begins behind last. The hard
	// state stays. It follows a range snapshot, whose last entry is last.
	Reset(b LogBatch, last geo.EntryID) error
	// UpTo is how many entries there are up to and including index, and roughly how
	// many bytes they take.
	UpTo(index uint64) (entries, bytes uint64)
	// Bytes is roughly what the range's entries take.
	Bytes() uint64
}
