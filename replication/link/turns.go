package link

import (
	"context"
	"errors"
	"sync"

	"antipode/internal/clock"
	"antipode/replication/pace"
)

// turns lets chunks over the line, in the order in which they came, as many at once as the line carries in
// about a second, and one at least. A chunk that waits for its turn has no deadline: it is not under way. One
// whose call is not answered in time fails with all that wait, since those would take as long each.
type turns struct {
	clock clock.Clock

	mu     sync.Mutex
	window pace.Window
	under  int // bytes
	line   []*turn
}

// turn is a chunk that waits.
type turn struct {
	bytes int
	begun chan struct{}
	// err is set, before begun is closed, for one that does not begin.
	err error
}

func newTurns(c clock.Clock) *turns {
	return &turns{clock: c, window: pace.Window{Bytes: 2 * pushBytes, Least: 1, Most: pushBytes * pushChunks}}
}

// over runs f in the turn of a chunk.
func (t *turns) over(ctx context.Context, bytes int, f func() error) error {
	if err := t.wait(ctx, bytes); err != nil {
		return err
	}
	began := t.clock.Mono()
	err := f()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.window.Answered(bytes, began, t.clock.Mono())
	} else {
		t.window.Failed(t.clock.Mono())
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrCut) {
		for _, next := range t.line {
			next.err = err
			close(next.begun)
		}
		t.line = nil
	}
	t.under -= bytes
	t.serve()
	return err
}

func (t *turns) wait(ctx context.Context, bytes int) error {
	own := &turn{bytes: bytes, begun: make(chan struct{})}
	t.mu.Lock()
	t.line = append(t.line, own)
	t.serve()
	t.mu.Unlock()
	select {
	case <-own.begun:
		return own.err
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.line {
		if other == own {
			t.line = append(t.line[:i], t.line[i+1:]...)
			return ctx.Err()
		}
	}
	if own.err == nil {
		t.under -= bytes // Its turn began meanwhile.
		t.serve()
	}
	return ctx.Err()
}

// serve begins the turns of those for which there is room. The caller holds mu.
func (t *turns) serve() {
	for len(t.line) > 0 && (t.under == 0 || t.window.Admits(t.under+t.line[0].bytes-1)) {
		next := t.line[0]
		t.line = t.line[1:]
		t.under += next.bytes
		close(next.begun)
	}
}
