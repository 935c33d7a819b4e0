package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"antipode/geo"
	"antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// One seed in collectingEvery is a run in which nodes drop payload that nothing names. In the others they keep it: the check
// below reads all rows, and a chunk that is gone asks less of what came before it.
const collectingEvery = 5

// collectGrace is how long such a node keeps chunks that nothing has named yet. Those that were named go after two rounds, which
// begin an eighth of that apart. A node that keepsAll ends no second round within a run.
const (
	collectGrace = 800 * time.Millisecond
	keepsAll     = 24 * time.Hour
)

func (s *Sim) collectGrace() time.Duration {
	if s.collects {
		return collectGrace
	}
	return keepsAll
}

// scrub runs a step of the node's upkeep. It returns how long it may rest then.
func (m *member) scrub() time.Duration {
	if !m.l.s.collects {
		return m.n.ScrubStep(context.Background())
	}
	before := m.n.Extents().Refs()
	rest := m.n.ScrubStep(context.Background())
	m.checkCollected(before)
	return rest
}

// checkCollected checks R9 for a step of the node's upkeep, before which it held some chunks: nothing here names those that
// are gone.
func (m *member) checkCollected(before []extent.Ref) {
	held := map[extent.ChunkID]bool{}
	for _, ref := range m.n.Extents().Refs() {
		held[ref.ID] = true
	}
	gone := map[extent.ChunkID]bool{}
	for _, ref := range before {
		delete(m.collected, ref.ID) // It came back.
		if !held[ref.ID] {
			gone[ref.ID] = true
		}
	}
	if len(gone) == 0 || m.killed != nil {
		return
	}
	for id := range gone {
		m.collected[id] = true
	}
	m.l.s.counts.ChunkCollected += uint64(len(gone))
	m.l.s.event("%s node %d collected %d chunks", m.l.name, m.id, len(gone))
	err := errors.Join(
		findNames("a row", gone, m.n.State().Scan), findNames("a durable row", gone, m.n.State().ScanDurable), m.findInLog(gone))
	if err != nil {
		m.l.s.fail(fmt.Errorf("%w: %s-%d: %w", ErrCollected, m.l.name, m.id, err))
	}
}

// findNames returns an error if a row names one of the chunks. A record in the outbox may have the ids of more than it names: of
// chunks that the rows before it name.
func findNames(what string, gone map[extent.ChunkID]bool, scan func(lower, upper []byte) (kv.Iterator, error)) error {
	for _, span := range ranges.ChunkSpans(geo.FirstRange(geo.Blob), blobs.ChunkSpans) {
		it, err := scan(span.Lower, span.Upper)
		if err != nil {
			return err
		}
		for err == nil && it.Next() {
			refs, local, parseErr := ranges.OutboxChunks(geo.FirstRange(geo.Blob), it.Key(), it.Value())
			if err = parseErr; err == nil && !local {
				refs, err = blobs.RowChunks(it.Key(), it.Value())
			}
			err = errors.Join(err, amongst(fmt.Sprintf("%s, %q,", what, it.Key()), refs, gone))
		}
		if err = errors.Join(err, it.Close()); err != nil {
			return err
		}
	}
	return nil
}

// findInLog returns an error if an entry of the untrimmed log names one of the chunks, as a crash now would leave the log. A log
// with a flipped bit cannot be read whole.
func (m *member) findInLog(gone map[extent.ChunkID]bool) error {
	if m.logCorrupted {
		return nil
	}
	return m.inCrashedLog(geo.FirstRange(geo.Blob), func(log state.RangeLog) error {
		first, err := log.FirstIndex()
		last, lastErr := log.LastIndex()
		if err = errors.Join(err, lastErr); err != nil || last < first {
			return err
		}
		entries, err := log.Entries(first, last+1, math.MaxUint64)
		for _, e := range entries {
			if !change.NamesChunks(e.Data) || err != nil {
				continue
			}
			refs, parseErr := change.GroupChunks(e.Data)
			err = errors.Join(parseErr, amongst(fmt.Sprintf("entry %d", e.GetIndex()), refs, gone))
		}
		return err
	})
}

// amongst returns an error if one of some chunks that are named is gone.
func amongst(what string, named []extent.Ref, gone map[extent.ChunkID]bool) error {
	for _, ref := range named {
		if gone[ref.ID] {
			return fmt.Errorf("%s names chunk %s", what, ref.ID)
		}
	}
	return nil
}

// uncollected returns those of some chunks that the collection of the node did not drop: see checkCollected.
func (m *member) uncollected(refs []extent.Ref) (rest []extent.Ref) {
	for _, ref := range refs {
		if !m.collected[ref.ID] {
			rest = append(rest, ref)
		}
	}
	return rest
}
