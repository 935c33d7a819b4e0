package node

import (
	"context"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/scrub"
)

// roomPart is the part of the disk that is to be free beside the reserve: with less the disk fills.
const roomPart = 16

// scrubOptions are those of the Scrubber of a node whose stores and ranges are open.
func (n *Node) scrubOptions() scrub.Options {
	o := scrub.Options{
		Node: scrubbed{n}, Chunks: n.stores.extents, Rows: n.stores.state, Clock: n.o.Clock, Period: n.o.ScrubPeriod, Grace: n.o.CollectGrace,
		CopyBytesPerSecond: n.o.FetchBytesPerSecond, Off: n.o.Base != nil, Registerer: n.o.registerer(), Logger: n.o.Logger,
	}
	if n.o.RowChunks != nil {
		o.RowChunks = n.rowChunks
	}
	for _, r := range n.ranges {
		o.Ranges = append(o.Ranges, scrub.Range{ID: r.ID(), Log: r.log, Spans: ranges.ChunkSpans(r.ID(), n.o.ChunkSpans)})
	}
	if !n.o.Stepped { // Which tables there are, and which rows are durable, depends on the state store's own goroutines.
		o.Stores = append(o.Stores, scrub.Store{Name: "state", Files: n.stores.state})
		o.Space, o.Outboxes = n.stores.state, true
	}
	o.Stores = append(o.Stores, scrub.Store{Name: "log", Files: n.stores.log})
	return o
}

// ScrubStep does one step of the scrubber: see scrub.Scrubber.Step. Run calls it on a goroutine; a
// simulation calls ScrubStep instead.
func (n *Node) ScrubStep(ctx context.Context) time.Duration { return n.scrubber.Step(ctx) }

// rowChunks returns the payload chunks that a row of a range names.
func (n *Node) rowChunks(id geo.RangeID, key, value []byte) ([]extent.Ref, error) {
	refs, local, err := ranges.OutboxChunks(id, key, value)
	if err == nil && !local {
		return n.o.RowChunks(key, value)
	}
	return refs, err
}

// namesChunks reports whether clients' rows in a range may name chunks, but for what was lost and found there.
func (n *Node) namesChunks(id geo.RangeID) bool {
	return n.o.ChunkSpans == nil || ranges.Service(id) == geo.Blob
}

// scrubbed implements scrub.Node, where its methods are described.
type scrubbed struct{ n *Node }

func (s scrubbed) Applied() (sum uint64) {
	for _, r := range s.n.ranges {
		sum += r.Machine.AppliedState().Index
	}
	return sum
}

func (s scrubbed) Unnamings() uint64 { return s.n.unnamings.Load() }

// Settle returns in a later pass than any that was under way before it. A leader proposes and logs in the pass in which it
// asked for a chunk, and a follower logs in the pass in which it did.
func (s scrubbed) Settle(ctx context.Context) error {
	return s.n.scheduler.do(ctx, func() (refusal, failure error) { return nil, s.n.scheduler.settle() })
}

func (s scrubbed) DiskFills() bool {
	size, free, reserve := s.n.room.Disk()
	return size > 0 && free < reserve+size/roomPart
}

func (s scrubbed) NamesComplete() (version uint64, ok bool) {
	q := &s.n.quarantine
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gaps, q.whole && !s.n.snapshots.Receiving()
}

func (s scrubbed) Copy(ref extent.Ref) error             { return s.n.fetcher.Copy(ref, 0) }
func (s scrubbed) Quarantine(store string, reason error) { s.n.quarantineStore(store, reason) }

func (s scrubbed) Repaired(chunks, bytes int) {
	s.n.event(Event{Kind: ChunksRepaired, Node: s.n.o.ID, Reason: fmt.Sprintf("%d chunks, %d bytes, copied from peers", chunks, bytes)})
}
