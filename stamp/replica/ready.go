package replica

import (
	"errors"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/internal/plantedbugs"
	"antipode/stamp/state"
)

// Pass collects what the replicas of a node have to do in one scheduler pass, so
// that one write and one fsync serve all of them.
type Pass struct {
	// Sends go out at once: a leader sends before its own fsync.
	Sends []*pb.Message
	// From[i] is the replica that sends Sends[i].
	From []*Replica

	appends []work
	applies []work
}

type work struct {
	r *Replica
	m *pb.Message
	// waited: the snapshot before it, or in it, is installed.
	waited bool
}

func (p *Pass) send(r *Replica, m *pb.Message) {
	p.Sends = append(p.Sends, m)
	p.From = append(p.From, r)
}

// Reset empties the pass for reuse.
func (p *Pass) Reset() {
	clear(p.Sends)
	clear(p.From)
	clear(p.appends)
	clear(p.applies)
	p.Sends, p.From, p.appends, p.applies = p.Sends[:0], p.From[:0], p.appends[:0], p.applies[:0]
}

// HasReady reports whether Collect has anything to collect that can be done now.
func (r *Replica) HasReady() bool {
	return r.lost == nil && (r.rn.HasReady() || r.installed() || len(r.unapplied.messages) > 0 && !r.pressed())
}

// Collect moves the replica's Ready into the pass.
func (r *Replica) Collect(p *Pass) {
	if r.installed() {
		for _, m := range r.waits {
			p.appends = append(p.appends, work{r, m, true})
		}
		r.waits = nil
	}
	r.takeUnapplied(p)
	if !r.rn.HasReady() {
		return
	}
	rd := r.rn.Ready()
	if rd.SoftState != nil {
		r.lease.pending = false
		r.resetElection()
		r.leads = rd.RaftState == raft.StateLeader
		if r.leads {
			r.fresh = false
			r.inSync.reset(r.seenLeader, r.seenAt)
			r.seenLeader = 0
			r.o.Logger.Debug("leads range", "range", r.o.Range, "node", r.o.Node)
		}
	}
	r.behind.Store(r.leads && r.rn.BasicStatus().GetCommit() > r.applied)
	for _, rs := range rd.ReadStates {
		r.confirm(rs.RequestCtx)
		r.receiveIndex(rs.RequestCtx, rs.Index)
	}
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			r.noteEnd(m)
			p.appends = append(p.appends, work{r: r, m: m})
		case raft.LocalApplyThread:
			p.applies = append(p.applies, work{r: r, m: m})
		default:
			p.send(r, m)
		}
	}
}

// hold takes out of the pass what waits for a snapshot.
func (p *Pass) hold() error {
	kept := p.appends[:0]
	for _, w := range p.appends {
		if !w.waited {
			if holds, err := w.r.holds(w.m); err != nil {
				return err
			} else if holds {
				continue
			}
		}
		kept = append(kept, w)
	}
	clear(p.appends[len(kept):])
	p.appends = kept
	return nil
}

// Append writes what was collected with one commit, which is synced if an answer depends on
// it. Then it sends the answers: to peers through the pass, to Raft at once.
func (p *Pass) Append(log state.Log) error {
	if err := p.hold(); err != nil {
		return err
	}
	if len(p.appends) == 0 {
		return nil
	}
	batch := log.NewBatch()
	sync := false
	for _, w := range p.appends {
		if err := w.r.stage(batch, w.m); err != nil {
			return err
		}
		sync = sync || !raft.IsEmptySnap(w.m.GetSnapshot()) || len(w.m.GetResponses()) > 0 &&
			(len(w.m.GetEntries()) > 0 || !plantedbugs.Planted(plantedbugs.VoteBeforeSync))
	}
	if err := batch.Commit(sync); err != nil {
		return err
	}
	for _, w := range p.appends {
		if !raft.IsEmptySnap(w.m.GetSnapshot()) {
			if err := w.r.o.Snapshots.Installed(); err != nil {
				return err
			}
		}
		w.r.answerAll(p, w.m)
	}
	return nil
}

func (r *Replica) stage(batch state.LogBatch, m *pb.Message) error {
	if s := m.GetSnapshot(); !raft.IsEmptySnap(s) {
		if err := r.install(batch, s); err != nil {
			return err
		}
	}
	if len(m.GetEntries()) > 0 {
		if err := r.o.Log.Append(batch, m.GetEntries()); err != nil {
			return err
		}
	}
	if m.Term == nil {
		return nil
	}
	hs := &pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
	if raft.IsEmptyHardState(hs) {
		return nil
	}
	return r.o.Log.SetHardState(batch, hs)
}

// answerAll delivers the responses that waited for what a message asks of the storage.
func (r *Replica) answerAll(p *Pass, m *pb.Message) {
	for _, resp := range m.GetResponses() {
		r.answer(p, resp)
	}
}

// answer delivers a response that waited for storage.
func (r *Replica) answer(p *Pass, m *pb.Message) {
	if To(m) != r.o.ID {
		p.send(r, m)
		return
	}
	if err := r.rn.Step(m); err != nil {
		r.o.Logger.Warn("storage answer refused", "range", r.o.Range, "error", err)
	}
}

// Apply applies what was committed, to the ranges led here or to those followed here. The
// ranges led here are applied before Append, since commands wait for them; those followed here
// after it, since the leader waits for the fsync and nobody for the apply. While the state store is pressed nothing is:
// see unapplied.go. A replica whose state
// machine fails is out of service: its state may differ from that of its peers. One that does not know an
// entry has lost nothing: it must neither skip the entry nor be rebuilt, so the node stops (ErrLater).
func (p *Pass) Apply(led bool) {
	for _, w := range p.applies {
		entries := w.m.GetEntries()
		if w.r.lost != nil || w.r.leads != led {
			continue
		}
		if w.r.Installing() { // The snapshot has them.
			w.r.answerAll(p, w.m)
			continue
		}
		if w.r.defers() {
			w.r.unapplied.messages = append(w.r.unapplied.messages, w.m)
			continue
		}
		if err := w.r.o.Machine.Apply(entries); errors.Is(err, ErrLater) {
			panic(Unreadable{err})
		} else if err != nil {
			w.r.lose(err)
			continue
		}
		if err := w.r.applyConf(entries); err != nil {
			w.r.lose(err)
			continue
		}
		last := entries[len(entries)-1]
		for _, e := range entries {
			if e.GetIndex() <= w.r.replayTo {
				w.r.replayed++
			}
		}
		w.r.applied, w.r.appliedTerm = last.GetIndex(), last.GetTerm()
		w.r.unapplied.applied(entries)
		w.r.behind.Store(w.r.leads && w.r.rn.BasicStatus().GetCommit() > w.r.applied)
		w.r.answerAll(p, w.m)
	}
}
