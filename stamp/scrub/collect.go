package scrub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/state"
)

// Chunks are dropped that nothing names any more, or never did: their upload failed, or
// what named them was deleted or written anew (R9). A round marks what is named here,
//
//  1. every entry of the untrimmed logs, those that this node no longer needs too,
//  2. then every row of the durable state: clients' rows, and the outboxes,
//
// and then sweeps what two rounds, Options.Grace apart, found unnamed and untouched.
//
// Why nothing is dropped that is named, or about to be:
//
//   - Log before state: an entry that is trimmed while the log is read was durable in the
//     state before, which is read later. Durable state, not the newest: a row that is
//     deleted in memory alone comes back by a crash, until the log is applied again.
//   - A name that appears behind the walk: code that proposes, appends or
//     applies a change that names a chunk has asked whether it is here (extent.Durable):
//     the leader at evaluation, a follower before it steps the entry, the receiver of a
//     range snapshot for each row, the applier of the other location's records. The
//     question pins the chunk for this round and the next: Options.Grace at least, in which
//     the entry reaches the log, or does not.
//   - The sweep takes the store's lock for a slice of the chunks at a time, and others work
//     between the slices. But each chunk is judged and dropped under one hold of that lock
//     (extent.Store.Sweep), so a question, a put or a mark of it comes before, and keeps it,
//     or after: then the answer is no, and the change is refused, or waits until the chunk is
//     fetched again. A chunk that was put behind the sweep's back has the round of now; one
//     that Compact moved has the round of the copy that it replaced.
//   - Uploads and geo pushes: a Put pins likewise. An upload that takes longer than
//     Options.Grace from a chunk to the change that names it is refused (503) and changes
//     nothing. A push whose record comes later than that finds the chunk gone; the
//     receiver then fetches it from the source, whose outbox names it all the while.
//   - Rows that are read while the walk is elsewhere do not matter: rows never move from
//     one key to another without a change that names their chunks.
//   - A read of a blob that is deleted meanwhile goes on for Options.Grace at least; then
//     it ends early, for ids are never given twice. A single read of a chunk always ends
//     well: its file stays open.
//
// While a replica here is lost, joins, or is fed by a snapshot, its names are not all
// here: such a round does not count.
//
// Each named chunk that is not here is noted, and copied from a peer.

// Of the pace of a round: 10 MiB of rows a second, 860 GiB in a Options.Grace. A faster
// one takes the processors from the clients of a young store for nothing.
const (
	collectRows   = 4096
	collectBytes  = 1 << 20
	collectRest   = 100 * time.Millisecond
	collectAgain  = time.Minute
	collectSweeps = 4096
	compactRate   = 16 << 20 // bytes per second
	compactRest   = time.Minute
)

// collection is how far a round has come.
type collection struct {
	active bool
	began  time.Duration
	// version is of Node.NamesComplete when the round began.
	version uint64
	// logs and spans are still to be walked, the first of them from next, or key, on.
	logs  []Range
	next  uint64
	spans []rangeSpan
	key   []byte
	// sweeping: all is marked.
	sweeping bool
}

// rangeSpan is keys of a range.
type rangeSpan struct {
	id geo.RangeID
	state.Span
}

func (s *Scrubber) collectStep(context.Context) time.Duration {
	round := &s.collect
	version, ok := s.o.Node.NamesComplete()
	if !ok || s.o.RowChunks == nil || round.active && version != round.version {
		round.active = false
		return min(collectAgain, s.o.Grace)
	}
	if !round.active {
		s.beginCollect()
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
		round.sweeping = true
	}
	if err != nil {
		round.active = false
		if errors.Is(err, state.ErrLogCorrupt) {
			s.o.Node.Quarantine("log", err)
		}
		s.o.Logger.Error("cannot tell which chunks are named; none is dropped before a walk over all names succeeds", "error", err)
		return collectAgain
	}
	return rest
}

func (s *Scrubber) beginCollect() {
	round := &s.collect
	*round = collection{active: true, began: s.o.Clock.Mono()}
	for _, r := range s.o.Ranges {
		round.logs = append(round.logs, r)
		for _, span := range r.Spans {
			round.spans = append(round.spans, rangeSpan{r.ID, span})
		}
	}
	s.o.Chunks.BeginRound()
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
	round.next = max(round.next, first)
	if round.next > last {
		round.logs, round.next = round.logs[1:], 0
		return 0, nil
	}
	entries, err := log.Entries(round.next, last+1, collectBytes)
	if errors.Is(err, raft.ErrCompacted) || errors.Is(err, raft.ErrUnavailable) {
		return collectRest, nil // Trimmed, or cut back by a new leader, since: look again.
	}
	if err != nil {
		return 0, fmt.Errorf("read log of range %d: %w", round.logs[0].ID, err)
	}
	for _, e := range entries {
		if !change.NamesChunks(e.Data) {
			continue
		}
		refs, err := change.GroupChunks(e.Data)
		if err != nil {
			return 0, fmt.Errorf("entry %d of range %d: %w", e.GetIndex(), round.logs[0].ID, err)
		}
		s.mark(refs)
	}
	round.next += uint64(len(entries))
	return collectRest, nil
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
	return collectRest, nil
}

// mark marks chunks as named, and notes those that are not here.
func (s *Scrubber) mark(refs []extent.Ref) {
	for _, ref := range refs {
		if !s.o.Chunks.Mark(ref) && len(s.missing) < missingMax {
			s.missing = append(s.missing, ref)
			s.counts.missing.Add(1)
		}
	}
}

func (s *Scrubber) sweepStep() time.Duration {
	chunks, bytes, err := s.o.Chunks.Sweep(collectSweeps)
	s.counts.collectedChunks.Add(uint64(chunks))
	s.counts.collectedBytes.Add(uint64(bytes))
	if err == nil && chunks > 0 {
		return collectRest
	}
	s.collect.active = false
	return max(0, s.collect.began+s.o.Grace-s.o.Clock.Mono())
}

// compactStep empties some of an extent that holds mostly garbage.
func (s *Scrubber) compactStep(ctx context.Context) time.Duration {
	copied, err := s.o.Chunks.Compact(ctx)
	if err != nil || copied == 0 {
		return compactRest // The scheduler notices a failed store.
	}
	s.counts.compactedBytes.Add(uint64(copied))
	return time.Duration(float64(copied) / compactRate * float64(time.Second))
}
