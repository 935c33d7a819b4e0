package node_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/change"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// closes takes a closed record of another location.
type closes struct{ c *change.Closed }

func (c closes) Evaluate(tx *ranges.Tx) error {
	tx.TakeClosed(c.c)
	return nil
}

// R13: what a process shows of a range's progress does not go back, nor does it become unknown, when the
// leader there steps down before the others have applied what it has.
func TestR13ProgressOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds(8) {
			progressOutlivesTheLeader(t, seed)
		}
	})
}

func progressOutlivesTheLeader(t *testing.T, seed uint64) {
	s := newStepped(t, seed)
	lead := s.whole()
	src := geo.SourceRange{Origin: "south", Range: testRange}
	var here []*Node
	for _, n := range s.nodes {
		here = append(here, n)
	}
	all := stamp.Over(Options{Location: "north", Peers: []geo.NodeID{1, 2, 3}, Clock: s.clock, Transport: s.net}, here...)
	shown := geo.Timestamp(0)
	look := func() geo.Timestamp {
		p, known := all.ProgressNow(testRange, src, "")
		require.True(t, known)
		require.GreaterOrEqual(t, p.Closed, shown)
		shown = p.Closed
		return p.Closed
	}
	lead.Submit(closes{&change.Closed{Origin: "south", Range: testRange, Full: true, T: 7}}, func(error) {})
	s.until("it is applied at the leader", func() bool { return look() == 7 })
	for a := range s.nodes {
		for b := range s.nodes {
			s.net.cut[[2]geo.NodeID{a, b}] = true
		}
	}
	s.until("it steps down", func() bool {
		look()
		return !lead.Leading()
	})
	clear(s.net.cut)
	s.until("a leader has applied the same", func() bool {
		look()
		r := s.leading()
		return r != nil && r.Machine.Progress(src, "").Closed == 7
	})
}
