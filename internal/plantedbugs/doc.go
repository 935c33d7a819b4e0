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
	// LeapUnchecked believes a wall clock that leapt ahead on all nodes of a location at once.
	LeapUnchecked
	// FolderUnclaimed starts a node in the folder of another one.
	FolderUnclaimed
	// FolderByNumber starts a node in the folder of the node with its number, of the other location or of another stamp.
	FolderByNumber
	// ProofIgnored lets a leader go on that lacks what another replica knows to be committed (R4).
	ProofIgnored
	// WallOfReceiver shows as Last Sync Time what the clock of the secondary shows, where closed times are ahead (R13).
	WallOfReceiver
	// TrimUncompared takes an acknowledged cursor without a look at its hash (R16).
	TrimUncompared
	// DuplicateByNumber takes a received record at or below the cursor for a repetition, whatever its
	// hash, and compares no closed head with a cursor (R16).
	DuplicateByNumber
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
	// EpochsUnconfirmed takes every epoch for confirmed, whatever the other location has (R21).
	EpochsUnconfirmed
	// TakenUndrained offers and takes an account whatever of its streams the other location has applied (R19).
	TakenUndrained
	// OfferedOpen offers an account whose gates are open in all ranges but the catalog (R19).
	OfferedOpen
	// WithdrawnUnrefused opens the gates of an account that was offered without the refusal of the other location (R19).
	WithdrawnUnrefused
	// PromotedUnfrozen commits a promotion while the copy takes records in all ranges but the catalog (R20).
	PromotedUnfrozen
	// ForkLaneLost leaves a lane out of fork records (R20).
	ForkLaneLost
	// RewoundUnsent rewinds a former primary without the rows that its lost changes have changed (R22).
	RewoundUnsent
	// SweptUnsent rewinds a former primary without the rows that it has deleted with a lost deletion of their container (R22).
	SweptUnsent
	// DivergedFollows lets a former primary be the secondary whatever it has that the present one has not (R20, R22).
	DivergedFollows
	// FormerUnfenced answers writes of accounts of which a higher epoch is known (R21).
	FormerUnfenced
	// GenerationsStayClosed leaves closed, in a copy that begins empty, what the location closed as the primary (R20).
	GenerationsStayClosed
	// ClaimUnawaited commits a promotion while leases from before its claim may be held (R21).
	ClaimUnawaited
	// ClaimsUnlisted leaves claims out of the answers to renewals (R21).
	ClaimsUnlisted
	// CollectLogged drops chunks that only entries of the log name (R9).
	CollectLogged
	// SnapshotListEnded deletes the rows of a block list with the write that replaces it, also where a snapshot has it (R9).
	SnapshotListEnded
	// SnapshotListUnread finds what is dead of a blob by its committed list alone (R9).
	SnapshotListUnread
	// SnapshotUnnamed leaves the chunks of snapshots out of what the collection keeps (R9).
	SnapshotUnnamed
	// SnapshotsRevived makes the first snapshot of a blob under the number of those that were deleted (R9).
	SnapshotsRevived
	// SnapshotsPassed deletes a blob whatever snapshots it has.
	SnapshotsPassed
	// LeaseOverwritten forgets a lease with the content that is overwritten.
	LeaseOverwritten
	// LeaseTaken gives a lease to anybody who asks.
	LeaseTaken
	// AppendedUnread finds the blocks of an append blob dead (R9).
	AppendedUnread
	// PositionIgnored appends whatever the position that the client asked for.
	PositionIgnored
	// SealForgotten leaves the seal of an append blob out when its description is written.
	SealForgotten
	// CopyUnnamed names no chunks of the blocks that a copy brings (R3).
	CopyUnnamed
	// CopyOvertaken commits a copy whatever became of the blocks that were staged for it (R9).
	CopyOvertaken
	// ReadsNeedRoom takes no entries on a disk with next to nothing left, those that reads need included (R1, R5).
	ReadsNeedRoom
)

// names are those of the bugs in reports.
//
//nolint:gochecknoglobals // A table, never written.
var names = [...]string{
	SkipStream:            "skip-stream",
	ApplyOutOfOrder:       "apply-out-of-order",
	AckAtQuorum:           "ack-at-quorum",
	CursorOutsideBatch:    "cursor-outside-batch",
	SplitTransaction:      "split-transaction",
	MatchWithoutPayload:   "match-without-payload",
	ApplyWithoutPayload:   "apply-without-payload",
	LongLease:             "long-lease",
	VoteBeforeSync:        "vote-before-sync",
	VoidLease:             "void-lease",
	WallClock:             "wall-clock",
	SnapshotWithoutCursor: "snapshot-without-cursor",
	SnapshotOverOldRows:   "snapshot-over-old-rows",
	TrimUnacknowledged:    "trim-unacknowledged",
	EmptyUnderOldID:       "empty-under-old-id",
	ReadUnverified:        "read-unverified",
	PutUnverified:         "put-unverified",
	ScrubBlind:            "scrub-blind",
	LeaseWithoutQuorum:    "lease-without-quorum",
	OverlayOutlivesTerm:   "overlay-outlives-term",
	LeaseOfPassBegin:      "lease-of-pass-begin",
	HeldUnnamed:           "held-unnamed",
	ClosedAheadOfFrame:    "closed-ahead-of-frame",
	ClockUnchecked:        "clock-unchecked",
	LeapUnchecked:         "leap-unchecked",
	FolderUnclaimed:       "folder-unclaimed",
	FolderByNumber:        "folder-by-number",
	ProofIgnored:          "proof-ignored",
	WallOfReceiver:        "wall-of-receiver",
	TrimUncompared:        "trim-uncompared",
	DuplicateByNumber:     "duplicate-by-number",
	WhyOneClock:           "why-one-clock",
	VerifyMoved:           "verify-moved",
	ReceiverOutlivesTerm:  "receiver-outlives-term",
	ReceiverFromMemory:    "receiver-from-memory",
	CopyUnwiped:           "copy-unwiped",
	LiveBeforeApplied:     "live-before-applied",
	GateStaysLost:         "gate-stays-lost",
	CopyRevived:           "copy-revived",
	EpochsUnconfirmed:     "epochs-unconfirmed",
	TakenUndrained:        "taken-undrained",
	OfferedOpen:           "offered-open",
	WithdrawnUnrefused:    "withdrawn-unrefused",
	PromotedUnfrozen:      "promoted-unfrozen",
	ForkLaneLost:          "fork-lane-lost",
	RewoundUnsent:         "rewound-unsent",
	SweptUnsent:           "swept-unsent",
	DivergedFollows:       "diverged-follows",
	FormerUnfenced:        "former-unfenced",
	GenerationsStayClosed: "generations-stay-closed",
	ClaimUnawaited:        "claim-unawaited",
	ClaimsUnlisted:        "claims-unlisted",
	CollectLogged:         "collect-logged",
	SnapshotListEnded:     "snapshot-list-ended",
	SnapshotListUnread:    "snapshot-list-unread",
	SnapshotUnnamed:       "snapshot-unnamed",
	SnapshotsRevived:      "snapshots-revived",
	SnapshotsPassed:       "snapshots-passed",
	LeaseOverwritten:      "lease-overwritten",
	LeaseTaken:            "lease-taken",
	AppendedUnread:        "appended-unread",
	PositionIgnored:       "position-ignored",
	CopyUnnamed:           "copy-unnamed",
	CopyOvertaken:         "copy-overtaken",
	SealForgotten:         "seal-forgotten",
	ReadsNeedRoom:         "reads-need-room",
}

// String is the bug's name in reports.
func (b Bug) String() string {
	if int(b) < len(names) && names[b] != "" {
		return names[b]
	}
	return "none"
}
