package node

import (
	"context"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// An operator recovers a range that has no quorum of trusted replicas (R4): the node with the best
// remaining replica re-forms the range with itself as the only voter.
//
//	recovering  the new id and its recovery are in the identity file: the commit point.
//	            The old id is never used again
//	applied     every entry of the log is applied, committed or not: some of those above
//	            the commit index may have been acknowledged
//	re-formed   the new configuration and the floor of the clock are in the state, durably.
//	            Entries that changed the old configuration were applied before it
//	cut         the log begins after the state, so that every other replica gets a range
//	            snapshot: only that carries the configuration, no entry does
//	member      and so it leads, reads work, and its membership makes learners of the others
//
// After a crash in between the next start continues. Writes wait until two are in sync (R2).

// Survey describes the replica of a range on this node. It may be called from any goroutine.
func (n *Node) Survey(ctx context.Context, id geo.RangeID) (s membership.Survey, err error) {
	err = n.scheduler.do(ctx, func() (refusal, failure error) {
		s, failure = n.byID[id].survey()
		return nil, failure
	})
	return s, err
}

// Reform re-forms a range from the replica here, which must not have changed since the survey from. as
// is a recovery later than all known ones; no time at or before floor is given by the range from then
// on (R6). It may be called from any goroutine. An error other than
// ctx's means that nothing changed, or that the node is out of service.
func (n *Node) Reform(ctx context.Context, id geo.RangeID, from membership.Survey, as replica.Recovery, floor geo.Timestamp) error {
	reformed := make(chan error, 1)
	err := n.scheduler.do(ctx, func() (refusal, failure error) { return n.byID[id].reform(from, as, floor, reformed) })
	if err != nil || n.o.Stepped {
		return err
	}
	select {
	case err := <-reformed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done():
		return ErrUnreachable
	}
}

// survey is Survey on the scheduler.
func (r *hostedRange) survey() (s membership.Survey, err error) {
	d, rep, applied := r.membership.Identity(), r.Replica(), r.Machine.AppliedState()
	s = membership.Survey{
		Node: r.n.o.ID, Replica: d.Replica, Trusted: d.Phase == membership.Member && rep.Lost() == nil, Leads: rep.IsLeader(), Recovering: d.Phase == membership.Recovering,
		Follows: rep.FollowsLeader(), Taken: r.n.o.Clock.Mono(), Ran: r.n.scheduler.running.Time(), Members: r.Machine.Members(),
	}
	if !s.Trusted {
		s.Why = d.Phase.String()
		if rep.Lost() != nil {
			s.Why = rep.Lost().Error()
		}
	}
	last, commit, err := replica.EndOf(r.log, applied.EntryID)
	s.Term, s.Index, s.Commit = last.Term, last.Index, commit
	return s, err
}

// reform is the part of Reform on the scheduler. reformed receives how the rest ended, which apart does.
func (r *hostedRange) reform(
	from membership.Survey, as replica.Recovery, floor geo.Timestamp, reformed chan<- error,
) (refusal, failure error) {
	n := r.n
	now, err := r.survey()
	if err != nil {
		return nil, err
	}
	if !n.o.takesSnapshots() {
		return fmt.Errorf("node %d sends no range snapshots, so the range would stay with one replica", n.o.ID), nil
	} else if err := membership.MayReform(from, now, r.membership.Recovery(), as, n.hints.Timeout); err != nil {
		return err, nil
	}
	reserved := n.snapshots.Reserve(r.ID())
	if reserved == nil {
		return fmt.Errorf("node %d receives a snapshot of the range, or replaces its data: try again", n.o.ID), nil
	}
	defer reserved.Free()
	r.reserved, r.reformed = reserved, reformed
	_, err = r.carryOut(membership.Reform{As: as, Floor: floor})
	return nil, err
}

// reformState does the part of a recovery after its commit point, up to the cut: see the states above.
func (r *hostedRange) reformState(e membership.ReformState) error {
	return r.apart(func() error { return r.reformApplied(e) }, r.cutLog, membership.Reformed{})
}

// reformApplied is the part up to where the state is re-formed, apart from the scheduler.
func (r *hostedRange) reformApplied(e membership.ReformState) error {
	n, id, m := r.n, r.ID(), r.Machine
	if err := n.snapshots.RemoveStaged(id); err != nil {
		return err
	}
	if m.Members().Recovery() != e.As {
		if err := r.Redo(r.log); err != nil {
			return fmt.Errorf("recovery of range %d: %w", id, err)
		}
		if m.AppliedState().Index == 0 {
			return fmt.Errorf("recovery of range %d: %w: what it was re-formed from is gone since: move %s away and recover the range from another node",
				id, membership.ErrNoSurvivor, n.o.Dir)
		}
		if err := m.Reform(e.As.Members(), e.Floor); err != nil {
			return err
		}
	}
	return n.stores.state.Flush()
}

// cutLog begins the log behind the state that was re-formed.
func (r *hostedRange) cutLog() error {
	hs, _, err := r.log.InitialState()
	if err != nil {
		return err
	}
	applied := r.Machine.AppliedState()
	r.committed = hs.GetCommit()
	term := max(hs.GetTerm(), applied.Term, replica.FirstTerm)
	return r.writeLog(func(batch state.LogBatch) error {
		return errors.Join(r.log.Reset(batch, applied.EntryID), r.log.SetHardState(batch, hardState(term, 0, applied.Index)))
	})
}

// reportReformed reports what a recovery kept.
func (r *hostedRange) reportReformed() {
	n, d, applied := r.n, r.membership.Identity(), r.Machine.AppliedState()
	as := replica.RecoveryOf(d.Replica)
	n.o.Logger.Warn("range re-formed from the replica on this node alone, as an operator requested; what others had above is lost",
		"range", r.ID(), "replica", d.Replica, "recovery", as, "kept_index", applied.Index, "kept_term", applied.Term, "known_committed", r.committed)
	n.event(Event{Kind: RangeRecovered, Range: r.ID(), Node: r.n.o.ID, Replica: d.Replica, Reason: fmt.Sprintf(
		"%s: kept up to index %d of term %d, of which %d were known to be committed; what others had above is lost",
		as, applied.Index, applied.Term, min(applied.Index, r.committed))})
}
