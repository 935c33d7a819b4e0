package ranges

import (
	"context"
	"time"
)

// Reads of a follower (R5) wait for a round through the leader, then until the index that
// it answered is applied here. Those that come meanwhile share the next round:
//
//	follow ──a round begins──> asked ──answered, and that index applied──> done
//
// A round that began before a read proves nothing for it: what was acknowledged in between
// may be above its index.

// CatchUp calls done with nil once this replica, which does not lead, has applied
// everything that was acknowledged before the call; with ErrNotLeader where it cannot
// find out: there is no leader, or the replica is none that answers.
func (r *Range) CatchUp(done func(error)) {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		done(ErrNotLeader)
		return
	}
	r.follow = append(r.follow, pendingRead{done: done})
	first := len(r.follow) == 1
	r.mu.Unlock()
	if first {
		r.o.Wake()
	}
}

// ReadFollowing calls f with a state of this replica, which does not lead, in which
// everything acknowledged before the call is seen. f may run again. Errors beside those of
// f: ErrNotLeader, also where ctx ends before the leader has answered.
func (r *Range) ReadFollowing(ctx context.Context, f func(s State) error) error {
	for {
		replaced := r.Machine.replaced.Load()
		there := make(chan error, 1)
		r.CatchUp(func(err error) { there <- err })
		select {
		case err := <-there:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ErrNotLeader
		}
		err := f(State{r})
		// A replica that was found lost meanwhile begins again with an empty state.
		if r.Machine.replaced.Load() == replaced {
			return err
		}
	}
}

// serveFollowing moves the reads of a follower on; scheduler only.
func (r *Range) serveFollowing(now time.Duration) {
	if !r.replica.MayFollow() {
		r.endFollowing()
		return
	}
	index, answered, late := r.replica.Asked(now)
	var ready []pendingRead
	r.mu.Lock()
	if answered && index <= r.replica.Applied() {
		ready, r.asked = r.asked, nil
	}
	// Not before those of the last round are done: under load a later index would again and
	// again be ahead of what is applied.
	ask := len(r.asked) == 0 && len(r.follow) > 0 || len(r.asked) > 0 && late
	if ask {
		r.asked, r.follow = append(r.asked, r.follow...), nil
	}
	r.mu.Unlock()
	if ask {
		r.replica.Ask(now)
	}
	for _, p := range ready {
		p.done(nil)
	}
}

// endFollowing fails the reads that wait on a follower; scheduler only, or after its end.
func (r *Range) endFollowing() {
	r.mu.Lock()
	ended := append(r.asked, r.follow...)
	r.asked, r.follow = nil, nil
	r.mu.Unlock()
	for _, p := range ended {
		p.done(ErrNotLeader)
	}
}
