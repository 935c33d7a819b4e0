package scrub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/state"
)

// The collection drops chunks that nothing names any more, or never did: their upload failed,
// or what named them was deleted or overwritten (R9). A round marks what is named here,
//
//  1. every entry of the untrimmed logs, also those that this node no longer needs,
//  2. then every row of the durable state that may name some (Range.Spans): clients' rows, and the outboxes,
//
// and then sweeps the chunks that two rounds found unnamed and untouched. When rounds begin is in rounds.go: for
// chunks that were named before, those are minutes apart; for chunks of which nothing is known but that
// somebody put them, Options.Grace.
//
// Why no chunk is dropped that is named, or about to be:
//
//   - The log is walked before the state: an entry that is trimmed while the log is read was
//     already durable in the state, which is read later. The walk reads the durable state, not
//     the newest: a row whose deletion is only in memory comes back after a crash, until the
//     log is applied again.
//   - A name may appear where the walk has already been. Whatever proposes, appends or applies
//     a change that names a chunk first asks whether the chunk is here (extent.Durable): the
//     leader at evaluation, a follower before it steps the entry, the receiver of a range
//     snapshot for each row, the applier of the other location's records. The question pins
//     the chunk for this round and the next. The first two ask in the pass of the scheduler that writes the
//     entry, and a round waits for a pass before it walks over the logs (Node.Settle): so the next round sees the entry, however
//     slow the node is. While the third is under way no round counts, and the last asks again when the record is
//     evaluated.
//   - The sweep takes the store's lock for a slice of the chunks at a time, and others work
//     between the slices. But each chunk is examined and dropped under one hold of that lock
//     (extent.Store.Sweep). So a question, a put or a mark either comes before, and keeps the
//     chunk, or comes after: then the answer is no, and the change is refused, or waits until
//     the chunk is fetched again. A chunk that is put while the sweep runs belongs to the
//     current round; one that Compact moved belongs to the round of the copy that it replaced.
//   - Uploads and geo pushes: a Put pins for Options.Grace, until a change was evaluated that names the chunk; from the start
//     of the node on where it was started since. An upload that takes longer from a chunk to that change is refused (503) and
//     changes nothing; a follower fetches the chunk. If the record of a push is applied later than that, the pushed chunk is
//     gone; the receiver then fetches it from the source, whose outbox still names it.
//   - What a crash brings back: the log and the durable state, both of which are walked. Trims of the log are durable before
//     the walk (Node.Settle), so that no entry comes back that the walk has not seen.
//   - A range snapshot on its way names what its view of the state does: nothing is dropped before the peer has fetched it
//     (extent.Store.Pin), nor while a clone is open, whose checkpoint does the same.
//   - Rows that change while the walk is at another key do not matter: rows never move from
//     one key to another without a change that names their chunks: a block list names rows of blocks.
//   - A read of a blob that is overwritten meanwhile holds the chunks that it is about to read (extent.Store.Hold), at the nodes
//     of its process, which it reads from first. Without one it may end early; it never reads other data, since ids
//     are never given twice. A single read of a chunk always succeeds: the chunk's file stays open.
//
// While a replica here is lost, joins, or is fed by a snapshot, this node does not have all
// its names: such a round does not count.
//
// Each named chunk that is not here is recorded as missing, and copied from a peer, as soon as one can be reached that has
// it. The next walk may be a day away.

// The speed of a round is 10 MiB of rows a second, 860 GiB in a Grace of 24 hours, and eight times that while the disk
// fills. A faster round would take processor time from the clients without need.
const (
	// collectRows and collectBytes bound what one step of the walk reads, and collectRest is
	// the rest after it.
	collectRows  = 4096
	collectBytes = 1 << 20
	collectRest  = 100 * time.Millisecond
	// collectAgain is the wait after a round that failed or did not count.
	collectAgain = time.Minute
	// collectSweeps bounds the chunks that one step of the sweep drops.
	collectSweeps = 4096
	// compactRate is the speed of Compact in bytes per second, and compactRest the wait after
	// it found nothing to do.
	compactRate = 16 << 20
	compactRest = time.Minute
	// hurry is how much faster all of that is while the disk fills.
	hurry = 8
)

// collection is how far a round has come.
type collection struct {
	active bool
	began  time.Duration
	// version is what Node.NamesComplete returned when the round began.
	version uint64
	// logs and spans are still to be walked: the first log from index next on, the first span
	// from key on.
	logs []Range
	next uint64
	// upTo is where that log ended when its walk began: what comes later is asked for, and so stays. A range that takes
	// changes all the time would have its log walked for ever.
	upTo  uint64
	spans []rangeSpan
	key   []byte
	// found are the chunks that this walk found missing, missingMax at most.
	found []extent.Ref
	// sweeping: everything is marked, and the sweep runs.
	sweeping bool
}

// rangeSpan is a span of the keys of a range.
type rangeSpan struct {
	id geo.RangeID
	state.Span
}

func (s *Scrubber) collectStep(ctx context.Context) time.Duration {
	round := &s.collect
	version, ok := s.o.Node.NamesComplete()
	if !ok || s.o.RowChunks == nil || round.active && version != round.version {
		s.roundFails()
		return min(collectAgain, s.o.Grace)
	}
	if !round.active {
		if wait := s.untilRound(); wait > 0 {
			return wait
		}
		if err := s.beginCollect(ctx); err != nil {
			s.roundFails()
			return collectAgain // The node is out of service, or ends.
		}
		round.version = version
	}
	if round.sweeping {
		return s.sweepStep()
	}
	var err error
	rest := time.Duration(0)
	switch {
	case len(round.logs) > 0:
		rest, err = s.markLog()
	case len(round.spans) > 0:
		rest, err = s.markRows()
	default:
		s.o.Chunks.EndRound()
		s.missing, round.found = round.found, nil // What nothing names any more is not waited for.
		round.sweeping = true
	}
	if err != nil {
		s.roundFails()
		if errors.Is(err, state.ErrLogCorrupt) {
			s.o.Node.Quarantine("log", err)
		}
		s.o.Logger.Error("cannot find out which chunks are named; none is dropped before a walk over all names succeeds", "error", err)
		return collectAgain
	}
	return rest
}

// beginCollect begins a round. Requests of a former round are in the logs before the logs are walked.
func (s *Scrubber) beginCollect(ctx context.Context) error {
	round := &s.collect
	*round = collection{active: true, began: s.o.Clock.Mono()}
	for _, r := range s.o.Ranges {
		round.logs = append(round.logs, r)
		for _, span := range r.Spans {
			round.spans = append(round.spans, rangeSpan{r.ID, span})
		}
	}
	s.o.Chunks.BeginRound(s.roundBegins())
	return s.o.Node.Settle(ctx)
}

// rest is how long the collection and the compaction rest where they would for d on a disk that has room.
func (s *Scrubber) rest(d time.Duration) time.Duration {
	if s.o.Node.DiskFills() {
		return d / hurry
	}
	return d
}

// markLog marks what some entries of a log name.
func (s *Scrubber) markLog() (rest time.Duration, err error) {
	round := &s.collect
	log := round.logs[0].Log
	first, err := log.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := log.LastIndex()
	if err != nil {
		return 0, err
	}
	if round.next == 0 {
		round.upTo = last
	}
	round.next = max(round.next, first)
	if last = min(last, round.upTo); round.next > last {
		round.logs, round.next = round.logs[1:], 0
		return 0, nil
	}
	entries, err := log.Entries(round.next, last+1, collectBytes)
	if errors.Is(err, raft.ErrCompacted) || errors.Is(err, raft.ErrUnavailable) {
		return s.rest(collectRest), nil // Trimmed, or cut back by a new leader, since: look again.
	}
	if err != nil {
		return 0, fmt.Errorf("read log of range %d: %w", round.logs[0].ID, err)
	}
	for _, e := range entries {
		if !change.NamesChunks(e.Data) || plantedbugs.Planted(plantedbugs.CollectLogged) {
			continue
		}
		refs, err := change.GroupChunks(e.Data)
		if err != nil {
			return 0, fmt.Errorf("entry %d of range %d: %w", e.GetIndex(), round.logs[0].ID, err)
		}
		s.mark(refs)
	}
	round.next += uint64(len(entries))
	return s.rest(collectRest), nil
}

// markRows marks what some rows of the durable state name.
func (s *Scrubber) markRows() (rest time.Duration, err error) {
	round := &s.collect
	span := round.spans[0]
	lower := span.Lower
	if round.key != nil {
		lower = round.key
	}
	it, err := s.o.Rows.ScanDurable(lower, span.Upper)
	if err != nil {
		return 0, err
	}
	rows, bytes, more := 0, 0, false
	for it.Next() {
		if rows == collectRows || bytes >= collectBytes {
			round.key = append(round.key[:0], it.Key()...)
			more = true
			break
		}
		rows++
		bytes += len(it.Key()) + len(it.Value())
		refs, err := s.o.RowChunks(span.id, it.Key(), it.Value())
		if err != nil {
			return 0, errors.Join(fmt.Errorf("row %x of range %d: %w", it.Key(), span.id, err), it.Close())
		}
		s.mark(refs)
	}
	if err := it.Close(); err != nil {
		return 0, err
	}
	if !more {
		round.spans, round.key = round.spans[1:], nil
		return 0, nil
	}
	return s.rest(collectRest), nil
}

// mark marks chunks as named, and records as missing those that are not here.
func (s *Scrubber) mark(refs []extent.Ref) {
	for _, ref := range refs {
		if s.o.Chunks.Mark(ref) {
			continue
		}
		if len(s.missing) < missingMax {
			s.missing = append(s.missing, ref)
		}
		if len(s.collect.found) < missingMax {
			s.collect.found = append(s.collect.found, ref)
			s.counts.missing.Add(1)
		}
	}
}

func (s *Scrubber) sweepStep() time.Duration {
	chunks, bytes, err := s.o.Chunks.Sweep(collectSweeps)
	s.counts.collectedChunks.Add(uint64(chunks))
	s.counts.collectedBytes.Add(uint64(bytes))
	if err == nil && chunks > 0 {
		return s.rest(collectRest)
	}
	s.collect.active = false
	s.roundEnds()
	return 0
}

// compactStep copies some chunks out of an extent that holds mostly garbage.
func (s *Scrubber) compactStep(ctx context.Context) time.Duration {
	copied, err := s.o.Chunks.Compact(ctx)
	if err != nil || copied == 0 {
		return s.rest(compactRest) // The scheduler notices a failed store.
	}
	s.counts.compactedBytes.Add(uint64(copied))
	return s.rest(time.Duration(float64(copied) / compactRate * float64(time.Second)))
}
