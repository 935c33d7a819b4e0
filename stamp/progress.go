package stamp

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/cursor"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// One node of a stamp receives the streams of the other location for all ranges. It reads
// their cursors and sync times from its own replicas, and asks the leader of a range that it
// has no replica of.

// progressMethod asks the leader of a range for its cursor.Progress of every account; JSON both ways.
const progressMethod = "stamp.progress"

// progressRequest is the question of progressMethod.
type progressRequest struct {
	Range  geo.RangeID
	Source geo.SourceRange
}

const (
	// progressEvery is how old a kept progress may be before it is asked for again.
	progressEvery = 100 * time.Millisecond
	// progressTimeout bounds a call of progressMethod.
	progressTimeout = 2 * time.Second
)

// keptProgress is what a leader answered last. Guarded by Stamp.progressMu.
type keptProgress struct {
	asking bool
	known  bool
	at     time.Duration
	cursor.Progress
}

// holds reports whether one of the nodes that run here has the range.
func (s *Stamp) holds(id geo.RangeID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.nodes {
		if r.n.Range(id) != nil {
			return true
		}
	}
	return false
}

// ProgressNow returns, without waiting, how far a range is known here to have applied the
// streams of a source range; ok is false while nothing is known. The result may be behind
// what is committed, never ahead. If no node that runs here has the range, the result is the
// leader's last answer: it is older by up to progressEvery and the time of that call, has the
// streams of every account, and the call starts a new question when it is due.
func (s *Stamp) ProgressNow(id geo.RangeID, src geo.SourceRange, a geo.Account) (p cursor.Progress, ok bool) {
	if s.holds(id) {
		if r := s.Replica(id); r != nil {
			return r.Machine.Progress(src, a), true
		}
		return cursor.Progress{}, false
	}
	q := progressRequest{id, src}
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
	if !s.holds(id) {
		return s.askProgress(ctx, id, src)
	}
	err = s.Read(ctx, id, func(st ranges.State) error {
		p = st.Progress(src, a)
		return nil
	})
	return p, err
}

// askProgress asks the leader of a range that is not here how far it has applied the streams
// of a source range. The answer includes all that was acknowledged before the call.
func (s *Stamp) askProgress(ctx context.Context, id geo.RangeID, src geo.SourceRange) (p cursor.Progress, err error) {
	err = s.withLeader(ctx, id, func() (err error) {
		to, ok := s.LeaderNode(id)
		if !ok {
			return ranges.ErrNotLeader
		}
		limited, cancel := context.WithTimeout(ctx, progressTimeout)
		defer cancel()
		p, err = ask[cursor.Progress](limited, s, to, progressMethod, progressRequest{id, src})
		if errors.Is(err, node.ErrUnreachable) {
			return ranges.ErrNotLeader
		}
		return err
	})
	return p, err
}

// answerProgress answers progressMethod at a node.
func (s *Stamp) answerProgress(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, q progressRequest) (p cursor.Progress, err error) {
		r := n.Range(q.Range)
		if r == nil {
			return p, ranges.ErrNotLeader
		}
		err = r.Read(ctx, func(st ranges.State) error {
			p = st.Progress(q.Source, cursor.EveryAccount)
			return nil
		})
		return p, err
	})
}
