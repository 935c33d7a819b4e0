package ranges

import (
	"context"
	"time"
)

// A read of a follower (R5) waits for a round through the leader, and then until the index in
// the leader's answer is applied here. Reads that come meanwhile share the next round:
//
//	follow ──a round begins──> asked ──answered, and that index applied──> done
//
// A round that began before a read proves nothing for that read: what was acknowledged in
// between may be above the index of the answer.

// CatchUp calls done with nil once this replica, which does not lead, has applied
// everything that was acknowledged before the call. It calls done with ErrNotLeader if that
// cannot be found out: no leader is known, or this replica may not serve reads.
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

// ReadFollowing calls f with a state of this replica, which does not lead. The state contains
// everything acknowledged before the call. f may run again. Errors beside those of f:
// ErrNotLeader, also if ctx ends before the leader has answered.
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

// serveFollowing answers the reads of a follower that are ready, and begins the next round;
// scheduler only.
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
	// A round does not begin before the reads of the last one are done: under load the index
	// of a newer answer would again and again be above what is applied.
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
