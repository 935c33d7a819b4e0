package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// Chunks are dropped that nothing names any more, or never did: their upload failed, or
// what named them was deleted or written anew (R9). A round marks what is named here,
//
//  1. every entry of the untrimmed logs, those that this node no longer needs too,
//  2. then every row of the durable state: clients' rows, and the outboxes,
//
// and then sweeps what two rounds, CollectGrace apart, found unnamed and untouched.
//
// Why nothing is dropped that is named, or about to be:
//
//   - Log before state: an entry that is trimmed while the log is read was durable in the
//     state before, which is read later. Durable state, not the newest: a row that is
//     deleted in memory alone comes back by a crash, until the log is applied again.
//   - A name that comes into being behind the walk's back: whoever proposes, appends or
//     applies a change that names a chunk has asked whether it is here (extent.Durable):
//     the leader at evaluation, a follower before it steps the entry, the receiver of a
//     range snapshot for each row, the applier of the other location's records. The
//     question pins the chunk for this round and the next: CollectGrace at least, in which
//     the entry reaches the log, or does not.
//   - The sweep takes the store's lock for a slice of the chunks at a time, and others work
//     between the slices. But each chunk is judged and dropped under one hold of that lock
//     (extent.Store.Sweep), so a question, a put or a mark of it comes before, and keeps it,
//     or after: then the answer is no, and the change is refused, or waits until the chunk is
//     fetched again. A chunk that was put behind the sweep's back has the round of now; one
//     that Compact moved has the round of the copy that it replaced.
//   - Uploads and geo pushes: a Put pins likewise. An upload that takes longer than
//     CollectGrace from a chunk to the change that names it is refused (503) and changes
//     nothing. A push whose record comes later than that finds the chunk gone; the
//     receiver then fetches it from the source, whose outbox names it all the while.
//   - Rows that are read while the walk is elsewhere do not matter: rows never move from
//     one key to another without a change that names their chunks.
//   - A read of a blob that is deleted meanwhile goes on for CollectGrace at least; then
//     it ends early, for ids are never given twice. A single read of a chunk always ends
//     well: its file stays open.
//
// While a replica here is lost, joins, or is fed by a snapshot, its names are not all
// here: such a round does not count.
//
// Each named chunk that is not here is noted, and copied from a peer.

// Of the pace of a round: 10 MiB of rows a second, 860 GiB in a CollectGrace. A faster
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

// collectRound is how far a round has come.
type collectRound struct {
	under     bool
	began     time.Duration
	unsettled uint64
	// logs and spans are yet to be walked, the first one from next, or from key, on.
	logs  []geo.RangeID
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

func (u *upkeep) collectStep(context.Context) time.Duration {
	round, n := &u.collect, u.n
	unsettled, ok := n.mayCollect()
	if !ok || round.under && unsettled != round.unsettled {
		round.under = false
		return min(collectAgain, n.o.CollectGrace)
	}
	if !round.under {
		u.beginCollect()
		round.unsettled = unsettled
	}
	if round.sweeping {
		return u.sweepStep()
	}
	var err error
	rest := time.Duration(0)
	switch {
	case len(round.logs) > 0:
		rest, err = u.markLog()
	case len(round.spans) > 0:
		rest, err = u.markRows()
	default:
		n.extents.EndRound()
		round.sweeping = true
	}
	if err != nil {
		round.under = false
		if errors.Is(err, state.ErrLogCorrupt) {
			n.condemn("log", err)
		}
		n.o.Logger.Error("cannot tell which chunks are named; none is dropped before a walk over all names succeeds", "error", err)
		return collectAgain
	}
	return rest
}

// mayCollect reports whether all names that this node has to know are here. Between two
// answers of yes they were here all the time if unsettled is the same.
func (n *Node) mayCollect() (unsettled uint64, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unsettled, n.o.RowChunks != nil && n.settled && len(n.incoming) == 0
}

func (u *upkeep) beginCollect() {
	round := &u.collect
	*round = collectRound{under: true, began: u.n.o.Clock.Mono()}
	for _, r := range u.n.ranges {
		round.logs = append(round.logs, r.ID())
		for _, span := range ranges.Spans(r.ID()) {
			round.spans = append(round.spans, rangeSpan{r.ID(), span})
		}
	}
	u.n.extents.BeginRound()
}

// markLog marks what some entries of a log name.
func (u *upkeep) markLog() (rest time.Duration, err error) {
	round := &u.collect
	log := u.n.logs[round.logs[0]]
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
		return 0, fmt.Errorf("read log of range %d: %w", round.logs[0], err)
	}
	for _, e := range entries {
		if !change.NamesChunks(e.Data) {
			continue
		}
		refs, err := change.GroupChunks(e.Data)
		if err != nil {
			return 0, fmt.Errorf("entry %d of range %d: %w", e.GetIndex(), round.logs[0], err)
		}
		u.mark(refs)
	}
	round.next += uint64(len(entries))
	return collectRest, nil
}

// markRows marks what some rows of the durable state name.
func (u *upkeep) markRows() (rest time.Duration, err error) {
	round := &u.collect
	span := round.spans[0]
	lower := span.Lower
	if round.key != nil {
		lower = round.key
	}
	it, err := u.n.state.ScanDurable(lower, span.Upper)
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
		refs, err := u.n.rowChunks(span.id, it.Key(), it.Value())
		if err != nil {
			return 0, errors.Join(fmt.Errorf("row %x of range %d: %w", it.Key(), span.id, err), it.Close())
		}
		u.mark(refs)
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

// rowChunks returns the payload chunks that a row of a range names.
func (n *Node) rowChunks(id geo.RangeID, key, value []byte) ([]extent.Ref, error) {
	refs, local, err := ranges.OutboxChunks(id, key, value)
	if err == nil && !local {
		return n.o.RowChunks(key, value)
	}
	return refs, err
}

// mark marks chunks as named, and notes those that are not here.
func (u *upkeep) mark(refs []extent.Ref) {
	for _, ref := range refs {
		if !u.n.extents.Mark(ref) && len(u.missing) < missingMax {
			u.missing = append(u.missing, ref)
			u.counts.missing.Add(1)
		}
	}
}

func (u *upkeep) sweepStep() time.Duration {
	chunks, bytes, err := u.n.extents.Sweep(collectSweeps)
	u.counts.collectedChunks.Add(uint64(chunks))
	u.counts.collectedBytes.Add(uint64(bytes))
	if err == nil && chunks > 0 {
		return collectRest
	}
	u.collect.under = false
	return max(0, u.collect.began+u.n.o.CollectGrace-u.n.o.Clock.Mono())
}

// compactStep empties some of an extent that holds mostly garbage.
func (u *upkeep) compactStep(ctx context.Context) time.Duration {
	copied, err := u.n.extents.Compact(ctx)
	if err != nil || copied == 0 {
		return compactRest // A failed store is noticed by the scheduler.
	}
	u.counts.compactedBytes.Add(uint64(copied))
	return time.Duration(float64(copied) / compactRate * float64(time.Second))
}
