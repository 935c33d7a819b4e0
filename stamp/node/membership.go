package node

import (
	"fmt"

	"antipode/geo"
	"antipode/stamp/membership"
)

// changeTicks is how many ticks lie between two proposals of a configuration.
const changeTicks = 10

// carryOut passes an event to the membership of the range and carries out the effects, in order. deliver
// reports whether the message of the event is to be processed. After an error the node is out of service.
func (r *hostedRange) carryOut(e membership.Event) (deliver bool, err error) {
	for _, effect := range r.membership.Step(e) {
		if _, ok := effect.(membership.Deliver); ok {
			deliver = true
			continue
		}
		if err := r.carryOutOne(effect); err != nil {
			return false, err
		}
	}
	return deliver, nil
}

func (r *hostedRange) carryOutOne(effect membership.Effect) error {
	n, id, rep := r.n, r.ID(), r.Replica()
	var change error
	switch e := effect.(type) {
	case membership.Send:
		r.report(e.To, e.Message)
	case membership.SaveIdentity:
		return membership.Save(n.o.State.FS, n.o.Dir, id, &e.Identity, n.o.Peers)
	case membership.Reopen:
		return r.reopen(e.Lost)
	case membership.Lose:
		rep.Lose(e.Reason)
	case membership.Wipe:
		return r.wipe()
	case membership.StartLog:
		return r.setFirstHardState()
	case membership.ReformState:
		return r.reformState(e)
	case membership.ReportReformed:
		if r.n.o.Base == nil { // A clone loses nothing.
			r.reportReformed()
		}
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
				_, _ = r.carryOut(membership.LeadershipConfirmed{To: e.To, Nonce: e.Nonce, Last: last}) // Its effect is one message.
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

// report sends a report about the range to another node.
func (r *hostedRange) report(to geo.NodeID, m membership.Message) {
	r.n.o.Transport.Send(r.n.o.ID, to, []Envelope{{Range: r.ID(), Report: m}})
}

// receiveReport takes a report about the range from another node.
func (r *hostedRange) receiveReport(e Envelope) error {
	deliver, err := r.carryOut(membership.Received{From: e.From, Message: e.Report})
	if _, asks := e.Report.(membership.RecoveryReport); deliver || asks {
		r.n.scheduler.marks.Receive(r.ID(), r.Replica(), e.From, e.Report, r.report)
	}
	if index, ok := e.Report.(membership.DurableIndex); ok && deliver {
		r.n.scheduler.activeAt[e.From] = r.n.scheduler.ticks
		r.durable[e.From] = index.Latest(r.durable[e.From])
	}
	return err
}

// join continues with a replica that joins, once a tick.
func (r *hostedRange) join() error {
	_, err := r.carryOut(membership.Join{Lost: r.Replica().Lost() != nil})
	return err
}

// manage reports changes of the membership and, if due, proposes the next one, once a tick.
func (r *hostedRange) manage(due bool) error {
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
	_, err := r.carryOut(e)
	return err
}

// keepLost makes it durable that the replica is lost, in the pass that found it.
func (r *hostedRange) keepLost() error {
	reason := r.Replica().Lost()
	if reason == nil {
		return nil
	}
	_, err := r.carryOut(membership.ReplicaFailed{Reason: reason})
	return err
}

// reportLead sends leader hints to the nodes without a replica of the range, once a tick, if the
// range is led here.
func (r *hostedRange) reportLead() {
	nodes, on := r.n.placement.Nodes, r.n.placement.Of(r.ID())
	if len(on) == len(nodes) || !r.Leading() {
		return
	}
	_, term := r.Replica().Leader()
	next := 0
	for _, p := range nodes { // Both ascend.
		if next < len(on) && on[next] == p {
			next++
			continue
		}
		r.report(p, membership.LeaderHint{Term: term})
	}
}
