package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// R21: whether an acknowledged write needs confirmed epochs depends on the gate before it in the log. A later gate, which
// the same pass may have applied before the answer was given, changes nothing: neither that of an account that gets a copy
// nor that of one whose copy is gone.
func TestWritesAreConfirmedByTheGateBeforeThem(t *testing.T) {
	lrs := change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RolePrimary, Open: true}
	numbered, leaves := lrs, lrs
	numbered.Numbered, leaves.Agreed = true, 1
	for _, c := range []struct {
		name          string
		before, after change.Gate
		fails         bool
	}{
		{"no copy", lrs, lrs, false},
		{"gets a copy", lrs, numbered, false},
		{"has a copy", numbered, numbered, true},
		{"copy is left", leaves, lrs, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Sim{log: newEventLog(nil), fences: rand.New(rand.NewPCG(1, 1))}
			l := &location{s: s, name: "north"}
			a := &account{name: "acct", home: l}
			h := newHistory(l, geo.Table)
			s.ops = []*op{{account: a, l: l, write: &write{}}}
			h.m.gate(a.name, c.before)
			h.tookOp(0, "p", 1, 1)
			h.m.gate(a.name, c.after)
			s.checkConfirmed(s.ops[0])
			if c.fails {
				require.ErrorIs(t, s.err, ErrUnconfirmed)
				l.reached, s.err = true, nil
				s.checkConfirmed(s.ops[0])
			}
			require.NoError(t, s.err)
		})
	}
}
