package feature

import (
	"fmt"
	"sync/atomic"
)

// Gate has the levels that hold at a node: those of the catalog as far as it is applied there. They only rise.
// Methods may be called concurrently.
type Gate struct {
	known         Level
	floor, active atomic.Uint32
}

// NewGate returns the gate of a program that knows the levels up to known.
func NewGate(known Level) *Gate {
	g := &Gate{known: known}
	g.floor.Store(uint32(Base))
	g.active.Store(uint32(Base))
	return g
}

// Known is the highest level that the program knows.
func (g *Gate) Known() Level { return g.known }

// Floor is what a program has to know to serve here.
func (g *Gate) Floor() Level { return Level(g.floor.Load()) }

// Active is the highest level at which this location may write.
func (g *Gate) Active() Level { return Level(g.active.Load()) }

// Allows reports whether something of a level may be written.
func (g *Gate) Allows(l Level) bool { return l <= g.Active() }

// Check returns why a program may not serve where a level is the floor; nil if it may.
func (g *Gate) Check(floor Level) error {
	if floor <= g.known {
		return nil
	}
	return fmt.Errorf("%w at feature %s, this program knows %s at most: %w", ErrFloor, floor, g.known, ErrLater)
}

// Raise takes over the levels that were committed.
func (g *Gate) Raise(floor, active Level) {
	raise(&g.floor, floor)
	raise(&g.active, active)
}

func raise(v *atomic.Uint32, to Level) {
	for {
		have := v.Load()
		if have >= uint32(to) || v.CompareAndSwap(have, uint32(to)) {
			return
		}
	}
}
