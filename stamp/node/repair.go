package node

import (
	"context"
	"fmt"
	"time"
)

// Of the repair of chunks.
const (
	repairBatch = 32
	// repairAgain is how long a chunk waits that no peer could give.
	repairAgain = time.Minute
	missingMax  = 4096
)

// repairStep copies some of the chunks that are damaged or missing here from the peers. A
// copy counts only if it is what the reference says, length and CRC, so a peer whose own
// is damaged is passed over; and only when it is durable.
func (u *upkeep) repairStep(ctx context.Context) time.Duration {
	refs := u.n.extents.Damaged(repairBatch)
	if len(refs) == 0 {
		k := min(len(u.missing), repairBatch)
		refs, u.missing = u.missing[:k:k], u.missing[k:]
	}
	if len(refs) == 0 {
		return min(damagePoll, u.n.o.ScrubPeriod)
	}
	repaired, waiting, bytes, failed := 0, 0, 0, error(nil)
	for _, ref := range refs {
		if ctx.Err() != nil {
			return damagePoll
		}
		if u.n.extents.Durable(ref.ID) {
			continue // Two walks found it missing, or it was put since.
		}
		if err := u.n.copyFromAny(ref, 0); err != nil {
			failed = err
			waiting++
			continue
		}
		repaired++
		bytes += int(ref.Length)
	}
	if repaired > 0 {
		if err := u.n.extents.Sync(ctx); err != nil {
			return damagePoll // A failed store is noticed by the scheduler.
		}
		u.counts.repaired.Add(uint64(repaired))
		u.n.event(Event{Kind: ChunksRepaired, Node: u.n.o.ID, Reason: fmt.Sprintf("%d chunks, %d bytes, copied from peers", repaired, bytes)})
	}
	if failed != nil {
		u.n.o.Logger.Warn("damaged chunks wait for a peer that has them intact", "chunks", waiting, "error", failed)
		return min(repairAgain, u.n.o.ScrubPeriod)
	}
	return time.Duration(float64(bytes) / float64(u.n.o.FetchBytesPerSecond) * float64(time.Second))
}
