package membership

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/replica"
)

// The scenarios show R4 by a line that is not there. Without one of the rules of the machine at
// node 3 the same steps have that line, and with all of them they do not.
func TestBrokenPromiseIsSeen(t *testing.T) {
	comeBackEmpty := func(g *group) {
		n := g.node(3)
		n.crash()
		n.empty()
		n.start()
		g.ticks(9)
	}
	comeBackDamaged := func(g *group) {
		n := g.node(3)
		n.crash()
		n.disk.damaged = true
		n.breakPromises()
		n.start()
		g.ticks(1)
	}
	// It comes back damaged, is rebuilt, and then its disk is that of when it was lost.
	setBack := func(g *group) {
		comeBackDamaged(g)
		n := g.node(3)
		copied := n.disk
		g.ticks(9)
		n.crash()
		n.breakPromises()
		copied.acted, copied.broken = n.disk.acted, n.disk.broken
		n.disk = copied
		n.start()
		g.ticks(9)
	}
	// Its disk is that of when its old data was being removed.
	setBackRebuilding := func(g *group) {
		n := g.node(3)
		n.crash()
		n.breakPromises()
		n.disk.id.Phase = Rebuilding
		n.start()
		g.ticks(9)
	}
	firstIsLast := func(e Event) Event {
		if r, ok := e.(Received); ok {
			if last, ok := r.Message.(LastID); ok {
				last.Replica = replica.FirstID(3)
				return Received{From: r.From, Message: last}
			}
		}
		return e
	}
	for name, c := range map[string]struct {
		steps  []func(*group)
		bypass func(Event) Event
		knows  bool   // instead of bypass: it goes by what it knew in an earlier life
		acts   string // the id under which it acts without the rule
	}{
		"an empty folder joins no range that a peer knows": {
			steps: []func(*group){comeBackEmpty}, acts: "3",
			bypass: func(e Event) Event {
				if r, ok := e.(Received); ok {
					if a, ok := r.Message.(HelloAnswer); ok {
						a.Known = false
						return Received{From: r.From, Message: a}
					}
				}
				return e
			},
		},
		"a new folder waits for the last id that was given": {
			steps: []func(*group){comeBackEmpty, comeBackEmpty}, acts: "4",
			bypass: firstIsLast,
		},
		"a lost replica waits for it too": {
			steps: []func(*group){setBack}, acts: "4",
			bypass: firstIsLast,
		},
		"so does one that was being rebuilt": {
			steps: []func(*group){setBackRebuilding}, acts: "3", knows: true,
		},
		"a damaged store is not trusted": {
			steps: []func(*group){comeBackDamaged}, acts: "3",
			bypass: func(e Event) Event {
				if o, ok := e.(Opened); ok && errors.Is(o.Lost, errQuarantined) {
					o.Lost = nil
					return o
				}
				return e
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(bypass func(Event) Event, knows bool) string {
				g := newGroup(three...)
				n := g.node(3)
				n.bypass = func(e Event) Event {
					n.m.lastKnown = n.m.lastKnown || knows
					if bypass == nil {
						return e
					}
					return bypass(e)
				}
				g.begin(g.node(1))
				for _, step := range c.steps {
					step(g)
				}
				return g.log.String()
			}
			require.Contains(t, play(c.bypass, c.knows), "3 "+breaksR4+": it acts under "+c.acts+", whose promises it lost")
			require.NotContains(t, play(nil, false), breaksR4)
		})
	}
}
