package node_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/membership"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// stopping is a node's clock. The node can be made to stand still right after it read it.
type stopping struct {
	*clock.Manual
	// stop runs once, after the next reading; nil for not at all.
	stop func()
	// look runs before each reading of the wall clock until it returns true; nil for not at all.
	look func() bool
	// reads counts the readings.
	reads int
	// off is how far the wall clock is ahead.
	off time.Duration
}

// Now implements clock.Clock.
func (c *stopping) Now() time.Time {
	if c.look != nil && c.look() {
		c.look = nil
	}
	return c.Manual.Now().Add(c.off)
}

// Mono implements clock.Clock.
func (c *stopping) Mono() time.Duration {
	now := c.Manual.Mono()
	c.reads++
	if stop := c.stop; stop != nil {
		c.stop = nil
		stop()
	}
	return now
}

// seeds is n, or two with -short: a seed opens three nodes, which is slow under the race
// detector.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return min(n, 2)
	}
	return n
}

// countError is a refusal, as of a failed condition, which names the counter that it saw.
type countError struct{ saw uint64 }

func (e countError) Error() string { return fmt.Sprintf("the counter is %d", e.saw) }

// refusal is a command that changes nothing.
type refusal struct{}

func (refusal) Evaluate(tx *ranges.Tx) error {
	v, _, err := tx.Get(counterKey())
	if err != nil {
		return err
	}
	return countError{counterOf(v)}
}

// R5: a leader with a lease stands still inside a scheduler pass, right after the pass read
// the clock, until another leader has acknowledged a write. When it goes on, neither a
// refusal nor a read that came meanwhile is answered from what it holds: the lease that the
// pass began with has ended.
func TestR5PauseInsidePass(t *testing.T) {
	t.Parallel()
	for seed := range seeds(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				var old *ranges.Range
				s.until("a leader", func() bool { old = s.leading(); return old != nil })
				id := old.Leader()
				opened := false
				old.Submit(setGate{openGate}, func(err error) { opened = err == nil })
				s.until("an open gate", func() bool { return opened })
				s.until("a lease", func() bool {
					s.read(id)
					return old.Replica().Lease() > s.clock.Mono()+20*time.Millisecond
				})
				var answer, read error
				s.clocks[id].stop = func() {
					s.paused[id] = 1 << 62
					s.acknowledgeElsewhere(old)
					old.Submit(refusal{}, func(err error) { answer = err })
					old.Confirm(func(err error) {
						read = err
						if err == nil {
							v, _, err := old.State().Get(counterKey())
							require.NoError(t, err)
							require.NotZero(t, counterOf(v), "a stale read")
						}
					})
					s.paused[id] = 0
				}
				_, err := s.nodes[id].Pass()
				require.NoError(t, err)
				s.until("answers", func() bool { return answer != nil && read != nil })
				require.ErrorIs(t, read, ranges.ErrNotLeader)
				var seen countError
				require.False(t, errors.As(answer, &seen), "a refusal on a stale state: %v", answer)
				require.ErrorIs(t, answer, ranges.ErrNotLeader)
			})
		})
	}
}

// R5: a refusal waits behind a group that has committed and that one in-sync replica has not
// acknowledged yet. Its acknowledgement does not show who leads now: it was sent before
// another leader was elected and acknowledged a write, while this one stood still and before
// it evaluated the refusal. So the answer needs a lease all the same.
func TestR5RefusalBehindAGroup(t *testing.T) {
	t.Parallel()
	for seed := range seeds(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				old := s.whole()
				id := old.Leader()
				slow := id%3 + 1
				s.net.cut[[2]geo.NodeID{slow, id}] = true
				before := old.Machine.AppliedState().Index
				acked := false
				old.Submit(&increment{}, func(err error) { acked = err == nil })
				s.until("a commit", func() bool { return s.nodes[slow].Range(testRange).Machine.AppliedState().Index > before })
				require.False(t, acked)
				for _, peer := range []geo.NodeID{slow, slow%3 + 1} {
					s.net.cut[[2]geo.NodeID{peer, id}], s.net.cut[[2]geo.NodeID{id, peer}] = true, true
				}
				_, term := old.Replica().Leader()
				_, last := old.Replica().Match(old.Replica().ID())
				var answer error
				s.clocks[id].stop = func() {
					s.paused[id] = 1 << 62
					s.acknowledgeElsewhere(old)
					old.Submit(refusal{}, func(err error) { answer = err })
					s.paused[id] = 0
				}
				_, err := s.nodes[id].Pass()
				require.NoError(t, err)
				require.False(t, acked, "it waits for the slow replica")
				typ, from, to := pb.MsgAppResp, uint64(slow), uint64(id)
				late := &pb.Message{Type: &typ, From: &from, To: &to, Term: &term, Index: &last}
				s.nodes[id].Receive([]Envelope{{Range: testRange, From: slow, Message: late}})
				_, err = s.nodes[id].Pass()
				require.NoError(t, err)
				require.True(t, acked)
				clear(s.net.cut)
				s.until("an answer", func() bool { return answer != nil })
				require.ErrorIs(t, answer, ranges.ErrNotLeader)
			})
		})
	}
}

// acknowledgeElsewhere lets the others elect another leader than old and acknowledge an
// increment there.
func (s *stepped) acknowledgeElsewhere(old *ranges.Range) {
	acked := false
	s.until("a write elsewhere", func() bool {
		for id := geo.NodeID(1); id <= 3; id++ {
			if r := s.nodes[id].Range(testRange); r != old && r.Leading() {
				r.Submit(&increment{}, func(err error) { acked = acked || err == nil })
				break
			}
		}
		return acked
	})
}

// A leader that is dead is missed as soon as ever by a process that stood still for an hour
// before: the silence of the predecessor is not counted from a time that the running time
// has yet to reach.
func TestDeadLeaderAfterAPause(t *testing.T) {
	t.Parallel()
	for seed := range seeds(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				s.whole()
				s.clock.Advance(time.Hour)
				old := s.whole()
				s.paused[old.Leader()] = 1 << 62
				died := s.clock.Mono()
				s.acknowledgeElsewhere(old)
				require.Less(t, s.clock.Mono()-died, 2*time.Second)
			})
		})
	}
}

// quietly fails if a leader was elected, or a replica left the in-sync set, since the given
// event.
func (s *stepped) quietly(from int) {
	s.t.Helper()
	for _, e := range s.events[from:] {
		require.NotContains(s.t, []EventKind{LeaderElected, LeftInSync}, e.Kind, "range %d, node %d: %s", e.Range, e.Node, e.Reason)
	}
}

// whole waits for a leader with three in sync that takes writes, and for the leaders of the
// other ranges.
func (s *stepped) whole() *ranges.Range {
	var lead *ranges.Range
	s.until("a leader", func() bool { lead = s.leading(); return lead != nil })
	opened := false
	lead.Submit(setGate{openGate}, func(err error) { opened = err == nil })
	s.until("an open gate", func() bool { return opened })
	s.until("leaders", func() bool {
		led := 0
		for _, n := range s.nodes {
			for _, r := range n.Ranges() {
				if r.Leading() && r.InSync() == 3 && s.elected(r) {
					led++
				}
			}
		}
		return led == len(s.nodes[1].Ranges())
	})
	return lead
}

// A node does not take its own pause for the silence of others. All nodes pause together, as those of one
// process do, for longer than any timeout and with a write on its way. No leader changes, no replica
// leaves the in-sync set, and the write is acknowledged, whichever node continues first.
func TestPauseOfAllIsNobodysSilence(t *testing.T) {
	t.Parallel()
	for seed := range seeds(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				lead := s.whole()
				from := len(s.events)
				for range 5 {
					acked := false
					lead.Submit(&increment{}, func(err error) { acked = err == nil })
					for range s.rng.IntN(12) { // It gets as far as it gets.
						s.step()
					}
					s.clock.Advance(time.Duration(s.rng.IntN(20_000)) * time.Millisecond)
					// The leader goes on alone for a moment: the others' answers wait in the sockets.
					for range s.rng.IntN(3) {
						_, err := s.nodes[lead.Leader()].Pass()
						require.NoError(t, err)
					}
					s.until("the acknowledgement", func() bool { return acked })
				}
				s.quietly(from)
				require.Equal(t, 3, lead.InSync())
			})
		})
	}
}

// Nodes whose passes are all late, three ticks apart instead of one, measure the silence of others in
// the time in which those could answer.
func TestSlowThroughout(t *testing.T) {
	t.Parallel()
	for seed := range seeds(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, seed)
				lead := s.whole()
				from, acked := len(s.events), 0
				for range 300 {
					lead.Submit(&increment{}, func(err error) {
						if err == nil {
							acked++
						}
					})
					s.clock.Advance(30 * time.Millisecond)
					s.net.deliver(1 << 20)
					for _, id := range s.rng.Perm(3) {
						_, err := s.nodes[geo.NodeID(id+1)].Pass()
						require.NoError(t, err)
					}
				}
				s.quietly(from)
				require.Greater(t, acked, 200)
			})
		})
	}
}

// One node is paused: it takes no other one for silent when it continues. The others, which ran,
// continue without it.
func TestPauseOfOneIsNobodysSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 3)
		lead := s.whole()
		id := lead.Leader()
		s.paused[id] = 1 << 62
		s.acknowledgeElsewhere(lead)
		from := len(s.events)
		s.paused[id] = 0
		s.until("it follows", func() bool { return !lead.Leading() && lead.Leader() != 0 })
		for _, e := range s.events[from:] {
			require.NotEqual(t, LeftInSync, e.Kind, "reported by the paused node: %+v", e)
		}
	})
}

// A leader hint holds for an election timeout of running time.
func TestPauseKeepsLeaderHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 1)
		s.whole()
		n := s.nodes[1]
		n.Receive([]Envelope{{Range: 99, From: 3, Report: membership.LeaderHint{Term: 1}}})
		_, err := n.Pass()
		require.NoError(t, err)
		require.Equal(t, geo.NodeID(3), n.LeaderHint(99))
		s.clock.Advance(time.Hour)
		_, err = n.Pass()
		require.NoError(t, err)
		require.Equal(t, geo.NodeID(3), n.LeaderHint(99), "it could receive no other hint")
		for range 12 {
			s.clock.Advance(10 * time.Millisecond)
			_, err := n.Pass()
			require.NoError(t, err)
		}
		require.Zero(t, n.LeaderHint(99), "it ran, and nobody spoke for an election timeout")
	})
}

// elected reports whether the election of the leader of a range was reported.
func (s *stepped) elected(r *ranges.Range) bool {
	return slices.ContainsFunc(s.events, func(e Event) bool {
		return e.Kind == LeaderElected && e.Range == r.ID() && e.Node == r.Leader()
	})
}

// A pause right after a leader was lost does not make a range leaderless at once.
func TestPauseIsNotLeaderless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 2)
		s.whole()
		over := stamp.Over(Options{Location: "north", Peers: []geo.NodeID{1, 2, 3}, Clock: s.clock, Transport: s.net}, s.nodes[1])
		for _, id := range []geo.NodeID{2, 3} {
			s.paused[id] = 1 << 62
			delete(s.net.nodes, id)
		}
		s.until("no leader", func() bool { _, known := over.LeaderNode(testRange); return !known })
		s.clock.Advance(time.Hour)
		s.step()
		require.False(t, over.Leaderless(testRange))
		s.until("no hope", func() bool { return over.Leaderless(testRange) })
	})
}

// The suspend-counting clock costs a system call each time: a pass reads it once, and once more to
// compare the wall clock if something is written in it (R6); a read under a lease once, after it.
func TestReadingsOfTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 4)
		lead := s.whole()
		id := lead.Leader()
		s.until("a lease", func() bool {
			s.read(id)
			return lead.Replica().Lease() > s.clock.Mono()+50*time.Millisecond
		})
		s.until("silence", func() bool { // Nobody waits for the lease any more.
			s.clocks[id].reads = 0
			_, err := s.nodes[id].Pass()
			require.NoError(t, err)
			return s.clocks[id].reads == 1
		})
		s.clocks[id].reads = 0
		for range 100 {
			lead.Submit(&increment{}, func(error) {})
		}
		require.Zero(t, s.clocks[id].reads, "of a write")
		_, err := s.nodes[id].Pass()
		require.NoError(t, err)
		require.Equal(t, 2, s.clocks[id].reads, "of a pass with writes")
		for range 100 {
			require.NoError(t, lead.Read(t.Context(), func(ranges.State) error { return nil }))
		}
		require.Equal(t, 102, s.clocks[id].reads, "of reads")
	})
}

// R5: where a round takes longer than a lease, as on a machine that starves, reads and
// refusals rest on a round that began after them, and are served.
func TestR5RoundsLongerThanALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 5)
		lead := s.whole()
		began := s.clock.Mono()
		// Each message takes four ticks, a round more than eight, and a lease lasts seven.
		const delay, step = 4, 10 * time.Millisecond
		var sent []int
		arrived, served, refused := 0, 0, 0
		for range 400 {
			lead.Confirm(func(err error) {
				if err == nil {
					served++
					require.Zero(t, max(0, lead.Replica().Lease()-s.clock.Mono()), "a lease is not what this is about")
				}
			})
			lead.Submit(refusal{}, func(err error) {
				if errors.As(err, new(countError)) {
					refused++
				}
			})
			s.clock.Advance(step)
			for _, id := range s.rng.Perm(3) {
				_, err := s.nodes[geo.NodeID(id+1)].Pass()
				require.NoError(t, err)
			}
			sent = append(sent, arrived+len(s.net.way))
			if len(sent) > delay {
				n := sent[len(sent)-1-delay] - arrived
				s.net.deliver(n)
				arrived += n
			}
		}
		t.Logf("%d reads and %d refusals in %v", served, refused, s.clock.Mono()-began)
		require.Greater(t, served, 300)
		require.Greater(t, refused, 300)
	})
}
