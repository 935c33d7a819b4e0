package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/room"
)

// payload copies chunks that this node needs from its peers.
type payload struct {
	n *Node

	mu sync.Mutex
	// fetching are the chunks that held entries wait for; true means that the fetch failed.
	fetching map[extent.ChunkID]bool
	// failed is why a fetched chunk could not be written here.
	failed error
	closed bool
}

// close prevents further fetches.
func (p *payload) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// here reports whether every chunk that the message's entries name is durable here, and starts to fetch
// those that are not. Entries that this version does not know wait too, until the node is upgraded. What is applied here comes
// twice, and Raft passes over it: its chunks were here, and may be collected since.
func (p *payload) here(e Envelope) bool {
	r := p.n.byID[e.Range]
	here, applied := r.Understands(e.From, e.Message.GetEntries(), e.Message.GetCommit()), r.Machine.AppliedState().Index
	for _, entry := range e.Message.GetEntries() {
		if entry.GetIndex() <= applied || !change.NamesChunks(entry.Data) {
			continue
		}
		refs, err := change.GroupChunks(entry.Data)
		if err != nil {
			continue // Apply will refuse it.
		}
		for _, ref := range refs {
			if !p.n.stores.extents.Name(ref.ID) {
				here = false
				p.fetch(ref, e.From)
			}
		}
	}
	return here || plantedbugs.Planted(plantedbugs.MatchWithoutPayload)
}

// fetchesMax bounds the chunks that are fetched at once for held entries.
const fetchesMax = 8

// fetch starts to copy a chunk from a peer, unless that is under way. It does not block the scheduler,
// since a fetch over a network may take long. A failed fetch is repeated after a tick.
func (p *payload) fetch(ref extent.Ref, from geo.NodeID) {
	p.mu.Lock()
	_, begun := p.fetching[ref.ID]
	if begun || len(p.fetching) >= fetchesMax || p.closed {
		p.mu.Unlock()
		return
	}
	p.fetching[ref.ID] = false
	p.mu.Unlock()
	n := p.n
	n.start(func() {
		err := p.copyFromAny(ref, from)
		if err == nil {
			err = n.stores.extents.Sync(n.ctx)
		}
		p.mu.Lock()
		if err == nil {
			delete(p.fetching, ref.ID)
		} else {
			p.fetching[ref.ID] = true
		}
		if errors.Is(err, extent.ErrFailed) {
			p.failed = err
		}
		p.mu.Unlock()
		if err == nil {
			n.Wake()
		} else if n.ctx.Err() == nil && !errors.Is(err, ErrUnreachable) && !errors.Is(err, kv.ErrBusy) {
			n.o.Logger.Warn("cannot fetch a chunk; entries that name it wait", "chunk", ref.ID, "peer", from, "error", err)
		}
	})
}

// retry allows failed fetches to start again, once a tick. Its error is why a fetched chunk could not be
// written here: the node cannot go on.
func (p *payload) retry() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, failed := range p.fetching {
		if failed {
			delete(p.fetching, id)
		}
	}
	return p.failed
}

// fetchPaced copies a chunk from a peer at FetchBytesPerSecond, unless this node holds it. The peer first
// is asked before the others. The chunk is not durable before the next Sync.
func (p *payload) fetchPaced(ctx context.Context, ref extent.Ref, first geo.NodeID) error {
	if p.n.stores.extents.Durable(ref.ID) {
		return nil
	}
	if err := p.copyFromAny(ref, first); err != nil {
		return err
	}
	pace := time.NewTimer(time.Duration(float64(ref.Length) / float64(p.n.o.FetchBytesPerSecond) * float64(time.Second)))
	defer pace.Stop()
	select {
	case <-pace.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// copyFromAny copies a chunk from the first peer that has it intact. The peer first, unless it is 0, is
// asked before the others. The chunk is not durable before the next Sync.
func (p *payload) copyFromAny(ref extent.Ref, first geo.NodeID) error {
	if p.n.room.Level() >= room.Bare {
		return fmt.Errorf("chunk %s: the disk is nearly full: %w", ref.ID, kv.ErrBusy)
	}
	peers := p.n.o.Peers
	if first != 0 {
		peers = append([]geo.NodeID{first}, peers...)
	}
	var failed error
	for i, from := range peers {
		if from == p.n.o.ID || from == first && i > 0 {
			continue
		}
		err := p.copyChunk(ref, from)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("chunk %s: no peer has it: %w", ref.ID, failed)
}

// copyChunk reads a chunk from a peer and puts it here, if it matches ref.
func (p *payload) copyChunk(ref extent.Ref, from geo.NodeID) error {
	peer := p.n.o.Transport.Peer(p.n.o.ID, from)
	if peer == nil {
		return ErrUnreachable
	}
	data := make([]byte, ref.Length)
	if _, err := peer.ReadChunk(ref, 0, data); err != nil {
		return fmt.Errorf("read from node %d: %w", from, err)
	}
	return p.n.stores.extents.Put(ref, data)
}

// PutChunk implements ChunkPeer.
func (n *Node) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	if n.room.Full() {
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
