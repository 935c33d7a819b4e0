package stamp

import (
	"context"
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

// One node of a stamp takes the stream of the other location, for all ranges, and knows
// their cursors and sync times from its replicas. Of a range that is not here it asks the
// leader.

// progressMethod asks the leader of a range for its ranges.Progress; JSON both ways.
const progressMethod = "stamp.progress"

// progressRequest is what is asked.
type progressRequest struct {
	Range  geo.RangeID
	Source ranges.Source
}

const (
	// progressEvery is how old a kept progress may be before it is asked for again.
	progressEvery = 100 * time.Millisecond
	// progressTimeout bounds that question.
	progressTimeout = 2 * time.Second
)

// keptProgress is what a leader answered last. Guarded by Stamp.progressMu.
type keptProgress struct {
	asking bool
	known  bool
	at     time.Duration
	ranges.Progress
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

// Received returns what is known here, without waiting, of the streams that a range
// receives from a source; ok is false while that is nothing. It may be behind what is
// committed, never ahead. Where no node that runs here has the range it is up to
// progressEvery and an answer's way older, and asked for again.
func (s *Stamp) Received(id geo.RangeID, src ranges.Source) (r ranges.Received, ok bool) {
	if s.holds(id) {
		if r := s.Replica(id); r != nil {
			return r.Machine, true
		}
		return nil, false
	}
	q := progressRequest{id, src}
	s.progressMu.Lock()
	defer s.progressMu.Unlock()
	if s.progress == nil {
		return nil, false
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

// SyncTimes returns the sync times of an account's streams from a source, with all in them
// that was acknowledged before; ok is false where they are not known. kv.ErrBusy where there
// is no leader for a while.
func (s *Stamp) SyncTimes(ctx context.Context, id geo.RangeID, src ranges.Source, a geo.Account) (t ranges.SyncTimes, ok bool, err error) {
	if s.holds(id) {
		err = s.Read(ctx, id, func(st ranges.State) error {
			t, ok = st.SyncTimes(src, a)
			return nil
		})
		return t, ok, err
	}
	p, err := s.askProgress(ctx, id, src)
	if err != nil {
		return t, false, err
	}
	t, ok = p.SyncTimes(src, a)
	return t, ok, nil
}

// askProgress asks the leader of a range that is not here how far it is with the streams
// of a source, with all in it that was acknowledged before.
func (s *Stamp) askProgress(ctx context.Context, id geo.RangeID, src ranges.Source) (p ranges.Progress, err error) {
	err = s.withLeader(ctx, id, func() (err error) {
		to, ok := s.LeaderNode(id)
		if !ok {
			return ranges.ErrNotLeader
		}
		limited, cancel := context.WithTimeout(ctx, progressTimeout)
		defer cancel()
		p, err = ask[ranges.Progress](limited, s, to, progressMethod, progressRequest{id, src})
		if errors.Is(err, node.ErrUnreachable) {
			return ranges.ErrNotLeader
		}
		return err
	})
	return p, err
}

// tellProgress answers progressMethod at a node.
func (s *Stamp) tellProgress(id geo.NodeID) node.CallHandler {
	return answering(s, id, func(ctx context.Context, n *node.Node, q progressRequest) (p ranges.Progress, err error) {
		r := n.Range(q.Range)
		if r == nil {
			return p, ranges.ErrNotLeader
		}
		err = r.Read(ctx, func(st ranges.State) error {
			p = st.Progress(q.Source)
			return nil
		})
		return p, err
	})
}
