package node

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/replica"
)

// step hands the inbox to the replicas. A MsgApp whose entries name chunks this
// node does not hold durably waits with all MsgApps behind it until they are
// fetched; heartbeats and votes pass (R3). So Match, quorum and electability imply
// the payload.
func (n *Node) step(inbox []Envelope, now time.Duration) error {
	for _, e := range inbox {
		if !n.takes(e) {
			continue
		}
		if n.byID[e.Range] == nil {
			n.hearLeads(e)
			continue
		}
		if e.Message.GetType() >= msgDurable {
			if err := n.hear(e); err != nil {
				return err
			}
			continue
		}
		if ok, err := n.fence(e.Range, replica.RecoveryOf(replica.From(e.Message)), e.From); err != nil {
			return err
		} else if !ok {
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
			// In this order: what waits for another one fetches meanwhile.
			if here := n.payloadHere(e); !here || len(n.held[e.Range]) > 0 {
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
		for _, next := range held[min(i+1, len(held)):min(i+fetchesMax, len(held))] {
			n.payloadHere(next)
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
				n.fetch(ref, e.From)
			}
		}
	}
	return here || plantedbugs.Planted(plantedbugs.MatchWithoutPayload)
}

// fetchesMax bounds the chunks that are fetched at once for entries that wait.
const fetchesMax = 8

// fetch begins to copy a chunk from a peer, unless that is under way. The scheduler goes
// on: over a network a fetch may take long. One that failed is tried again after a tick.
func (n *Node) fetch(ref extent.Ref, from geo.NodeID) {
	n.mu.Lock()
	_, begun := n.fetching[ref.ID]
	if begun || len(n.fetching) >= fetchesMax || n.closed {
		n.mu.Unlock()
		return
	}
	n.fetching[ref.ID] = false
	n.mu.Unlock()
	n.start(func() {
		err := n.copyFromAny(ref, from)
		if err == nil {
			err = n.extents.Sync(n.ctx)
		}
		n.mu.Lock()
		if err == nil {
			delete(n.fetching, ref.ID)
		} else {
			n.fetching[ref.ID] = true
		}
		if errors.Is(err, extent.ErrFailed) {
			n.noStore = err
		}
		n.mu.Unlock()
		if err == nil {
			n.Wake()
		} else if n.ctx.Err() == nil && !errors.Is(err, ErrUnreachable) {
			n.o.Logger.Warn("cannot fetch a chunk; entries that name it wait", "chunk", ref.ID, "peer", from, "error", err)
		}
	})
}

// refetch lets the fetches that failed begin again, once a tick. After one that the store
// here failed the node is out of service too.
func (n *Node) refetch() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, failed := range n.fetching {
		if failed {
			delete(n.fetching, id)
		}
	}
	return n.noStore
}

// PutChunk implements ChunkPeer.
func (n *Node) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	if n.full.Load() {
		return kv.ErrBusy
	}
	return n.extents.Put(ref, data)
}

// SyncChunks implements ChunkPeer.
func (n *Node) SyncChunks(ctx context.Context) error { return n.extents.Sync(ctx) }

// ReadChunk implements ChunkPeer.
func (n *Node) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	return n.extents.Read(ref, off, p)
}
