package node

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/invariants"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// step hands the inbox to the replicas. A MsgApp whose entries name chunks this
// node does not hold durably waits with all MsgApps behind it until they are
// fetched; heartbeats and votes pass (R3). So Match, quorum and electability imply
// the payload.
func (n *Node) step(inbox []Envelope, now time.Duration) error {
	for _, e := range inbox {
		if n.byID[e.Range] == nil {
			continue
		}
		if e.Message.GetType() >= msgDurable {
			n.hear(e.Range, e.Message)
			continue
		}
		if ok, err := n.addressed(e); err != nil {
			return err
		} else if !ok {
			continue
		}
		r := n.byID[e.Range]
		if e.Message.GetType() == pb.MsgSnap {
			continue // One without its rows: they travel as a stream.
		}
		if e.Message.GetType() == pb.MsgApp {
			n.dropOutdated(e)
			if len(n.held[e.Range]) > 0 || !n.payloadHere(e) {
				n.hold(e)
				continue
			}
		}
		r.Replica().Step(e.Message, now)
	}
	for id, held := range n.held {
		i := 0
		for i < len(held) && n.payloadHere(held[i]) {
			n.byID[id].Replica().Step(held[i].Message, now)
			i++
		}
		if n.held[id] = held[i:]; len(n.held[id]) == 0 {
			delete(n.held, id)
		}
	}
	return nil
}

// dropOutdated drops what waits from a leader before e's. Raft refuses it by now, and
// its sender, who alone was asked for the payload, may be gone for good: what is behind
// it would wait for ever. The new leader sends again what is missing.
func (n *Node) dropOutdated(e Envelope) {
	if held := n.held[e.Range]; len(held) > 0 && held[0].Message.GetTerm() < e.Message.GetTerm() {
		delete(n.held, e.Range)
	}
}

// heldMax bounds the MsgApps that wait for payload; Raft sends again.
const heldMax = 256

func (n *Node) hold(e Envelope) {
	if len(n.held[e.Range]) < heldMax {
		n.held[e.Range] = append(n.held[e.Range], e)
	}
}

// payloadHere reports whether every chunk that the message's entries name is
// durable here, and starts to fetch those that are not.
func (n *Node) payloadHere(e Envelope) bool {
	here := true
	for _, entry := range e.Message.GetEntries() {
		if !change.NamesChunks(entry.Data) {
			continue
		}
		refs, err := change.GroupChunks(entry.Data)
		if err != nil {
			continue // Apply will refuse it.
		}
		for _, ref := range refs {
			if !n.extents.Durable(ref.ID) {
				here = false
				n.fetch(ref, n.nodeOf(e.Range, e.Message.GetFrom()))
			}
		}
	}
	return here || invariants.Planted(invariants.MatchWithoutPayload)
}

// fetch copies a chunk from a peer. It runs on the scheduler: it is the rare path,
// since the leader's intake puts chunks on all replicas before it proposes.
func (n *Node) fetch(ref extent.Ref, from geo.NodeID) {
	switch err := n.copyChunk(ref, from); {
	case errors.Is(err, ErrUnreachable):
		return
	case err != nil:
		n.o.Logger.Warn("cannot fetch chunk from peer; entries that name it wait", "chunk", ref.ID, "peer", from, "error", err)
		return
	}
	if err := n.SyncChunks(); err != nil {
		n.fail(err)
	}
}

// PutChunk implements ChunkPeer.
func (n *Node) PutChunk(ref extent.Ref, data []byte) error { return n.extents.Put(ref, data) }

// SyncChunks implements ChunkPeer.
func (n *Node) SyncChunks() error { return n.extents.Sync(context.Background()) }

// ReadChunk implements ChunkPeer.
func (n *Node) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	return n.extents.Read(ref, off, p)
}
