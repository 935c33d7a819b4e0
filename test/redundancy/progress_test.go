package redundancy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/test/faults/rig"
)

// progress watches how far the copy of an account is, as each node of the primary shows it from its own replicas. What
// a node shows never goes back until that process ends: a copy that begins again would.
type progress struct {
	a   *account
	end func()

	mu sync.Mutex
	// last is what the process of a node has shown last, and lives counts the processes of a node that were ended.
	last  map[string]wire.CopySize
	lives map[string]int
	// most is the most that any node has shown.
	most   wire.CopySize
	total  wire.CopySize
	looks  int
	wentOn error
}

func (a *account) progress(ctx context.Context) *progress {
	p := &progress{a: a, last: map[string]wire.CopySize{}, lives: map[string]int{}}
	ctx, halt := context.WithCancel(ctx)
	var watching sync.WaitGroup
	for _, name := range rig.NodesOf(rig.North) {
		watching.Go(func() {
			for ctx.Err() == nil {
				p.look(ctx, name)
				rig.Pause(ctx, poll)
			}
		})
	}
	p.end = sync.OnceFunc(func() {
		halt()
		watching.Wait()
		require.NoError(a.t, p.wentOn)
	})
	return p
}

func (p *progress) look(ctx context.Context, name string) {
	p.mu.Lock()
	life := p.lives[name]
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	got, err := p.a.r.Admin(name).Account(ctx, p.a.name)
	if err != nil || got.Copied == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if life != p.lives[name] {
		return // Of the process before.
	}
	now, was := got.Copied.CopySize, p.last[name]
	if now.Rows < was.Rows || now.Bytes+now.PayloadBytes < was.Bytes+was.PayloadBytes {
		p.wentOn = fmt.Errorf("%s showed %+v after %+v", name, now, was)
	}
	p.last[name] = now
	if now.Rows > p.most.Rows {
		p.most = now
	}
	if got.Copied.Total != nil {
		p.total = *got.Copied.Total
	}
	p.looks++
}

// ended: the process of a node was ended.
func (p *progress) ended(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lives[name]++
	delete(p.last, name)
}

func (p *progress) now() (most, total wire.CopySize) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most, p.total
}
