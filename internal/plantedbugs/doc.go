// Package plantedbugs holds the planted bugs: known ways to break the promises, which
// the simulator must catch. They exist only in builds with the tag plantedbugs; in
// every other build Planted is the constant false and the compiler removes the bug.
//
// Invariant: no build without the tag can run a planted bug.
package plantedbugs

// Bug is one planted bug.
type Bug int32

// The planted bugs.
const (
	// SkipStream leaves some streams out of the minimum that Last Sync Time is (R13).
	SkipStream Bug = iota + 1
	// ApplyOutOfOrder applies a received record before the one it follows (R11).
	ApplyOutOfOrder
	// AckAtQuorum acknowledges a write that not all in-sync replicas hold (invariant 1).
	AckAtQuorum
	// CursorOutsideBatch stores a cursor apart from the data it counts (DESIGN 2.6).
	CursorOutsideBatch
	// SplitTransaction commits what an entity group transaction does as two records
	// (invariant 2).
	SplitTransaction
	// MatchWithoutPayload persists and acknowledges an entry at a follower that does not
	// hold the chunks it names (R3).
	MatchWithoutPayload
	// ApplyWithoutPayload applies a received record before its chunks are there (R3).
	ApplyWithoutPayload
	// LongLease answers reads under a lease that outlives the term, on a leader that
	// does not notice its end (R5).
	LongLease
	// VoteBeforeSync sends a vote that a crash makes the voter forget (R4).
	VoteBeforeSync
	// VoidLease answers reads although the lease they began under has ended (R5).
	VoidLease
	// WallClock gives commit times by the wall clock alone (R6).
	WallClock
	// SnapshotWithoutCursor leaves the cursors out of a range snapshot.
	SnapshotWithoutCursor
	// SnapshotOverOldRows leaves rows in place that a range snapshot does not hold.
	SnapshotOverOldRows
	// TrimUnacknowledged deletes from the outbox what the other location does not have (R14).
	TrimUnacknowledged
	// EmptyUnderOldID lets a replica whose disk is gone go on under its id (R4).
	EmptyUnderOldID
	// ReadUnverified returns payload that fails its CRC, to readers and to peers that
	// repair with it (invariant 5).
	ReadUnverified
	// PutUnverified stores payload that does not fit its reference, such as a peer sends
	// for a repair whose own copy is damaged (invariant 5).
	PutUnverified
	// ScrubBlind passes over damaged copies (invariant 5).
	ScrubBlind
	// LeaseWithoutQuorum renews a lease as if a quorum had answered (R5).
	LeaseWithoutQuorum
	// OverlayOutlivesTerm evaluates on what groups of an earlier term would have left (R1).
	OverlayOutlivesTerm
	// LeaseOfPassBegin compares a lease with the time at which the scheduler's pass began,
	// not with that of the answer (R5).
	LeaseOfPassBegin
	// HeldUnnamed leaves streams that are held back out of the closed records of frames (R12).
	HeldUnnamed
	// ClosedAheadOfFrame closes a frame at the time of the newest commit of the range, not at that
	// of the last record that was taken (R12).
	ClosedAheadOfFrame
	// ClockUnchecked evaluates on a leader whose wall clock is not checked against those of its
	// quorum (R6).
	ClockUnchecked
	// TrimUncompared takes an acknowledged cursor without a look at its hash (R16).
	TrimUncompared
	// DuplicateByNumber takes a received record at or below the cursor for a repetition, whatever its
	// hash, and compares no closed head with a cursor (R16).
	DuplicateByNumber
	// FellOutOnce names what fell out of the outbox in the first frame of a backlog alone (R18).
	FellOutOnce
	// WhyOneClock takes what holds Last Sync Time back to be late by the clock of the secondary alone.
	WhyOneClock
	// VerifyMoved compares lanes whose two ends stand at different records.
	VerifyMoved
	// ReceiverOutlivesTerm lets a process receive on after the term in which it led the catalog.
	ReceiverOutlivesTerm
	// ReceiverFromMemory begins to receive with what the process read in an earlier term.
	ReceiverFromMemory
	// CopyUnwiped opens or closes the gate of a copy that is to begin empty, or to end, and leaves its rows (R17, R19).
	CopyUnwiped
	// LiveBeforeApplied ends a bootstrap once its image is numbered, whatever of it the other location has (R17).
	LiveBeforeApplied
	// GateStaysLost leaves a range that was recovered with loss under a former gate of an account that is primary here (R7).
	GateStaysLost
	// CopyRevived leaves what a recovery with loss brings back of a copy that was wiped (R19).
	CopyRevived
)

// String is the bug's name in reports.
func (b Bug) String() string {
	switch b {
	case SkipStream:
		return "skip-stream"
	case ApplyOutOfOrder:
		return "apply-out-of-order"
	case AckAtQuorum:
		return "ack-at-quorum"
	case CursorOutsideBatch:
		return "cursor-outside-batch"
	case SplitTransaction:
		return "split-transaction"
	case MatchWithoutPayload:
		return "match-without-payload"
	case ApplyWithoutPayload:
		return "apply-without-payload"
	case LongLease:
		return "long-lease"
	case VoteBeforeSync:
		return "vote-before-sync"
	case VoidLease:
		return "void-lease"
	case WallClock:
		return "wall-clock"
	case SnapshotWithoutCursor:
		return "snapshot-without-cursor"
	case SnapshotOverOldRows:
		return "snapshot-over-old-rows"
	case TrimUnacknowledged:
		return "trim-unacknowledged"
	case EmptyUnderOldID:
		return "empty-under-old-id"
	case ReadUnverified:
		return "read-unverified"
	case PutUnverified:
		return "put-unverified"
	case ScrubBlind:
		return "scrub-blind"
	case LeaseWithoutQuorum:
		return "lease-without-quorum"
	case OverlayOutlivesTerm:
		return "overlay-outlives-term"
	case LeaseOfPassBegin:
		return "lease-of-pass-begin"
	case HeldUnnamed:
		return "held-unnamed"
	case ClosedAheadOfFrame:
		return "closed-ahead-of-frame"
	case ClockUnchecked:
		return "clock-unchecked"
	case TrimUncompared:
		return "trim-uncompared"
	case DuplicateByNumber:
		return "duplicate-by-number"
	case FellOutOnce:
		return "fell-out-once"
	case WhyOneClock:
		return "why-one-clock"
	case VerifyMoved:
		return "verify-moved"
	case ReceiverOutlivesTerm:
		return "receiver-outlives-term"
	case ReceiverFromMemory:
		return "receiver-from-memory"
	case CopyUnwiped:
		return "copy-unwiped"
	case LiveBeforeApplied:
		return "live-before-applied"
	case GateStaysLost:
		return "gate-stays-lost"
	case CopyRevived:
		return "copy-revived"
	}
	return "none"
}
