package node_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp"
	"antipode/stamp/kv"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// When a leader falls silent the first of its followers leads after one election timeout
// and a tick, no round is lost to split votes, and writes are acknowledged without waiting
// for the silent one again. Times are those of the test's clock, for every seed.
func TestTimeWithoutWrites(t *testing.T) {
	t.Parallel()
	const tick, electionTicks = 10 * time.Millisecond, 10
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				var gone *ranges.Range
				s.until("a leader", func() bool { gone = s.leading(); return gone != nil })
				opened := false
				gone.Submit(setGate{openGate}, func(err error) { opened = err == nil })
				s.until("an open gate", func() bool { return opened })
				for id, n := range s.nodes {
					if n.Range(testRange) == gone {
						s.paused[id] = 1 << 62
					}
				}
				s.net.deliver(len(s.net.way)) // A message that reaches one follower late would make its promise longer.
				began, acked := s.clock.Mono(), false
				s.until("a write", func() bool {
					for id := geo.NodeID(1); id <= 3; id++ {
						if r := s.nodes[id].Range(testRange); r != gone && r.Leading() {
							r.Submit(&increment{}, func(err error) { acked = acked || err == nil })
						}
					}
					return acked
				})
				require.Less(t, s.clock.Mono()-began, (electionTicks+8)*tick, "a second wait, for votes or for the silent replica, takes longer")
			})
		})
	}
}

// The first election of a stamp waits for no promise: however long an election timeout, a replica leads, for every seed.
func TestFirstElectionDoesNotWait(t *testing.T) {
	t.Parallel()
	const tick, electionTicks = 10 * time.Millisecond, 1000
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSteppedWith(t, seed, electionTicks)
				began := s.clock.Mono()
				s.until("a leader", func() bool { return s.leading() != nil })
				require.Less(t, s.clock.Mono()-began, electionTicks*tick/2)
			})
		})
	}
}

// A node that is left alone notices it: after two election timeouts without a leader it answers reads and
// writes as busy at once. It serves again when the others return.
func TestLeaderless(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				s.until("a leader", func() bool { return s.leading() != nil })
				alone := geo.NodeID(1 + seed%3)
				over := stamp.Over(Options{Location: "north", Peers: []geo.NodeID{1, 2, 3}, Clock: s.clock, Transport: s.net}, s.nodes[alone])
				s.until("word of it", func() bool { _, known := over.LeaderNode(testRange); return known })
				require.False(t, over.Leaderless(testRange))
				for id := range s.nodes {
					if id != alone {
						s.paused[id] = 1 << 62
						delete(s.net.nodes, id)
					}
				}
				s.until("no leader", func() bool { _, known := over.LeaderNode(testRange); return !known })
				require.False(t, over.Leaderless(testRange), "an election may be under way")
				s.clock.Advance(2 * time.Second)
				s.until("no hope", func() bool { return over.Leaderless(testRange) })
				require.ErrorIs(t, over.Read(t.Context(), testRange, nil), kv.ErrBusy)
				require.ErrorIs(t, over.Submit(t.Context(), testRange, &increment{}), kv.ErrBusy)
				for id, n := range s.nodes {
					if id != alone {
						s.net.nodes[id], s.paused[id] = n, 0
					}
				}
				s.until("a leader again", func() bool { _, known := over.LeaderNode(testRange); return known })
				require.False(t, over.Leaderless(testRange))
			})
		})
	}
}

// A leader that is left alone answers new commands as busy, also while the most groups are in flight.
// Only the outcome of those groups is unknown (R2).
func TestAloneWithGroupsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 1)
		var lead *ranges.Range
		s.until("a leader", func() bool { lead = s.leading(); return lead != nil })
		opened := false
		lead.Submit(setGate{openGate}, func(err error) { opened = err == nil })
		s.until("an open gate", func() bool { return opened })
		for id, n := range s.nodes {
			if n.Range(testRange) != lead {
				s.paused[id] = 1 << 62
				delete(s.net.nodes, id)
			}
		}
		unknown, busy := 0, 0
		s.until("a refusal", func() bool {
			lead.Submit(&increment{}, func(err error) {
				require.Error(t, err)
				switch {
				case errors.Is(err, kv.ErrUnknown):
					unknown++
				case errors.Is(err, kv.ErrBusy):
					busy++
				}
			})
			return busy > 0
		})
		require.True(t, lead.Leading(), "it knows before it steps down")
		require.Zero(t, unknown)
		s.until("an end", func() bool { return !lead.Leading() })
		require.Positive(t, unknown)
	})
}
