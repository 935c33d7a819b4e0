package node

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/membership"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// changeTicks is how many ticks lie between two proposals of a configuration.
const changeTicks = 10

// carryOut does what the membership of a range asks for, in order. deliver reports whether the
// message of the event passes. After an error the node is out of service.
func (n *Node) carryOut(r *hosted, e membership.Event) (deliver bool, err error) {
	for _, effect := range r.membership.Step(e) {
		if _, ok := effect.(membership.Deliver); ok {
			deliver = true
			continue
		}
		if err := n.carryOutOne(r, effect); err != nil {
			return false, err
		}
	}
	return deliver, nil
}

func (n *Node) carryOutOne(r *hosted, effect membership.Effect) error {
	id, rep := r.ID(), r.Replica()
	var change error
	switch e := effect.(type) {
	case membership.Send:
		n.report(e.To, id, e.Message)
	case membership.SaveIdentity:
		return membership.Save(n.o.State.FS, n.o.Dir, id, &e.Identity, n.o.Peers)
	case membership.Reopen:
		return n.reopen(r, e.Lost)
	case membership.Lose:
		rep.Lose(e.Reason)
	case membership.Wipe:
		return n.wipe(r)
	case membership.StartLog:
		return n.setFirstHardState(r.log)
	case membership.ReformState:
		return n.reformState(r, e.As)
	case membership.ReportReformed:
		n.reportReformed(r)
	case membership.DropHeld:
		r.held = nil
	case membership.Refused:
		n.o.Logger.Warn("messages of a node dropped; logged once", "range", id, "of_node", e.From, "why", e.Why)
	case membership.PlacementDiffers:
		n.placement.differs(e.Node)
	case membership.ConfirmLeadership:
		r.Confirm(func(err error) {
			if err == nil {
				last := r.Machine.Members().Next - 1
				_, _ = n.carryOut(r, membership.LeadershipConfirmed{To: e.To, Nonce: e.Nonce, Last: last}) // It only sends.
			}
		})
	case membership.AddLearner:
		change = rep.AddLearner(e.Node)
	case membership.RemoveReplica:
		change = rep.Remove(e.Replica)
	case membership.Promote:
		change = rep.Promote(e.Replica)
	case membership.Report:
		n.event(Event{Kind: EventKind(e.Kind), Range: id, Node: e.Node, Replica: e.Replica, Reason: e.Reason})
	default:
		panic(fmt.Sprintf("node: no effect %T", effect))
	}
	if change != nil {
		n.o.Logger.Warn("cannot change the replicas of a range now", "range", id, "error", change)
	}
	return nil
}

// report sends a message of our own to a node.
func (n *Node) report(to geo.NodeID, id geo.RangeID, m membership.Message) {
	n.o.Transport.Send(n.o.ID, to, []Envelope{{Range: id, Report: m}})
}

// receiveReport takes such a message about a range that is here.
func (n *Node) receiveReport(r *hosted, e Envelope) error {
	deliver, err := n.carryOut(r, membership.Received{From: e.From, Message: e.Report})
	if index, ok := e.Report.(membership.DurableIndex); ok && deliver {
		n.sched.activeAt[e.From] = n.sched.ticks
		r.durable[e.From] = max(r.durable[e.From], index.Index)
	}
	return err
}

// admit reports whether one of Raft's messages is for the replica here, from a node that may
// send it.
func (n *Node) admit(r *hosted, e Envelope) (bool, error) {
	head := membership.RaftMessage{
		From: e.From, Sender: replica.From(e.Message), Receiver: replica.To(e.Message), Members: r.Replica().Members(),
		FromLeader: e.Message.GetType() == pb.MsgApp || e.Message.GetType() == pb.MsgHeartbeat,
	}
	if head.FromLeader && head.Receiver > r.membership.Identity().Replica { // It may be rebuilt under that id.
		if release, ok := n.snapshots.Reserve(e.Range); ok {
			defer release()
			head.CanRebuild = true
		}
	}
	return n.carryOut(r, head)
}

// join goes on with the replicas that join, once a tick.
func (n *Node) join() error {
	for _, r := range n.ranges {
		if _, err := n.carryOut(r, membership.Join{Lost: r.Replica().Lost() != nil}); err != nil {
			return err
		}
	}
	return nil
}

// manageMembers lets each range report, and change its configuration, once a tick.
func (n *Node) manageMembers() error {
	due := n.sched.ticks%changeTicks == 0
	for _, r := range n.ranges {
		rep := r.Replica()
		e := membership.Manage{Lost: rep.Lost() != nil, Due: due}
		if !e.Lost {
			lead, _ := rep.Leader()
			e.HasLeader, e.Leads, e.Replica, e.Members, e.InSync = lead != 0, r.Leading(), rep.ID(), rep.Members(), rep.InSync()
			for _, m := range e.Members.List {
				if m.Learner && due && e.Leads {
					match, last := rep.Match(m.ID)
					e.Learners = append(e.Learners, membership.Progress{Replica: m.ID, Match: match, Last: last})
				}
			}
		}
		if _, err := n.carryOut(r, e); err != nil {
			return err
		}
	}
	return nil
}

// keepLost makes it durable which replicas are lost, in the pass that found it.
func (n *Node) keepLost() error {
	for _, r := range n.ranges {
		reason := r.Replica().Lost()
		if p := r.membership.Identity().Phase; reason == nil || p == membership.Lost || p == membership.Forgotten {
			continue
		}
		if _, err := n.carryOut(r, membership.ReplicaFailed{Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// reportLeads sends leader hints of the ranges that are led here to the nodes without a
// replica of them, once a tick.
func (n *Node) reportLeads() {
	for _, r := range n.ranges {
		on := n.placement.Of(r.ID())
		if len(on) == len(n.placement.Nodes) || !r.Leading() {
			continue
		}
		_, term := r.Replica().Leader()
		next := 0
		for _, p := range n.placement.Nodes { // Both ascend.
			if next < len(on) && on[next] == p {
				next++
				continue
			}
			n.report(p, r.ID(), membership.LeaderHint{Term: term})
		}
	}
}

// LeaderHint returns the leader of a range that is not here, 0 if none reported itself for an
// election timeout of the time that the node ran. It may be called from any goroutine.
func (n *Node) LeaderHint(id geo.RangeID) geo.NodeID { return n.hints.Leader(id, n.running.Time()) }

// identify returns which replica of a range this node holds.
func (n *Node) identify(r *hosted) (*membership.Identity, error) {
	fs, id := n.o.State.FS, r.ID()
	d, err := membership.Load(fs, n.o.Dir, id)
	switch {
	case errors.Is(err, membership.ErrIdentity):
		return nil, fmt.Errorf("range %d: %w: move %s away and start again, the node is then rebuilt from its peers", id, err, n.o.Dir)
	case err != nil:
		return nil, err // The file may be whole: nothing is moved away for it.
	case d == nil:
		// The clock makes a folder that was lost and made again another one.
		nonce := n.rng.Uint64() ^ uint64(n.o.Clock.Now().UnixNano())
		hs, _, err := r.log.InitialState()
		if err != nil {
			return nil, err
		}
		last, err := r.log.LastIndex()
		if err != nil {
			return nil, err
		}
		tookPart := last > 0 || hs.GetVote() != 0 || hs.GetTerm() > replica.FirstTerm || r.Machine.AppliedState().Index > 0
		d = membership.NewIdentity(n.o.ID, nonce, tookPart, r.Machine.Members())
	}
	// Also what was read: it may be in the page cache only, since an fsync of an earlier life
	// failed, and what is done next must not outlive it (R4).
	return d, membership.Save(fs, n.o.Dir, id, d, n.o.Peers)
}

// openMembership opens the replica of a range: it finds out which one it is, and finishes what
// a crash interrupted. lost says that its stores cannot be trusted.
func (n *Node) openMembership(r *hosted, lost error) error {
	d, err := n.identify(r)
	if err != nil {
		return err
	}
	r.membership = membership.New(membership.Options{
		Node: n.o.ID, Range: r.ID(), Nodes: n.placement.Of(r.ID()), Placement: n.placement.sum(), Rebuilds: n.takesSnapshots(),
	}, *d)
	hs, _, err := r.log.InitialState()
	if err != nil {
		return err
	}
	_, err = n.carryOut(r, membership.Opened{Lost: lost, HardState: !raft.IsEmptyHardState(hs)})
	return err
}

// wipe removes the rows and the log of a range.
func (n *Node) wipe(r *hosted) error {
	if err := n.snapshots.Empty(r.ID()); err != nil {
		return err
	}
	batch := n.stores.log.NewBatch()
	if err := r.log.Reset(batch, 0, 0); err != nil {
		return err
	}
	return batch.Commit(true)
}

// setFirstHardState makes the hard state durable that a replica begins with.
func (n *Node) setFirstHardState(log state.RangeLog) error {
	batch := n.stores.log.NewBatch()
	if err := log.SetHardState(batch, hardState(replica.FirstTerm, 0, 0)); err != nil {
		return err
	}
	return batch.Commit(true)
}

func hardState(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}
