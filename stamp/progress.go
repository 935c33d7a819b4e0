package stamp

import (
	"context"
	"errors"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/cursor"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// How far a range has applied the streams of the other location is read from the replicas of this
// process, or asked of the leader of a range that has none here. An answer names every stream: it is
// for a receiver that starts or reconciles, for scrapes and for Get Service Stats, not for
// each commit.

// progressMethod asks the leader of a range for a page of its cursor.Progress of every account; JSON
// both ways.
const progressMethod = "stamp.progress"

// progressRequest is the question of progressMethod.
type progressRequest struct {
	Range  geo.RangeID
	Source geo.SourceRange
	// After is the last stream of the page before.
	After *geo.Stream `json:",omitempty"`
}

// progressAnswer is a page of streams in their order.
type progressAnswer struct {
	cursor.Progress
	More bool
}

const (
	// progressEvery is how old a kept progress may be before it is asked for again.
	progressEvery = time.Second
	// progressPage bounds the streams of an answer: one has some 250 bytes, and an answer 4 MiB.
	progressPage = 8192
	// progressTimeout bounds a call of progressMethod.
	progressTimeout = 2 * time.Second
)

// progressKey is what a kept progress is of.
type progressKey struct {
	Range  geo.RangeID
	Source geo.SourceRange
}

// keptProgress is what a leader answered last. Guarded by Stamp.progressMu.
type keptProgress struct {
	asking bool
	known  bool
	at     time.Duration
	cursor.Progress
}

// furthest returns the replica of this process that has applied most, nil if none is here. It need not
// know of a leader: what is applied stays true, and a progress that was read elsewhere meanwhile could
// be behind what was shown before (R13).
func (s *Stamp) furthest(id geo.RangeID) (found *ranges.Range) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.o.Peers {
		n := s.nodes[p]
		if n == nil {
			continue
		}
		r := n.n.Range(id)
		if r != nil && (found == nil || further(r.Machine, found.Machine)) {
			found = r
		}
	}
	return found
}

// further reports whether a has applied more than b. What was applied before a recovery with loss counts
// less than anything after it.
func further(a, b *ranges.Machine) bool {
	if i, j := a.Incarnation(), b.Incarnation(); i != j {
		return i > j
	}
	return a.AppliedState().Index > b.AppliedState().Index
}

// ProgressNow returns, without waiting, how far a range is known here to have applied the
// streams of a source range; ok is false while nothing is known. The result may be behind
// what is committed, never ahead, and does not go back while the same nodes run here. If no node that runs here has the range, the result is the
// leader's last answer: it is older by up to progressEvery and the time of that call, has the
// streams of every account, and the call starts a new question when it is due.
func (s *Stamp) ProgressNow(id geo.RangeID, src geo.SourceRange, a geo.Account) (p cursor.Progress, ok bool) {
	if r := s.furthest(id); r != nil {
		return r.Machine.Progress(src, a), true
	}
	q := progressKey{id, src}
	s.progressMu.Lock()
	defer s.progressMu.Unlock()
	if s.progress == nil {
		return cursor.Progress{}, false
	}
	kept := s.progress[q]
	if kept == nil {
		kept = &keptProgress{}
		s.progress[q] = kept
	}
	if now := s.o.Clock.Mono(); !kept.asking && (!kept.known || now-kept.at >= progressEvery) {
		kept.asking = true
		s.Go(func(ctx context.Context) {
			p, err := s.askProgress(ctx, id, src)
			s.progressMu.Lock()
			defer s.progressMu.Unlock()
			kept.asking = false
			if err == nil {
				kept.known, kept.at, kept.Progress = true, now, p
			}
		})
	}
	return kept.Progress, kept.known
}

// Progress returns how far a range has applied the streams of a source range: at least
// those of the account, with all that was acknowledged before the call. It fails with
// kv.ErrBusy after a while without a leader.
func (s *Stamp) Progress(ctx context.Context, id geo.RangeID, src geo.SourceRange, a geo.Account) (p cursor.Progress, err error) {
	if s.furthest(id) == nil {
		return s.askProgress(ctx, id, src)
	}
	err = s.Read(ctx, id, func(st ranges.State) error {
		p = st.Progress(src, a)
		return nil
	})
	return p, err
}

// askProgress asks the leader of a range that is not here how far it has applied the streams
// of a source range. The answer includes all that was acknowledged before the call. Pages are of
// separate moments: the closed time is that of the first, which later heads only make safer.
func (s *Stamp) askProgress(ctx context.Context, id geo.RangeID, src geo.SourceRange) (p cursor.Progress, err error) {
	q := progressRequest{Range: id, Source: src}
	for {
		page, err := s.askProgressPage(ctx, q)
		if err != nil {
			return cursor.Progress{}, err
		}
		n := len(page.Streams)
		if q.After == nil {
			p = page.Progress
		} else {
			p.Streams = append(p.Streams, page.Streams...)
		}
		if !page.More || n == 0 {
			return p, nil
		}
		q.After = &page.Streams[n-1].Stream
	}
}

func (s *Stamp) askProgressPage(ctx context.Context, q progressRequest) (p progressAnswer, err error) {
	id := q.Range
	err = s.withLeader(ctx, id, func() (err error) {
		to, ok := s.LeaderNode(id)
		if !ok {
			return ranges.ErrNotLeader
		}
		limited, cancel := context.WithTimeout(ctx, progressTimeout)
		defer cancel()
		p, err = ask[progressAnswer](limited, s, to, progressMethod, q)
		if errors.Is(err, node.ErrUnreachable) {
			return ranges.ErrNotLeader
		}
		return err
	})
	return p, err
}

// answerProgress answers progressMethod at a node.
func (s *Stamp) answerProgress(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, q progressRequest) (p progressAnswer, err error) {
		r := n.Range(q.Range)
		if r == nil {
			return p, ranges.ErrNotLeader
		}
		err = r.Read(ctx, func(st ranges.State) error {
			p.Progress = st.Progress(q.Source, cursor.EveryAccount)
			return nil
		})
		p.cut(q.After)
		return p, err
	})
}

// cut leaves the page behind a stream. What is not of streams is in the first page alone: an account that was failed over to
// here has ended in each.
func (a *progressAnswer) cut(after *geo.Stream) {
	order := func(s cursor.StreamProgress, to geo.Stream) int { return s.Stream.Compare(to) }
	slices.SortFunc(a.Streams, func(x, y cursor.StreamProgress) int { return order(x, y.Stream) })
	if after != nil {
		i, found := slices.BinarySearchFunc(a.Streams, *after, order)
		if found {
			i++
		}
		a.Streams, a.Stops, a.Ended = a.Streams[i:], nil, nil
	}
	a.More = len(a.Streams) > progressPage
	a.Streams = a.Streams[:min(len(a.Streams), progressPage)]
}
