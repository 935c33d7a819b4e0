package node

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/stamp/fetch"
	"antipode/stamp/membership"
	"antipode/stamp/replica"
	"antipode/stamp/room"
)

// step passes the messages of the inbox to the replicas. A MsgApp whose entries name chunks that this
// node does not hold durably, or that a later version wrote, waits, with all MsgApps behind it. Heartbeats and
// votes are not held back (R3). So Match, quorum and electability imply the payload.
func (s *scheduler) step(messages []Envelope, now time.Duration) error {
	n := s.n
	for _, e := range messages {
		switch r := n.byID[e.Range]; {
		case r == nil:
			hint, ok := e.Report.(membership.LeaderHint)
			if ok && slices.Contains(n.placement.Of(e.Range), e.From) {
				n.hints.Observe(e.Range, e.From, hint.Term, s.running.Time())
			}
		case e.Report != nil:
			if err := r.receiveReport(e); err != nil {
				return err
			}
		case e.Message.GetType() <= pb.MsgForgetLeader: // Higher types are of a later version.
			if err := r.stepRaft(e, now); err != nil {
				return err
			}
		}
	}
	for _, r := range n.ranges {
		r.stepHeld(now)
	}
	return nil
}

// stepHeld steps the held MsgApps whose payload is here, and fetches that of the next ones.
func (r *hostedRange) stepHeld(now time.Duration) {
	if r.n.room.Level() == room.Spent {
		r.held = nil // Raft sends them again.
	}
	i := 0
	for ; i < len(r.held); i++ {
		here, gone := r.here(r.held[i])
		if gone { // The leader has trimmed it since. Raft refuses what comes behind, and is sent what is left.
			r.held = nil
			return
		}
		if !here {
			break
		}
		r.Replica().Step(r.held[i].Message, now)
	}
	for _, next := range r.held[min(i+1, len(r.held)):min(i+fetch.Max, len(r.held))] {
		r.here(next)
	}
	if r.held = r.held[i:]; len(r.held) == 0 {
		r.held = nil // Frees the messages that were before it.
	}
}

// stepRaft passes one of Raft's messages to the replica.
func (r *hostedRange) stepRaft(e Envelope, now time.Duration) error {
	if ok, err := r.admit(e); err != nil || !ok {
		return err
	}
	switch e.Message.GetType() {
	case pb.MsgSnap:
		return nil // Its rows are missing: a snapshot travels as a stream.
	case pb.MsgApp:
		r.dropOutdated(e)
		for _, entry := range e.Message.GetEntries() {
			r.n.room.Expect(len(entry.GetData()))
		}
		if !r.Replica().Takes(e.Message) {
			return nil
		}
		// Called even if other messages are held: their payload and this one's are fetched together.
		if here, _ := r.here(e); !here || len(r.held) > 0 {
			r.hold(e)
			return nil
		}
	}
	r.Replica().Step(e.Message, now)
	return nil
}

// dropOutdated drops the held messages of a leader before e's. Raft would refuse them, and their payload
// may be gone with that leader: what is behind them would wait forever. The new leader sends what is
// missing again.
func (r *hostedRange) dropOutdated(e Envelope) {
	if len(r.held) > 0 && r.held[0].Message.GetTerm() < e.Message.GetTerm() {
		r.held = nil
	}
}

// heldMax bounds the MsgApps of a range that wait for payload. Raft repeats what is dropped beyond it.
const heldMax = 256

func (r *hostedRange) hold(e Envelope) {
	if len(r.held) < heldMax {
		r.held = append(r.held, e)
	}
}

// admit reports whether one of Raft's messages is for the replica here, and from a node that may send
// it.
func (r *hostedRange) admit(e Envelope) (bool, error) {
	head := membership.RaftMessage{
		From: e.From, Sender: replica.From(e.Message), Receiver: replica.To(e.Message), Members: r.Replica().Members(),
		FromLeader: e.Message.GetType() == pb.MsgApp || e.Message.GetType() == pb.MsgHeartbeat,
	}
	if head.FromLeader && head.Receiver > r.membership.Identity().Replica { // It may be rebuilt under that id.
		if reserved := r.n.snapshots.Reserve(e.Range); reserved != nil {
			defer reserved.Free()
			r.reserved, head.CanRebuild = reserved, true
		}
	}
	return r.carryOut(head)
}
