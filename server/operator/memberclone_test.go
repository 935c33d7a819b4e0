package operator

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
)

func (p *process) clone(name geo.Account, drop bool) (wire.Clone, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.clones {
		if c.Account == name {
			if drop {
				p.clones = append(p.clones[:i:i], p.clones[i+1:]...)
			}
			return c, nil
		}
	}
	return wire.Clone{}, &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoClone, Message: "no clone"}
}

func (p *process) openClone(_ context.Context, name geo.Account, q wire.OpenClone) (wire.Clone, error) {
	if p.opens != nil {
		p.opens()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, "open")
	if p.fail != nil {
		return wire.Clone{}, p.fail
	}
	c := wire.Clone{Account: name, Node: wire.NodeName("north", p.id), TookSeconds: q.ForSeconds}
	p.clones = append(p.clones, c)
	return c, nil
}

// A clone is opened in the process that was asked, or in one that has every range. Every process shows it, refuses a
// second one, and drops it.
func TestCloneOfTheLocation(t *testing.T) {
	leader := geo.NodeID(1)
	all, views := three(&leader)
	ctx := t.Context()
	all[1].fail = &wire.Error{Status: http.StatusConflict, Code: wire.CodeNoCloneHost, Message: "lacks a range"}
	all[2].fail = all[1].fail
	c, err := ask(ctx, Location(views[1]), &openClone, wire.At{Account: "acct"}, wire.OpenClone{ForSeconds: 60})
	require.NoError(t, err)
	require.Equal(t, wire.Clone{Account: "acct", Node: "north-3", TookSeconds: 60}, c)
	for _, v := range views {
		shown, err := asks(ctx, v, &showClone, wire.At{Account: "acct"})
		require.NoError(t, err)
		require.Equal(t, c, shown)
		_, err = ask(ctx, Location(v), &openClone, wire.At{Account: "acct"}, wire.OpenClone{})
		require.ErrorContains(t, err, "has a clone already, on north-3")
	}
	dropped, err := asks(ctx, views[2], &dropClone, wire.At{Account: "acct"})
	require.NoError(t, err)
	require.Equal(t, c, dropped)
	require.Empty(t, all[3].clones)
	for _, v := range views {
		_, err = asks(ctx, v, &dropClone, wire.At{Account: "acct"})
		require.ErrorContains(t, err, "no clone")
	}

	all[3].away = true
	_, err = ask(ctx, Location(views[1]), &openClone, wire.At{Account: "acct"}, wire.OpenClone{})
	require.ErrorContains(t, err, "lacks a range")
	all[3].away = false
	all[3].fail = &wire.Error{Status: http.StatusConflict, Code: wire.CodeCloneRefused, Message: "an operation is under way"}
	_, err = ask(ctx, Location(views[1]), &openClone, wire.At{Account: "acct"}, wire.OpenClone{})
	require.ErrorContains(t, err, "an operation is under way")
}

// Of calls at once, at one process or at several, which reach each other late, one opens a clone, and the others are refused.
// One that comes after a clone was dropped, or after a call that failed, opens another one.
func TestOneCloneOfCallsAtOnce(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random, leader := rand.New(rand.NewPCG(seed, 0)), geo.NodeID(1)
			var mu sync.Mutex
			below := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			pause := func() { time.Sleep(time.Duration(below(50)) * time.Millisecond) }
			all, views := three(&leader)
			for _, p := range all {
				p.late, p.opens = pause, func() { pause(); pause(); pause() }
			}
			all[1].fail = &wire.Error{Status: http.StatusConflict, Code: wire.CodeNoCloneHost, Message: "lacks a range"}
			for range 2 {
				var calls sync.WaitGroup
				var errs [3]error
				for i := range errs {
					at, pauses := views[geo.NodeID(1+below(3))], 1+below(12)
					calls.Go(func() {
						for range pauses { // Some come when the clone of another one is just open.
							pause()
						}
						_, errs[i] = ask(t.Context(), Location(at), &openClone, wire.At{Account: "acct"}, wire.OpenClone{})
					})
				}
				calls.Wait()
				opened := 0
				for _, err := range errs {
					var said *wire.Error
					if err == nil {
						opened++
						continue
					}
					require.ErrorAs(t, err, &said)
					require.Equal(t, wire.CodeCloneRefused, said.Code)
				}
				require.Equal(t, 1, opened, "seed %d: %v", seed, errs)
				require.Equal(t, 1, len(all[1].clones)+len(all[2].clones)+len(all[3].clones), "seed %d", seed)
				_, err := asks(t.Context(), views[1], &dropClone, wire.At{Account: "acct"})
				require.NoError(t, err)
			}
		})
	}
}

// Two clones of two calls at once, at processes that did not reach each other, are dropped both.
func TestDropCloneOfTwoNodes(t *testing.T) {
	leader := geo.NodeID(1)
	all, views := three(&leader)
	for _, id := range []geo.NodeID{1, 3} {
		all[id].clones = []wire.Clone{{Account: "acct", Node: wire.NodeName("north", id)}, {Account: "other", Node: wire.NodeName("north", id)}}
	}
	_, err := asks(t.Context(), views[2], &dropClone, wire.At{Account: "acct"})
	require.NoError(t, err)
	for _, id := range []geo.NodeID{1, 3} {
		require.Len(t, all[id].clones, 1)
		require.Equal(t, geo.Account("other"), all[id].clones[0].Account)
	}
}

// A process that hangs may have a clone; one that is not there has none any more.
func TestClonesOfASlowProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := geo.NodeID(1)
		all, views := three(&leader)
		all[2].clones = []wire.Clone{{Account: "acct", Node: "north-2"}}
		list, sure := views[1].ClonesElsewhere(t.Context())
		require.True(t, sure)
		require.Len(t, list, 1)
		all[3].hangs = true
		list, sure = views[1].ClonesElsewhere(t.Context())
		require.False(t, sure)
		require.Len(t, list, 1)
		all[3].hangs, all[3].away = false, true
		_, sure = views[1].ClonesElsewhere(t.Context())
		require.True(t, sure)
	})
}
