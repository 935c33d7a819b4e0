package stamp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/node"
)

// PutChunk makes a chunk durable on every reachable node of the blob range, on two at least.
// It comes before the change that names the chunk, so that no replica has to fetch the chunk
// before it acknowledges (R3). Once two nodes have the chunk, a node that stalls or fails
// delays the call by InSyncTimeout at most: the replica there fetches the chunk before it
// acknowledges, or leaves the in-sync set. So does a node whose disk is nearly full; where fewer than two have room
// the answer is kv.ErrBusy. data is not kept.
func (s *Stamp) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	chunk, err := extent.NewChunk(ref, data) // summed once for all nodes
	if err != nil {
		return err
	}
	puts, err := s.chunkPuts(chunk, ref, data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(puts))
	for _, put := range puts {
		go func() { results <- put(ctx) }()
	}
	durable, busy := 0, false
	var errs []error
	for i := range puts { // All are awaited: each reads data.
		switch err := <-results; {
		case errors.Is(err, kv.ErrBusy): // It has no room.
			busy = true
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		}
		if durable++; durable == s.copiesMin() && i+1 < len(puts) {
			defer time.AfterFunc(s.o.InSyncTimeout, cancel).Stop()
		}
	}
	err = errors.Join(errs...)
	switch {
	case durable >= s.copiesMin():
		if err != nil {
			s.o.Logger.Warn("chunk is not on every node; a replica there fetches it", "chunk", ref.ID, "error", err)
		}
		return nil
	case busy:
		return kv.ErrBusy
	}
	return fmt.Errorf("chunk %s is durable on %d nodes, at least %d are needed: %w", ref.ID, durable, s.copiesMin(), err)
}

// chunkRange is the range on whose nodes chunks are: the first one of those whose changes name them.
func (s *Stamp) chunkRange() geo.RangeID { return s.o.Route.Service(geo.Blob)[0].ID }

// chunkCopiesMin is how many nodes must hold a chunk before a change may name it.
const chunkCopiesMin = 2

// copiesMin is chunkCopiesMin, and one in a clone, which has one node.
func (s *Stamp) copiesMin() int {
	if s.o.Base != nil {
		return 1
	}
	return chunkCopiesMin
}

// chunkPuts returns, for each reachable node, the function that makes a chunk durable there;
// kv.ErrBusy if the nodes are too few. It leaves out the nodes of this process that have no room; others answer it.
func (s *Stamp) chunkPuts(chunk extent.Chunk, ref extent.Ref, data []byte) ([]func(context.Context) error, error) {
	var puts []func(context.Context) error
	self := s.self()
	for _, id := range s.Placed(s.chunkRange()) {
		if n := s.Node(id); n != nil {
			if n.Room().Full() {
				continue
			}
			puts = append(puts, func(ctx context.Context) error {
				if err := n.Extents().PutChunk(chunk); err != nil {
					return fmt.Errorf("node %s: %w", node.Name(s.o.Location, id), err)
				}
				return n.Extents().Sync(ctx)
			})
		} else if peer := s.o.Transport.Peer(self, id); peer != nil {
			puts = append(puts, func(ctx context.Context) error {
				if err := peer.PutChunk(ctx, ref, data); err != nil {
					return err
				}
				return peer.SyncChunks(ctx)
			})
		}
	}
	if len(puts) < s.copiesMin() {
		return nil, kv.ErrBusy
	}
	return puts, nil
}

// hasChunkMethod asks a node whether a chunk, given as its id, is durable there.
const hasChunkMethod = "stamp.hasChunk"

// hasChunkTimeout bounds a call of hasChunkMethod.
const hasChunkTimeout = time.Second

// HasChunk reports whether the chunk is durable on the node that leads the blob range, where
// it must be when a change that names it is evaluated. It is false if that node does not
// answer; the chunk may then be put again.
func (s *Stamp) HasChunk(ref extent.Ref) bool {
	lead, ok := s.LeaderNode(s.chunkRange())
	if !ok {
		return false
	}
	if n := s.Node(lead); n != nil {
		return n.Extents().Durable(ref.ID)
	}
	calls, ok := s.o.Transport.(node.CallTransport)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, hasChunkTimeout)
	defer cancel()
	answer, err := calls.Call(ctx, s.self(), lead, hasChunkMethod, ref.ID[:])
	return err == nil && len(answer) == 1 && answer[0] == 1
}

// answerHasChunk answers hasChunkMethod at a node.
func (s *Stamp) answerHasChunk(id geo.NodeID) node.CallHandler {
	return func(_ context.Context, body []byte) ([]byte, error) {
		n := s.Node(id)
		if n == nil {
			return nil, node.ErrUnreachable
		}
		var chunk extent.ChunkID
		if copy(chunk[:], body) != len(body) || len(body) != len(chunk) {
			return nil, fmt.Errorf("id of a chunk has %d bytes", len(body))
		}
		if n.Extents().Durable(chunk) {
			return []byte{1}, nil
		}
		return []byte{0}, nil
	}
}

// ReadChunk reads a part of a chunk from a node that holds it intact. Nodes that run here
// come before others.
func (s *Stamp) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	err := errors.New("no node is up")
	for _, id := range s.Placed(s.chunkRange()) {
		if n := s.Node(id); n != nil {
			var got int
			if got, err = n.ReadChunk(ref, off, p); err == nil {
				return got, nil
			}
		}
	}
	self := s.self()
	for _, id := range s.Placed(s.chunkRange()) {
		if s.Node(id) != nil {
			continue
		}
		if peer := s.o.Transport.Peer(self, id); peer != nil {
			var got int
			if got, err = peer.ReadChunk(ref, off, p); err == nil {
				return got, nil
			}
		}
	}
	return 0, fmt.Errorf("chunk %s: no replica holds it intact: %w", ref.ID, err)
}

// HoldChunks keeps chunks at the nodes that run here before release is called: a read of them is under way (R9). ReadChunk
// asks those nodes first.
func (s *Stamp) HoldChunks(refs []extent.Ref) (release func()) {
	var releases []func()
	for _, id := range s.Placed(s.chunkRange()) {
		if n := s.Node(id); n != nil {
			releases = append(releases, n.Extents().Hold(refs))
		}
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

// ExamineChunk has every reachable node read its copy of a chunk. A node that finds its copy damaged
// takes the chunk again when it is put, instead of answering that it is held.
func (s *Stamp) ExamineChunk(ref extent.Ref) {
	self := s.self()
	buf := make([]byte, ref.Length)
	for _, id := range s.Placed(s.chunkRange()) {
		if n := s.Node(id); n != nil {
			_, _ = n.ReadChunk(ref, 0, buf) // The node records what it finds.
		} else if peer := s.o.Transport.Peer(self, id); peer != nil {
			_, _ = peer.ReadChunk(ref, 0, buf)
		}
	}
}
