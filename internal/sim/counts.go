package sim

import (
	"fmt"
	"strings"
)

// Counts says how often each fault fired and what the faults caused.
type Counts struct {
	// Messages between nodes of a location.
	NetLost, NetDoubled, NetDelayed, NetReordered uint64
	// Nodes, and their wall clocks. Killed ones died in the middle of a pass, after they
	// had sent what they had not yet synced; a power cut takes all nodes of a location
	// at once.
	Isolated, Stopped, Crashed, Killed, PowerCut, ClockStepped uint64
	// The link between the locations, and the stream that crosses it.
	LinkCut, LinkStalled                                                                  uint64
	StreamLost, StreamDoubled, StreamReordered, StreamDelayed, StreamRefused, StreamWiped uint64

	// What they caused: streams with a hole, records that came again and were dropped,
	// records that had to wait for their table or were skipped with it, pulls of records
	// and of full closed records, changes of a range's leader, replicas that left the
	// in-sync set, and answers of commands: done, refused, unknown.
	Gap, Dedup, Wait, Skipped, Pull, FullPull, LeaderChange, OutOfSync, Acked, Refused, Unknown uint64
	// Chunks that did not reach a node, or a node that fetched them from its leader; and
	// pushes over the link that failed. Chunks that a follower fetched, that the other
	// location was pushed ahead of a record, and that it fetched itself.
	ChunkLost, FetchLost, PushLost, ChunkFetched, ChunkPushed, ChunkPulled uint64
	// Acknowledged entity group transactions, and writes of blobs; blocks that a list
	// took from the list before it.
	Transaction, BlobInline, BlobChunked, Block, BlockList, BlobDeleted, DeadDropped, BlockReused uint64
	// What was checked: acknowledgements against crashed disks, reads, reopened
	// replicas, partitions at the secondary, states of groups of entities, blobs
	// read, chunks looked for on a replica, votes against crashed disks, values of Last Sync Time.
	AckChecked, ReadChecked, Reopened, PartitionChecked, GroupChecked, BlobChecked, ChunkChecked, VoteChecked, SyncChecked uint64
}

// Count is one number of Counts with its name.
type Count struct {
	Name string
	N    uint64
}

// All lists the counts in the order of the report.
func (c Counts) All() []Count {
	return []Count{
		{"net-lost", c.NetLost},
		{"net-doubled", c.NetDoubled},
		{"net-delayed", c.NetDelayed},
		{"net-reordered", c.NetReordered},
		{"isolated", c.Isolated},
		{"stopped", c.Stopped},
		{"crashed", c.Crashed},
		{"killed", c.Killed},
		{"power-cut", c.PowerCut},
		{"clock-stepped", c.ClockStepped},
		{"link-cut", c.LinkCut},
		{"link-stalled", c.LinkStalled},
		{"stream-lost", c.StreamLost},
		{"stream-doubled", c.StreamDoubled},
		{"stream-reordered", c.StreamReordered},
		{"stream-delayed", c.StreamDelayed},
		{"stream-refused", c.StreamRefused},
		{"stream-wiped", c.StreamWiped},
		{"gap", c.Gap},
		{"dedup", c.Dedup},
		{"wait", c.Wait},
		{"skipped", c.Skipped},
		{"pull", c.Pull},
		{"full-pull", c.FullPull},
		{"leader-change", c.LeaderChange},
		{"out-of-sync", c.OutOfSync},
		{"acked", c.Acked},
		{"refused", c.Refused},
		{"unknown", c.Unknown},
		{"chunk-lost", c.ChunkLost},
		{"fetch-lost", c.FetchLost},
		{"push-lost", c.PushLost},
		{"chunk-fetched", c.ChunkFetched},
		{"chunk-pushed", c.ChunkPushed},
		{"chunk-pulled", c.ChunkPulled},
		{"transaction", c.Transaction},
		{"blob-inline", c.BlobInline},
		{"blob-chunked", c.BlobChunked},
		{"block", c.Block},
		{"block-list", c.BlockList},
		{"blob-deleted", c.BlobDeleted},
		{"dead-dropped", c.DeadDropped},
		{"block-reused", c.BlockReused},
		{"ack-checked", c.AckChecked},
		{"read-checked", c.ReadChecked},
		{"reopened", c.Reopened},
		{"partition-checked", c.PartitionChecked},
		{"group-checked", c.GroupChecked},
		{"blob-checked", c.BlobChecked},
		{"chunk-checked", c.ChunkChecked},
		{"vote-checked", c.VoteChecked},
		{"sync-checked", c.SyncChecked},
	}
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
