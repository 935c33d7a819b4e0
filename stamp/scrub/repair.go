package scrub

import (
	"context"
	"slices"
	"time"
)

const (
	// repairBatch is how many chunks of either kind one step copies.
	repairBatch = 32
	// repairAgain is how long the repair waits after no peer had an intact copy.
	repairAgain = time.Minute
	// missingMax bounds the chunks that wait for the repair.
	missingMax = 4096
)

// repairStep copies from the peers some of the chunks that are damaged or missing here. A copy
// counts only if it has the length and the CRC of the reference, so a peer whose own copy is
// damaged is skipped; and only once it is durable. A chunk that no peer has now waits: a missing one behind the others, and
// a damaged one, which the store names again, does not hold up those that are missing.
func (s *Scrubber) repairStep(ctx context.Context) time.Duration {
	refs := s.o.Chunks.Damaged(repairBatch)
	damaged, k := len(refs), min(len(s.missing), repairBatch)
	refs, s.missing = append(refs, s.missing[:k]...), s.missing[k:]
	if len(refs) == 0 {
		return min(damagePoll, s.o.Period)
	}
	repaired, waiting, bytes, failed := 0, 0, 0, error(nil)
	for i, ref := range refs {
		if ctx.Err() != nil {
			return damagePoll
		}
		if s.o.Chunks.Durable(ref.ID) {
			continue // Two walks found it missing, or it was put since.
		}
		if err := s.o.Node.Copy(ref); err != nil {
			failed = err
			waiting++
			if i >= damaged && !slices.Contains(s.missing, ref) { // The log and a row may both name it.
				s.missing = append(s.missing, ref)
			}
			continue
		}
		repaired++
		bytes += int(ref.Length)
	}
	if repaired > 0 {
		if err := s.o.Chunks.Sync(ctx); err != nil {
			return damagePoll // The scheduler notices a failed store.
		}
		s.counts.repaired.Add(uint64(repaired))
		s.o.Node.Repaired(repaired, bytes)
	}
	if failed != nil {
		s.o.Logger.Warn("damaged chunks wait for a peer that has them intact", "chunks", waiting, "error", failed)
		return min(repairAgain, s.o.Period)
	}
	return time.Duration(float64(bytes) / float64(s.o.CopyBytesPerSecond) * float64(time.Second))
}
