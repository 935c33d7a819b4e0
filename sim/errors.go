package sim

import "errors"

// The promises, one error each. A run ends with the first that was broken.
var (
	// ErrDiverged: two replicas applied different entries under one index, or one
	// left an index out.
	ErrDiverged = errors.New("sim: replicas applied different entries at one index")
	// ErrReplicaState: a replica's state is not that of its applied index, cursors
	// and outbox included (DESIGN 2.6, invariant 6).
	ErrReplicaState = errors.New("sim: a replica's state is not that of its applied index")
	// ErrReplicaLost: a crash that only lost unsynced data cost a replica (R4).
	ErrReplicaLost = errors.New("sim: a replica was lost to a crash of unsynced data")
	// ErrNumbers: numbers of a stream are not dense or not chained (R1, R10).
	ErrNumbers = errors.New("sim: numbers of a stream are not dense and chained")
	// ErrCommitTime: commit times of a range do not strictly increase, or have the
	// other location's lowest bit (R6).
	ErrCommitTime = errors.New("sim: commit times do not strictly increase")
	// ErrNotDurable: an acknowledged write is missing on an in-sync replica's disk
	// (invariant 1).
	ErrNotDurable = errors.New("sim: an acknowledged write is not durable on every in-sync replica")
	// ErrCollected: a node dropped a chunk that its durable state, its newest state, its outbox or an entry of its log
	// names (R9).
	ErrCollected = errors.New("sim: a chunk was collected that something names")
	// ErrPayload: a replica sent or applied a change, or acknowledged it, without the
	// payload that it names (R3).
	ErrPayload = errors.New("sim: a change whose payload is not on the replica")
	// ErrContent: the content of a blob is not what its writes made it.
	ErrContent = errors.New("sim: a blob is not what was written")
	// ErrAppended: a block was appended that was to be refused, or is not where its answer has it.
	ErrAppended = errors.New("sim: a block was appended where it was not to be")
	// ErrLease: somebody took a lease, or wrote a blob, while another one held the lease.
	ErrLease = errors.New("sim: a lease has two holders")
	// ErrUnrepaired: after healing a damaged copy was not repaired, although a peer holds the
	// chunk intact (invariant 5).
	ErrUnrepaired = errors.New("sim: a damaged copy was not found and repaired")
	// ErrVote: a crash would make a replica forget a vote that it sent (R4).
	ErrVote = errors.New("sim: a vote was sent before it was durable")
	// ErrForgot: a replica took part under its id although its disk was gone (R4).
	ErrForgot = errors.New("sim: a replica that lost what it promised took part under its id")
	// ErrAckLost: an acknowledged write is not in the log.
	ErrAckLost = errors.New("sim: an acknowledged write is not in the log")
	// ErrTwice: one write took effect twice.
	ErrTwice = errors.New("sim: a write took effect twice")
	// ErrGhost: a write that was refused took effect (R2, invariant 7).
	ErrGhost = errors.New("sim: a refused write took effect")
	// ErrStale: a write was evaluated on another state than the one it took effect on (R1).
	ErrStale = errors.New("sim: a write was evaluated on a state that was not its predecessor")
	// ErrStaleRead: a read did not see a write that was acknowledged before it (R5).
	ErrStaleRead = errors.New("sim: a read missed an acknowledged write")
	// ErrUncommitted: a write was refused on a state that was never committed (R5).
	ErrUncommitted = errors.New("sim: a write was refused for what never took effect")
	// ErrAnswer: a command was answered twice.
	ErrAnswer = errors.New("sim: a command was answered twice")
	// ErrReceivedOrder: the secondary applied a record out of order, twice, or with a
	// hole before it (R11, invariant 2).
	ErrReceivedOrder = errors.New("sim: the secondary applied a record out of order")
	// ErrUnconfirmed: a stamp whose nodes were all down acknowledged a write of an account that has a copy before it had
	// reached the other location (R21).
	ErrUnconfirmed = errors.New("sim: a write was acknowledged before epochs were confirmed")
	// ErrReceiver: a process receives that may not, or without having read what it has to know (R14).
	ErrReceiver = errors.New("sim: a process receives that may not")
	// ErrReceivedOther: the secondary applied a record that the primary did not
	// commit under its number (R11).
	ErrReceivedOther = errors.New("sim: the secondary applied what the primary did not commit")
	// ErrSkipped: the secondary moved a cursor past a record whose table lives (R14).
	ErrSkipped = errors.New("sim: the secondary skipped a record of a living table")
	// ErrSwept: rows of a generation that is not over, or not closed at its primary, were wiped (R8).
	ErrSwept = errors.New("sim: rows of a living table were wiped")
	// ErrUncompared: a range that was recovered with loss took a change before its gates were compared with the
	// catalog (R7).
	ErrUncompared = errors.New("sim: a change under a gate that may be a former one")
	// ErrGateLost: a recovery with loss took a gate back, and it stayed so after the comparison with the catalog (R7).
	ErrGateLost = errors.New("sim: a gate is behind the catalog's for good")
	// ErrTwoPrimaries: the gates of both locations take writes of an account in a range, or both serve its primary's name
	// (R19, invariant 4).
	ErrTwoPrimaries = errors.New("sim: both locations are the primary of an account")
	// ErrFormer: a write took effect at a location that was not the account's primary any more, or one that came to it then
	// was acknowledged (R19, invariant 4).
	ErrFormer = errors.New("sim: a former primary took a write")
	// ErrTakenEarly: a location became the primary of an account and had not applied all that the former one committed, or
	// its record is not of a later epoch (R19).
	ErrTakenEarly = errors.New("sim: a primary lacks what the former one committed")
	// ErrFork: a promotion was committed with a copy that was not frozen, or a fork record does not say where it ends (R20).
	ErrFork = errors.New("sim: a fork record does not say where the copy ends")
	// ErrPromised: a change at or below a Last Sync Time is lost to a promotion (R20).
	ErrPromised = errors.New("sim: a change at or below Last Sync Time is lost to a promotion")
	// ErrRevived: a write that was lost to a promotion shows at the account's present primary or secondary (R20, R22).
	ErrRevived = errors.New("sim: a write that was lost to a promotion shows")
	// ErrReport: a former primary reports a change as lost that is not, or does not report one (R22).
	ErrReport = errors.New("sim: the report of lost changes is wrong")
	// ErrDeleted: a change of a table took effect after its deletion was committed in
	// the table's range (R8).
	ErrDeleted = errors.New("sim: a deleted table was changed")
	// ErrQueue: a change of a queue lost or changed a message that it is not about, broke an invariant of a subqueue, is not on
	// the queue's lane, or left the dictionary without a subqueue that takes messages (Q1, Q2, Q6, Q7, Q12 to Q14, Q20, Q23).
	ErrQueue = errors.New("sim: a change of a queue breaks its invariants")
	// ErrGotTwice: two clients got a message within its timeout (Q2).
	ErrGotTwice = errors.New("sim: a message was got twice within its timeout")
	// ErrUndelivered: a message that lives is not got by who gets all, or is not counted (Q1, Q6).
	ErrUndelivered = errors.New("sim: a message is not delivered")
	// ErrAlarm: a fork, a wrong CRC32C or a refused epoch was reported where nothing
	// forked, nothing was damaged and no epoch was raised.
	ErrAlarm = errors.New("sim: false alarm")
	// ErrClosed: a commit at or below a closed time followed it, or a closed record
	// did not name a head (R12).
	ErrClosed = errors.New("sim: a closed record promised too much")
	// ErrNeverHad: the secondary's state of a partition is none that the primary had
	// (invariant 2).
	ErrNeverHad = errors.New("sim: the secondary shows a state that the primary never had")
	// ErrMixed: a part of an entity group transaction shows without the rest of it
	// (invariant 2).
	ErrMixed = errors.New("sim: a part of a transaction shows")
	// ErrMissing: a change at or below Last Sync Time is not at the secondary (invariant 3).
	ErrMissing = errors.New("sim: a change at or below Last Sync Time is missing at the secondary")
	// ErrHidden: Last Sync Time is shown over a stream that has forked, although the secondary took a
	// closed record of the range as it is since its recovery, or with a time that only such a record
	// can promise (R16, invariant 3). Forked is a stream whose copy holds a record that the source
	// lost, or whose source commits at or before a time that it had promised before the loss. Until
	// that closed record the secondary cannot know: it shows what had been promised.
	ErrHidden = errors.New("sim: Last Sync Time covers a stream that has forked")
	// ErrStopped: a stream was stopped that neither forked nor lost anything (R16).
	ErrStopped = errors.New("sim: a stream was stopped without a cause")
	// ErrConserved: the records of a stream are not accounted for: trimmed <= cursor <= head, and every
	// number up to the head was given once. A cursor that a recovery set back counts as it was before.
	ErrConserved = errors.New("sim: records of a stream are unaccounted for")
	// ErrSyncBack: Last Sync Time went back (R13).
	ErrSyncBack = errors.New("sim: Last Sync Time went back")
	// ErrDrain: a location did not start, or after healing the backlog did not drain,
	// a command was never answered, or Last Sync Time did not reach the present.
	ErrDrain = errors.New("sim: the locations do not come to rest")
	// ErrUnequal: after draining, the locations do not hold the same data.
	ErrUnequal = errors.New("sim: the locations do not hold the same data at the end")
	// ErrReadsNeedRoom: a replica answers no read, or a secondary no statistics, while disks are full (R5).
	ErrReadsNeedRoom = errors.New("sim: reads need room on a full disk")
	// ErrPanic: production code panicked.
	ErrPanic = errors.New("sim: panic")
	// ErrStore: a store of a node failed without a fault that explains it.
	ErrStore = errors.New("sim: a node's store failed")
)
