package payload

import (
	"context"
	"errors"
	"slices"
	"sync"

	"antipode/internal/clock"
	"antipode/replication/link"
	"antipode/replication/pace"
)

// turns lets chunks over the line, as many at once as the line carries in about a second, and one at least.
// Chunks of each kind, small payload and large payload, go in the order in which they came. Each kind has half of
// the bytes while both wait: small payload does not wait for the large that came before it. A chunk that waits
// for its turn has no deadline: it is not under way. If the call of a chunk is not answered in time, all chunks
// that wait fail with it, since each would take as long.
type turns struct {
	clock clock.Clock

	mu     sync.Mutex
	window pace.Window
	under  int // bytes
	lines  [kinds][]*turn
	// served are the bytes of each kind that began while both waited.
	served [kinds]int
}

// kind is of the payload that a chunk belongs to: small at most ship.SmallPush.
type kind int

const (
	small kind = iota
	large
	kinds
)

// turn is a chunk that waits.
type turn struct {
	kind  kind
	bytes int
	begun chan struct{}
	// err is set, before begun is closed, for one that does not begin.
	err error
}

func newTurns(c clock.Clock) *turns {
	return &turns{clock: c, window: pace.Window{Bytes: 2 * ChunkBytes, Least: 1, Most: ChunkBytes * ChunksMax}}
}

// over runs f in the turn of a chunk.
func (t *turns) over(ctx context.Context, k kind, bytes int, f func() error) error {
	if err := t.wait(ctx, k, bytes); err != nil {
		return err
	}
	began := t.clock.Mono()
	err := f()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.window.Answered(bytes, began, t.clock.Mono())
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, link.ErrCut): // Others show nothing of the line.
		t.window.Failed(t.clock.Mono())
		for k, line := range t.lines {
			for _, next := range line {
				next.err = err
				close(next.begun)
			}
			t.lines[k] = nil
		}
	}
	t.under -= bytes
	t.serve()
	return err
}

func (t *turns) wait(ctx context.Context, k kind, bytes int) error {
	own := &turn{kind: k, bytes: bytes, begun: make(chan struct{})}
	t.mu.Lock()
	t.lines[k] = append(t.lines[k], own)
	t.serve()
	t.mu.Unlock()
	select {
	case <-own.begun:
		return own.err
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.lines[k], own); i >= 0 {
		t.lines[k] = slices.Delete(t.lines[k], i, i+1)
		return ctx.Err()
	}
	if own.err == nil {
		t.under -= bytes // Its turn began meanwhile.
		t.serve()
	}
	return ctx.Err()
}

// serve begins the turns of those for which there is room. The caller holds mu.
func (t *turns) serve() {
	for {
		next := t.next()
		if next == nil || t.under > 0 && !t.window.Admits(t.under+next.bytes-1) {
			return
		}
		t.lines[next.kind] = t.lines[next.kind][1:]
		t.served[next.kind] += next.bytes
		t.under += next.bytes
		close(next.begun)
	}
}

// next is the chunk whose turn is next, nil if none waits. The caller holds mu.
func (t *turns) next() *turn {
	switch s, l := t.lines[small], t.lines[large]; {
	case len(s) == 0 && len(l) == 0:
		return nil
	case len(l) == 0:
		t.served = [kinds]int{}
		return s[0]
	case len(s) == 0:
		t.served = [kinds]int{}
		return l[0]
	case t.served[small] <= t.served[large]:
		return s[0]
	default:
		return l[0]
	}
}
