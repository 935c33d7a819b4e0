package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"antipode/geo"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
)

// Of one fault: how long it lasts, unless a player says otherwise, and the time until the
// next of the same player.
const (
	shortest, longest = 300 * time.Millisecond, 3 * time.Second
	gapMax            = 1500 * time.Millisecond
)

// fault is something that a player does; it returns how to undo it.
type fault struct {
	name string
	do   func(r *rig.Rig, rng *rand.Rand) (undo func() error, err error)
}

// player does faults one after the other. Each of its faults comes once before one comes
// twice.
type player struct {
	rig    *rig.Rig
	rng    *rand.Rand
	faults []fault
	// shortest and longest bound how long a fault lasts.
	shortest, longest time.Duration

	mu     sync.Mutex
	played map[string]int
}

func newPlayer(r *rig.Rig, rng *rand.Rand, faults []fault) *player {
	return &player{rig: r, rng: rng, faults: faults, shortest: shortest, longest: longest, played: map[string]int{}}
}

// run plays until ctx ends, and leaves everything whole and running.
func (p *player) run(ctx context.Context) error {
	var deck []int
	for ctx.Err() == nil {
		if len(deck) == 0 {
			deck = p.rng.Perm(len(p.faults))
		}
		f := p.faults[deck[0]]
		deck = deck[1:]
		undo, err := f.do(p.rig, p.rng)
		if err == nil {
			rig.Pause(ctx, p.shortest+upTo(p.rng, p.longest-p.shortest))
			err = undo()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		p.mu.Lock()
		p.played[f.name]++
		p.mu.Unlock()
		rig.Pause(ctx, upTo(p.rng, gapMax))
	}
	return nil
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// counts are how often each fault was played.
func (p *player) counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for _, f := range p.faults {
		out[f.name] = 0
	}
	maps.Copy(out, p.played)
	return out
}

// one draws a node of a location.
func one(rng *rand.Rand, l geo.Location) string {
	nodes := rig.NodesOf(l)
	return nodes[rng.IntN(len(nodes))]
}

// killed is some processes killed, and started on what they left.
func killed(r *rig.Rig, names ...string) (func() error, error) {
	var errs []error
	for _, name := range names {
		errs = append(errs, r.Kill(name))
	}
	return func() error {
		var errs []error
		for _, name := range names {
			errs = append(errs, r.Launch(name))
		}
		return errors.Join(errs...)
	}, errors.Join(errs...)
}

// cut is two sets of processes with something wrong between them.
func cut(r *rig.Rig, f proxy.Fault, a, b []string) (func() error, error) {
	return func() error { return r.Cut(proxy.Fault{}, a, b) }, r.Cut(f, a, b)
}

// within are the faults inside one location.
func within(l geo.Location) []fault {
	named := func(what string) string { return fmt.Sprintf("%s in %s", what, l) }
	apart := func(what string, f proxy.Fault) fault {
		return fault{named(what), func(r *rig.Rig, rng *rand.Rand) (func() error, error) {
			a := []string{one(rng, l)}
			return cut(r, f, a, rig.Others(a, rig.NodesOf(l)))
		}}
	}
	return []fault{
		{named("kill -9 of a node"), func(r *rig.Rig, rng *rand.Rand) (func() error, error) { return killed(r, one(rng, l)) }},
		{named("kill -9 of two nodes"), func(r *rig.Rig, rng *rand.Rand) (func() error, error) {
			return killed(r, rig.Others([]string{one(rng, l)}, rig.NodesOf(l))...)
		}},
		{named("SIGSTOP of a node"), func(r *rig.Rig, rng *rand.Rand) (func() error, error) {
			name := one(rng, l)
			return func() error { return r.Resume(name) }, r.Pause(name)
		}},
		apart("refused links of a node", proxy.Fault{Refuse: true}),
		apart("silent links of a node", proxy.Fault{HoldForth: true, HoldBack: true}),
		apart("a node whose messages are held", proxy.Fault{HoldForth: true}),
		apart("a node that receives nothing", proxy.Fault{HoldBack: true}),
		apart("slow links of a node", proxy.Fault{Delay: 100 * time.Millisecond}),
	}
}

// between are the faults between the locations, and those of the gateway.
func between() []fault {
	apart := func(what string, f proxy.Fault) fault {
		return fault{what + " between the locations", func(r *rig.Rig, _ *rand.Rand) (func() error, error) {
			return cut(r, f, rig.NodesOf(rig.North), rig.NodesOf(rig.South))
		}}
	}
	return []fault{
		apart("refused links", proxy.Fault{Refuse: true}),
		apart("silent links", proxy.Fault{HoldForth: true, HoldBack: true}),
		apart("links silent one way", proxy.Fault{HoldForth: true}),
		apart("slow links", proxy.Fault{Delay: 50 * time.Millisecond}),
		{"kill -9 of the gateway", func(r *rig.Rig, _ *rand.Rand) (func() error, error) { return killed(r, rig.Gateway) }},
		{"silent links of the gateway to a node", func(r *rig.Rig, rng *rand.Rand) (func() error, error) {
			return cut(r, proxy.Fault{HoldForth: true, HoldBack: true}, []string{rig.Gateway}, []string{one(rng, rig.North)})
		}},
	}
}

// logPlayed logs how often each fault was played.
func logPlayed(t *testing.T, players ...*player) {
	t.Helper()
	for _, p := range players {
		for name, n := range p.counts() {
			t.Logf("%d x %s", n, name)
		}
	}
}
