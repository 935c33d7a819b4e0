package fetch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/room"
)

// Max bounds the chunks that are fetched at once for entries.
const Max = 8

// ErrUnreachable: a node is not reachable, or takes no such call now. Nothing happened there.
var ErrUnreachable = errors.New("node: not reachable")

// ErrNoHandler is the ErrUnreachable of a process that answers, and does not know the method: it is of another version, or is
// just starting.
var ErrNoHandler = fmt.Errorf("no such call: %w", ErrUnreachable)

// Peer is the chunk store of a peer: see extent.Store.
type Peer interface {
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
}

// Chunks is the chunk store of the node: see extent.Store.
type Chunks interface {
	Durable(id extent.ChunkID) bool
	Put(ref extent.Ref, data []byte) error
	Sync(ctx context.Context) error
}

// Options configures a Fetcher. All fields are required.
type Options struct {
	Chunks Chunks
	// Peers are the nodes that are asked, in this order, and Peer is the store of one of them, nil while it is not reachable.
	Peers []geo.NodeID
	Peer  func(of geo.NodeID) Peer
	// Room is that of the node's disk: a bare one takes nothing.
	Room *room.Watch
	// BytesPerSecond bounds Paced.
	BytesPerSecond int
	// Go runs f on a goroutine, and Wake has the node look again whether chunks are here.
	Go     func(f func())
	Wake   func()
	Logger *slog.Logger
}

// Fetcher fetches chunks for one node. Its methods may be called concurrently.
type Fetcher struct {
	o   Options
	ctx context.Context //nolint:containedctx // The node's: it ends what Begin began.

	mu sync.Mutex
	// begun are the chunks that were asked for by Begin and are not here yet.
	begun map[extent.ChunkID]progress
	// failed is why a fetched chunk could not be written here.
	failed error
	closed bool
}

// progress is how far the fetch of a chunk is.
type progress byte

const (
	underWay progress = iota
	// failed: it is repeated after Retry.
	failed
	// gone: failed, and the peer that was asked first has no such chunk.
	gone
)

var errGone = errors.New("it is not at the node that names it")

// New returns a Fetcher that works until ctx ends.
func New(ctx context.Context, o Options) *Fetcher {
	return &Fetcher{o: o, ctx: ctx, begun: map[extent.ChunkID]progress{}}
}

// Close prevents that Begin begins anything.
func (f *Fetcher) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// Begin starts to copy a chunk from a peer, unless that is under way, and Wake is called when it is durable here. It does
// not block, since a fetch over a network may take long. A failed fetch is repeated after Retry; until then isGone
// reports that the peer answered that it does not have the chunk, and no other one returned it.
func (f *Fetcher) Begin(ref extent.Ref, first geo.NodeID) (isGone bool) {
	f.mu.Lock()
	at, begun := f.begun[ref.ID]
	if begun || len(f.begun) >= Max || f.closed {
		f.mu.Unlock()
		return begun && at == gone
	}
	f.begun[ref.ID] = underWay
	f.mu.Unlock()
	f.o.Go(func() {
		err := f.Copy(ref, first)
		if err == nil {
			err = f.o.Chunks.Sync(f.ctx)
		}
		f.ended(ref.ID, err)
		if err == nil {
			f.o.Wake()
		} else if f.ctx.Err() == nil && !errors.Is(err, ErrUnreachable) && !errors.Is(err, kv.ErrBusy) {
			f.o.Logger.Warn("cannot fetch a chunk; entries that name it wait", "chunk", ref.ID, "peer", first, "error", err)
		}
	})
	return false
}

func (f *Fetcher) ended(id extent.ChunkID, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		delete(f.begun, id)
	case errors.Is(err, errGone):
		f.begun[id] = gone
	default:
		f.begun[id] = failed
	}
	if errors.Is(err, extent.ErrFailed) {
		f.failed = err
	}
}

// Retry allows failed fetches to start again. Its error is why a fetched chunk could not be written here: the node cannot
// go on.
func (f *Fetcher) Retry() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, at := range f.begun {
		if at != underWay {
			delete(f.begun, id)
		}
	}
	return f.failed
}

// Paced copies a chunk from a peer at BytesPerSecond, unless it is durable here. The peer first is asked before the others.
// The chunk is not durable before the next Sync.
func (f *Fetcher) Paced(ctx context.Context, ref extent.Ref, first geo.NodeID) error {
	if f.o.Chunks.Durable(ref.ID) {
		return nil
	}
	if err := f.Copy(ref, first); err != nil {
		return err
	}
	pace := time.NewTimer(time.Duration(float64(ref.Length) / float64(f.o.BytesPerSecond) * float64(time.Second)))
	defer pace.Stop()
	select {
	case <-pace.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Copy copies a chunk from the first peer that has it intact. The peer first, unless it is 0, is asked before the others.
// The chunk is not durable before the next Sync.
func (f *Fetcher) Copy(ref extent.Ref, first geo.NodeID) error {
	if f.o.Room.Level() >= room.Bare {
		return fmt.Errorf("chunk %s: the disk is nearly full: %w", ref.ID, kv.ErrBusy)
	}
	peers := f.o.Peers
	if first != 0 {
		peers = append([]geo.NodeID{first}, peers...)
	}
	var failed error
	for i, from := range peers {
		if from == first && i > 0 {
			continue
		}
		err := f.copyFrom(ref, from)
		if err == nil {
			return nil
		}
		if from == first && errors.Is(err, extent.ErrNotFound) {
			err = errors.Join(errGone, err)
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("chunk %s: no peer has it: %w", ref.ID, failed)
}

// copyFrom reads a chunk from a peer and puts it here, if it matches ref.
func (f *Fetcher) copyFrom(ref extent.Ref, from geo.NodeID) error {
	peer := f.o.Peer(from)
	if peer == nil {
		return ErrUnreachable
	}
	data := make([]byte, ref.Length)
	if _, err := peer.ReadChunk(ref, 0, data); err != nil {
		return fmt.Errorf("read from node %d: %w", from, err)
	}
	return f.o.Chunks.Put(ref, data)
}
