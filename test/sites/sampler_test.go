package sites

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/rest"
)

// sampler reads Last Sync Time at each node of the secondary in turn, and requires that what was acknowledged by then
// can be read there. It ends before the disks of the secondary are set back: what it has seen may be gone then.
type sampler struct {
	s   *site
	at  geo.Location
	end func()
	of  []*ledger.Ledger
	// slack is by how much clocks are allowed to differ: 0 where nobody sets one.
	slack time.Duration

	mu sync.Mutex
	// seen are the writes that were read at -secondary.
	seen   map[string]bool
	known  int
	reads  int
	broken []string
}

// sampling begins to sample Last Sync Time at a location against ledgers. Its end fails the test if it was ever wrong.
func (s *site) sampling(ctx context.Context, at geo.Location, slack time.Duration, of ...*ledger.Ledger) *sampler {
	p := &sampler{s: s, at: at, of: of, slack: slack, seen: map[string]bool{}}
	ctx, halt := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for turn := 0; ctx.Err() == nil; turn++ {
			node := rig.NodesOf(at)[turn%rig.Nodes]
			for _, service := range []geo.Service{geo.Table, geo.Blob} {
				p.sample(ctx, s.r.Client(node, true), node, service)
			}
			rig.Pause(ctx, samplePause)
		}
	})
	p.end = sync.OnceFunc(func() {
		halt()
		wg.Wait()
		require.Empty(s.t, p.broken)
		s.t.Logf("Last Sync Time at %s: %d samples with one, %d writes read that it demands", at, p.known, p.reads)
	})
	s.t.Cleanup(func() { halt(); wg.Wait() })
	return p
}

func (p *sampler) sample(ctx context.Context, c *rest.Client, node string, service geo.Service) {
	one, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stats, err := c.Stats(one, service)
	now := time.Now()
	if err != nil || !stats.Known {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known++
	if stats.LastSyncTime.After(now.Add(geo.ClockOffMax)) {
		p.broken = append(p.broken, fmt.Sprintf("Last Sync Time of %s %s at %s", service, stats.LastSyncTime, now))
	}
	for _, l := range p.of {
		for _, e := range ledger.Of(l.Entries(), service) {
			if e.Fate != ledger.Acked || p.seen[e.Key] || e.Ended.After(stats.LastSyncTime.Add(-p.slack)) {
				continue
			}
			there, err := ledger.There(one, c, e)
			if errors.Is(err, ledger.ErrWrong) {
				p.broken = append(p.broken, err.Error())
			}
			if err != nil {
				return
			}
			p.reads++
			if p.seen[e.Key] = true; !there {
				p.broken = append(p.broken, fmt.Sprintf("Last Sync Time %s at %s, which lacks %s", stats.LastSyncTime, node, e))
			}
		}
	}
}

// counts are how many samples had a Last Sync Time, and how many writes were read that one demanded.
func (p *sampler) counts() (known, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.reads
}

// sampledAll waits until Last Sync Time has passed every acknowledged write, so that the next samples take no time. Nobody writes.
func (p *sampler) sampledAll(ctx context.Context) {
	p.s.t.Helper()
	all := 0
	for _, l := range p.of {
		all += l.Acked()
	}
	p.s.eventually(ctx, "Last Sync Time passes every acknowledged write", func(context.Context) bool {
		_, reads := p.counts()
		return reads >= all
	})
}
