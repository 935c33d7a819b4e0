package node

import (
	"context"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/membership"
)

// step hands the inbox to the replicas. A MsgApp whose entries name chunks this
// node does not hold durably waits with all MsgApps behind it until they are
// fetched; heartbeats and votes pass (R3). So Match, quorum and electability imply
// the payload.
func (n *Node) step(messages []Envelope, now time.Duration) error {
	for _, e := range messages {
		r, hint := n.byID[e.Range], membership.LeaderHint{}
		switch {
		case r == nil:
			var ok bool
			if hint, ok = e.Report.(membership.LeaderHint); ok && slices.Contains(n.placement.Of(e.Range), e.From) {
				n.hints.Observe(e.Range, e.From, hint.Term, n.running.Time())
			}
		case e.Report != nil:
			if err := r.receiveReport(e); err != nil {
				return err
			}
		case e.Message.GetType() <= pb.MsgForgetLeader: // Else of a version that knows others.
			if err := r.stepRaft(e, now); err != nil {
				return err
			}
		}
	}
	for _, r := range n.ranges {
		i := 0
		for i < len(r.held) && n.payload.here(r.held[i]) {
			r.Replica().Step(r.held[i].Message, now)
			i++
		}
		for _, next := range r.held[min(i+1, len(r.held)):min(i+fetchesMax, len(r.held))] {
			n.payload.here(next)
		}
		if r.held = r.held[i:]; len(r.held) == 0 {
			r.held = nil // Frees the messages that were before it.
		}
	}
	return nil
}

// PutChunk implements ChunkPeer.
func (n *Node) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	if n.full.Load() {
		return kv.ErrBusy
	}
	return n.stores.extents.Put(ref, data)
}

// SyncChunks implements ChunkPeer.
func (n *Node) SyncChunks(ctx context.Context) error { return n.stores.extents.Sync(ctx) }

// ReadChunk implements ChunkPeer.
func (n *Node) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	return n.stores.extents.Read(ref, off, p)
}
