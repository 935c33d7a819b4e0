package node

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
)

// PutChunk makes a chunk durable on every node that is up, two at least: ahead of
// the change that names it, so that no replica has to fetch it before it
// acknowledges (R3).
func (s *Stamp) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	chunk, err := extent.NewChunk(ref, data) // summed once for all nodes
	if err != nil {
		return err
	}
	var g errgroup.Group
	up := 0
	for _, id := range s.o.Peers {
		n := s.Node(id)
		if n == nil {
			continue
		}
		if n.full.Load() {
			return errors.Join(kv.ErrBusy, g.Wait())
		}
		up++
		g.Go(func() error {
			if err := n.extents.PutChunk(chunk); err != nil {
				return fmt.Errorf("node %s: %w", Name(s.o.Location, id), err)
			}
			return n.extents.Sync(ctx)
		})
	}
	if up < 2 {
		return errors.Join(kv.ErrBusy, g.Wait())
	}
	return g.Wait()
}

// HasChunk reports whether the chunk is durable on the node that leads the blob
// range.
func (s *Stamp) HasChunk(ref extent.Ref) bool {
	for _, id := range s.o.Peers {
		if n := s.Node(id); n != nil && n.byID[geo.FirstRange(geo.Blob)].Leading() {
			return n.extents.Durable(ref.ID)
		}
	}
	return false
}

// ReadChunk reads from any node that holds the chunk intact.
func (s *Stamp) ReadChunk(ref extent.Ref, off int64, p []byte) (int, error) {
	err := errors.New("no node is up")
	for _, id := range s.o.Peers {
		n := s.Node(id)
		if n == nil {
			continue
		}
		var got int
		if got, err = n.ReadChunk(ref, off, p); err == nil {
			return got, nil
		}
	}
	return 0, fmt.Errorf("chunk %s: no replica holds it intact: %w", ref.ID, err)
}
