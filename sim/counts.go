package sim

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Counts holds how often each fault fired and what the faults caused.
type Counts struct {
	// Messages between nodes of a location.
	NetLost, NetDoubled, NetDelayed, NetReordered uint64
	// Nodes, and their wall clocks. Killed ones died in the middle of a pass, after they
	// had sent what they had not yet synced; a power cut takes all nodes of a location
	// at once. Drained ones had others lead what they led before they stopped.
	Isolated, Stopped, Drained, Crashed, Killed, PowerCut, ClockStepped uint64
	// Ways between two nodes that were cut, nodes that stood still, clocks set wrong by up to
	// a century, files of which a crash kept only some blocks, fsyncs that failed, disks
	// without room. Slow nodes worked only now and then; PassStopped counts schedulers that stood
	// still inside a pass, PassTook the parts of passes that took time, PassStalled those that took long.
	WayCut, Paused, PassStopped, PassTook, PassStalled, Slowed, ClockJumped, ClocksLeapt, Torn, SyncFailed, DiskFull uint64
	// Disks that had next to nothing left at the end of a run, and the reads that replicas answered meanwhile.
	DiskFilled, FullRead, FoldersMixed uint64
	// Disks that lost or altered durable bytes: of the log, of the state, of everything.
	// LogCorrupted and ChunkDamaged count flipped bits in logs of running nodes and in chunks.
	LogDamaged, LogCorrupted, StateDamaged, NodeEmptied, ChunkDamaged uint64
	// The link between the locations, of which at times only calls or only the stream was cut, and
	// the stream that crosses it.
	LinkCut, CallsCut, BusCut, LinkStalled                                                uint64
	StreamLost, StreamDoubled, StreamReordered, StreamDelayed, StreamRefused, StreamWiped uint64

	// Ranges that were recovered with loss, the acknowledged writes that this lost, streams whose copy
	// then held a record that the source had lost, streams whose receiver lost what the source had
	// deleted, and stops of streams that both ends committed.
	Recovered, WriteLost, Forked, ReceiverLost, StreamStopped uint64
	// Gates that were behind those of the catalog when a range was recovered, at the primary and at the secondary of
	// their account, and copies that were made again in their epoch.
	GateLost, CopyGateLost, CopiedAgain uint64
	// FellOut are streams of accounts that fell out of the outbox's budget.
	FellOut uint64

	// Calls between the directories of the locations that were lost, or came twice. Bootstraps that ended, began
	// again in a later epoch before they had ended, and gave way to a change to LRS; copies that were made again;
	// changes to LRS that ended; changes between GRS and RA-GRS. ImageRecord are records of images, CopyWiped spans
	// of copies that were deleted; BootstrapSeen and CopyRefused questions to secondaries while a copy was made.
	CallLost, CallDoubled, Bootstrapped, BootstrapAgain, BootstrapLeft, Rebuild, Left, Relabeled uint64
	ImageRecord, CopyWiped, BootstrapSeen, CopyRefused                                           uint64
	// Moved are planned moves of a primary that the other location took, MoveEnded those that ended without effect, of
	// which MoveRefused had been offered. FormerRefused are writes, FormerRead reads that were refused by a location which
	// was not the primary, or not any more.
	Moved, MoveEnded, MoveRefused, FormerRefused, FormerRead uint64
	// LostReported are changes that former primaries reported as lost, LostIncomplete ranges that could not report all.
	// CatalogRewound are former primaries whose containers had diverged, and were rewound; StrayWiped generations there that
	// the present one does not have; SweptAgain ranges that needed all rows of containers whose deletion was lost.
	LostReported, LostIncomplete, CatalogRewound, StrayWiped, SweptAgain uint64
	// PromotionTaken are unplanned failovers, PromotionAlive those with all nodes of the former primary up, PromotionEnded and
	// PromotionLate those that an operator ended and whose time was over. PromotionLost are the acknowledged writes that
	// they lost, StrayWrite the writes of former primaries that did not know. FormerFollowed are former primaries that went
	// on as secondaries without a copy, FormerRewound those that had what the present one had not, and were rewound,
	// FormerDiverged those that could not be, DivergedRebuilt the copies of those that were made again.
	PromotionTaken, PromotionAlive, PromotionEnded, PromotionLate, PromotionLost uint64
	StrayWrite, FormerFollowed, FormerRewound, FormerDiverged, DivergedRebuilt   uint64

	// What they caused: streams with a hole, records that came again and were dropped,
	// records that had to wait for their table or were skipped with it, pulls of records
	// and of full closed records, changes of a range's leader, replicas that left the
	// in-sync set, and answers of commands: done, refused, unknown; ranges whose receiver left
	// what they held to the pull, since they alone stood.
	RangeStood, Gap, Dedup, Wait, Skipped, Pull, FullPull, Looked, LeaderChange, OutOfSync, Acked, Refused, Unknown uint64
	// Nodes whose epochs were confirmed, or no longer; how often the witness died, and could not be reached; promotions that
	// were committed with a claim, and claims that it was to forget.
	EpochsChanged, WitnessKilled, WitnessCut, PromotionClaimed, ClaimWithdrawn uint64
	// Generations wiped by sweepers.
	Swept uint64
	// Messages that clients got, and that were collected; subqueues that were added, drained and removed; changes of queues,
	// messages that were got again, and queues whose messages were all got, that were checked.
	QueueGot, QueueExpired, QueueCleared, QueueAdded, QueueDrained, QueueRemoved uint64
	QueueChecked, QueueHiddenChecked, QueueEmptied                               uint64
	// Messages that clients got, of which a range that was recovered with a loss kept that they are hidden, or lost it.
	QueueHidingKept, QueueHidingLost uint64
	// Receivers that began, and how often one did while that of an earlier term still ran.
	ReceiverStarted, ReceiversAtOnce uint64
	// Range snapshots installed, broken off on their way, and gone on with by the key of a row; leaders that slowed the
	// writers of a range for one; replicas found lost, begun again under another id, and promoted, some of them under
	// an id that is the number of another node; nodes that took no writes for want of room; nodes that found their clock wrong, and
	// transfers of leadership, because of that or since a node drained.
	Snapshot, SnapshotBroken, SnapshotResumed, WritesSlowed                             uint64
	ReplicaLost, Rebuilding, Promoted, PromotedForeign, ReadOnly, ClockOff, Transferred uint64
	// Reads of a damaged chunk that another node served; rounds of repair that copied chunks from
	// a peer; stores that a node found damaged while it ran.
	ReadElsewhere, Repaired, StoreQuarantined uint64
	// Chunks that did not reach a node, or a node that fetched them from its leader; and
	// pushes over the link that failed. Chunks that a follower fetched, that the other
	// location was pushed ahead of a record, and that it fetched itself.
	// ChunkWrong: peers sent other bytes than they hold.
	ChunkCollected, ChunkLost, FetchLost, PushLost, ChunkWrong, ChunkFetched, ChunkPushed, ChunkPulled uint64
	// Acknowledged entity group transactions, and writes of blobs; blocks that a list
	// took from the list before it.
	Transaction, BlobInline, BlobChunked, Block, BlockList, BlobDeleted, DeadDropped, BlockReused uint64
	// Append blobs made, appended to and sealed, and answers of appends that were checked.
	AppendBlob, Appended, Sealed, AppendChecked uint64
	// Actions on leases that took effect, writes under one, snapshots made and deleted, and read on a replica.
	Leased, WrittenUnderLease, Copied, CopyStaged, Snapshotted, SnapshotDeleted, SnapshotRead uint64
	// What was checked: acknowledgements against crashed disks, refusals against what they saw,
	// reads, those under a lease that was there already, reopened replicas, partitions at the secondary, states of groups of entities, blobs
	// read, chunks looked for on a replica, votes against crashed disks, values of Last Sync Time, lanes by verify.
	AckChecked, RefusalChecked, ReadChecked, ReadLeased, Reopened, PartitionChecked, GroupChecked, BlobChecked, ChunkChecked, VoteChecked, SyncChecked, WallChecked, LaneVerified uint64
}

// Count is one number of Counts with its name.
type Count struct {
	Name string
	N    uint64
}

// All lists the counts in the order of the fields.
func (c Counts) All() []Count {
	v := reflect.ValueOf(c)
	all := make([]Count, v.NumField())
	for i := range all {
		all[i] = Count{kebab(v.Type().Field(i).Name), v.Field(i).Uint()}
	}
	return all
}

// kebab is a field's name in reports: net-lost for NetLost.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// String is the counts on one line.
func (c Counts) String() string {
	var b strings.Builder
	for i, n := range c.All() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%d", n.Name, n.N)
	}
	return b.String()
}

// addTo adds the counts of a run to those of others, by name.
func (c Counts) addTo(totals map[string]uint64) {
	for _, n := range c.All() {
		totals[n.Name] += n.N
	}
}
