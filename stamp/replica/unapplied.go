package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// While the state store of the node cannot be written without waiting, what is committed is not applied: the scheduler,
// which all ranges of the node share, goes on to persist entries, to send heartbeats and to renew leases.
//
//	memory   Raft gives out 4 MiB of entries, and one more, until they are applied
//	log      a leader proposes no more than a few groups ahead of what it has applied. A follower takes
//	         unappliedBytesMax of entries meanwhile; then it leaves the in-sync set, as one that does not answer
//	reads    wait, at the leader and at followers, for what may have been acknowledged (R5)
//	writes   wait for their result. A leader that applies nothing for stalledElections leaves, if it can

const (
	// unappliedBytesMax is how many bytes of entries a replica takes while some wait to be applied, and one message.
	unappliedBytesMax = 64 << 20
	// stalledElections is for how many election timeouts a leader may apply nothing of what waits. One whose
	// scheduler stood still would lose its leadership after one, and a flush on a slow disk takes a second or two.
	stalledElections = 3
)

// unapplied is what Raft wants applied and the state store cannot take yet.
type unapplied struct {
	// messages are in order; each has committed entries.
	messages []*pb.Message
	// ticks is for how many ticks some wait and none is applied.
	ticks int
	// first to last are the entries that were taken while some waited. bytes is what those take that are not applied.
	first, last, bytes uint64
}

func (r *Replica) pressed() bool { return r.o.Pressed != nil && r.o.Pressed() }

// defers reports whether entries that are to be applied now have to wait, since the store is pressed or earlier ones wait.
func (r *Replica) defers() bool { return len(r.unapplied.messages) > 0 || r.pressed() }

// takeUnapplied moves what waits into the pass, before what follows it.
func (r *Replica) takeUnapplied(p *Pass) {
	for _, m := range r.unapplied.messages {
		p.applies = append(p.applies, work{r: r, m: m})
	}
	r.unapplied.messages = nil
}

// tickUnapplied counts for how long nothing is applied.
func (r *Replica) tickUnapplied() {
	if len(r.unapplied.messages) == 0 {
		r.unapplied.ticks = 0
		return
	}
	if r.unapplied.ticks++; r.unapplied.ticks == r.o.ElectionTicks {
		r.o.Logger.Warn("the state store of the node cannot flush or compact as fast as it is written: what is committed waits to be applied",
			"range", r.o.Range, "applied", r.applied)
	}
}

// overfull counts entries that the leader sends while some wait, and reports whether so much was taken meanwhile that no more
// is: Raft sends them again.
func (r *Replica) overfull(entries []*pb.Entry) bool {
	u := &r.unapplied
	if len(u.messages) == 0 {
		u.first, u.last, u.bytes = 0, 0, 0
		return false
	}
	if u.bytes >= unappliedBytesMax {
		return true
	}
	for _, e := range entries {
		if e.GetIndex() <= u.last {
			continue // It came before.
		}
		if u.first == 0 {
			u.first = e.GetIndex()
		}
		u.last = e.GetIndex()
		u.bytes += uint64(len(e.GetData()))
	}
	return false
}

// applied takes off what was applied.
func (u *unapplied) applied(entries []*pb.Entry) {
	u.ticks = 0
	for _, e := range entries {
		if u.first != 0 && e.GetIndex() >= u.first && e.GetIndex() <= u.last {
			u.bytes -= min(u.bytes, uint64(len(e.GetData())))
		}
	}
}

// Stalled returns the nodes of the in-sync replicas if this one leads and has applied nothing for so long that another one
// should lead; then again only after as long. It is nil otherwise.
func (r *Replica) Stalled() []geo.NodeID {
	if !r.IsLeader() || r.unapplied.ticks < stalledElections*r.o.ElectionTicks {
		return nil
	}
	r.unapplied.ticks = 0
	return r.InSyncNodes()
}
