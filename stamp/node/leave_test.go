package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/kv"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// leaderOf returns the node that leads, as all three know it; 0 while they do not agree.
func (s *stepped) leaderOf() geo.NodeID {
	lead := s.nodes[1].Range(testRange).Leader()
	for id := geo.NodeID(2); id <= 3; id++ {
		if s.nodes[id].Range(testRange).Leader() != lead {
			return 0
		}
	}
	if lead != 0 && !s.nodes[lead].Range(testRange).Leading() {
		return 0
	}
	return lead
}

// R1, R2: a leader whose node is going to stop answers what it has proposed, proposes nothing more, and another in-sync
// replica leads well before an election timeout has passed. What waited was refused without effect.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestR2LeavingLeaderStepsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds(8) {
			s := newSteppedWith(t, 200+seed, 50)
			lead := s.whole()
			was := lead.Leader()
			unknown, refused, early := 0, 0, 0
			answer := func(err error) {
				switch {
				case errors.Is(err, kv.ErrUnknown):
					unknown++
				case errors.Is(err, ranges.ErrNotLeader):
					refused++
				default:
					require.NoError(t, err)
				}
			}
			for range 3000 { // 1.5 s: a replica that has just started takes no part in elections.
				s.writeTimed(func(geo.NodeID) {}, answer)
				s.step()
			}
			began := s.clock.Mono()
			lead.Leave()
			require.True(t, lead.SteppingDown())
			slow := was%3 + 1
			s.until("another leader", func() bool {
				if lead.Leading() {
					ran := s.clock.Mono() - began
					lead.Submit(&increment{}, func(err error) { // As the requests that are here already.
						require.False(t, ran > 120*time.Millisecond && err == nil, "nothing more is proposed")
						if ran > 50*time.Millisecond && ran < 90*time.Millisecond && err == nil {
							early++
						}
						answer(err)
					})
				}
				if ran := s.clock.Mono() - began; ran > 80*time.Millisecond && ran < 90*time.Millisecond {
					s.paused[slow] = began + 150*time.Millisecond // What was proposed is committed, but not yet answered.
				}
				return s.leaderOf() != 0 && s.leaderOf() != was
			})
			took := s.clock.Mono() - began
			require.Less(t, took, 400*time.Millisecond, "an election timeout is 500 ms")
			require.Zero(t, unknown, "all that was proposed is answered")
			require.Positive(t, refused, "and commands that were held are refused")
			require.Positive(t, early, "those that came at once are not")
			require.False(t, lead.SteppingDown())
			acked := false
			s.until("a write elsewhere", func() bool {
				s.writeTimed(func(id geo.NodeID) { acked = id != was }, answer)
				return acked
			})
		}
	})
}

// A replica that leaves does not campaign, and refuses the leadership of another one that leaves, which asks the next one.
// Where nobody takes it, the leader is stuck and goes on to take writes.
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestLeavingReplicaLeadsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 300)
		lead := s.whole()
		was := lead.Leader()
		other, third := was%3+1, (was+1)%3+1
		s.nodes[other].Range(testRange).Leave()
		lead.Leave()
		s.until("the third", func() bool { return s.leaderOf() == third })
		s.nodes[third].Range(testRange).Leave()
		s.until("nobody to ask", s.nodes[third].Range(testRange).Stuck)
		require.False(t, s.nodes[third].Range(testRange).SteppingDown())
		acked := false
		s.until("a write at the third", func() bool {
			s.writeTimed(func(id geo.NodeID) { acked = id == third }, func(error) {})
			return acked
		})
		s.paused[third] = 1 << 62
		delete(s.net.nodes, third)
		for range 20_000 { // 10 s
			s.step()
			require.False(t, s.nodes[was].Range(testRange).Leading() || s.nodes[other].Range(testRange).Leading())
		}
		s.net.nodes[third], s.paused[third] = s.nodes[third], 0
	})
}

// A transfer whose message is lost costs an election timeout, and the leader asks the other one. No lease holds in the term
// meanwhile (R5).
//
// Capability: Operation: SIGTERM drains a node and a gateway.
func TestR5LeavingLeaderWhoseMessageIsLost(t *testing.T) {
	s := newStepped(t, 301)
	lead := s.whole()
	was := lead.Leader()
	var asked []uint64
	s.net.lose = func(e Envelope) bool {
		if e.Message.GetType() != pb.MsgTimeoutNow {
			return false
		}
		asked = append(asked, e.Message.GetTo())
		return len(asked) == 1
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // A read that needs a round fails.
	byLease := func() error { return lead.Read(ended, func(ranges.State) error { return nil }) }
	lead.Leave()
	held := false
	s.until("the first question", func() bool {
		if !lead.Replica().Transferring() {
			held = byLease() == nil
		}
		return lead.Replica().Transferring()
	})
	require.True(t, held)
	require.Error(t, byLease(), "from the question on no read is answered by the lease that stood until then")
	s.until("its message", func() bool { return len(asked) == 1 })
	at := s.clock.Mono()
	for lead.Leading() && len(asked) == 1 {
		require.Zero(t, lead.Replica().Lease(), "no lease in a term in which another was asked to lead")
		s.step()
	}
	s.until("another leader", func() bool { return s.leaderOf() != 0 && s.leaderOf() != was })
	require.Less(t, s.clock.Mono()-at, 400*time.Millisecond, "an election timeout, which a starved step stretches, and a round")
	require.Len(t, slices.Compact(slices.Clone(asked)), 2, "the other one is asked")
}

// R5: while leaders leave, are paused and cut off, and messages are lost, no read is stale and no acknowledged increment is
// lost: each read sees at least what was acknowledged before it.
func TestR5LeavingUnderFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		moved := 0
		for seed := range seeds(48) {
			s := newStepped(t, 400+seed)
			s.whole()
			s.net.calm = false
			leaving := 0
			for range 5_000 {
				s.step()
				switch s.rng.IntN(100) {
				case 0, 1, 2, 3:
					s.writeTimed(func(geo.NodeID) {}, func(error) {})
				case 4, 5, 6, 7, 8, 9:
					s.read(geo.NodeID(1 + s.rng.IntN(3)))
				case 10:
					s.disturb()
				case 11:
					if r := s.leading(); r != nil && leaving < 2 && !r.Leaving() {
						leaving++
						r.Leave()
					}
				}
			}
			for _, e := range s.events {
				if e.Kind == LeaderTransferred {
					moved++
				}
			}
		}
		fmt.Printf("%d transfers\n", moved)
		require.Positive(t, moved)
	})
}

// A replica that came into the in-sync set less than an election timeout ago may have restarted, and would refuse to lead:
// of two that are in sync the other one is asked, whichever is further.
func TestLeavingLeaderAsksTheSettled(t *testing.T) {
	s := newStepped(t, 302)
	lead := s.whole()
	was := lead.Leader()
	for range 1000 { // 0.5 s
		s.writeTimed(func(geo.NodeID) {}, func(error) {})
		s.step()
	}
	for _, fresh := range []geo.NodeID{was%3 + 1, (was+1)%3 + 1} {
		s.paused[fresh] = s.clock.Mono() + 200*time.Millisecond
		for _, in := range []bool{false, true} {
			s.until("out of sync, and back", func() bool {
				s.writeTimed(func(geo.NodeID) {}, func(error) {})
				return slices.Contains(lead.Replica().InSyncNodes(), fresh) == in
			})
		}
		require.Equal(t, 6-was-fresh, lead.Replica().Heir([]geo.NodeID{1, 2, 3}), "fresh: %d", fresh)
		for range 1000 {
			s.step()
		}
	}
}

// A leader that is stuck goes on to take writes, and asks again now and then, holding commands for little of the time: because
// its node is going to stop, although its clock's rule (R6) would have it leave, too.
func TestStuckLeaderAsksNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteppedWith(t, 303, 50)
		lead := s.whole()
		was := lead.Leader()
		for id, n := range s.nodes {
			if id != was {
				n.Range(testRange).Leave()
			}
		}
		lead.Leave()
		s.until("nobody to ask", lead.Stuck)
		const watched = 35 * time.Second
		began, events, acked, unknown, held := s.clock.Mono(), len(s.events), 0, 0, time.Duration(0)
		for s.clock.Mono()-began < watched {
			s.writeTimed(func(geo.NodeID) { acked++ }, func(err error) {
				if errors.Is(err, kv.ErrUnknown) {
					unknown++
				}
			})
			before := s.clock.Mono()
			if s.step(); lead.Replica().Transferring() {
				held += s.clock.Mono() - before
			}
		}
		asked := 0
		for _, e := range s.events[events:] {
			if e.Kind == LeaderTransferred && e.Range == testRange {
				require.Contains(t, e.Reason, "is going to stop")
				asked++
			}
		}
		require.Equal(t, 6, asked, "three rounds of two")
		require.Less(t, held, watched/5)
		require.Positive(t, acked)
		require.Zero(t, unknown)
		require.True(t, lead.Leading())
		require.True(t, lead.Stuck())
	})
}

// A leader that is stuck asks a replica that comes into the in-sync set at once, however short ago others were asked in vain,
// and after what it proposed is answered.
func TestStuckLeaderAsksWhoComesIntoSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds(8) {
			s := newSteppedWith(t, 500+seed, 50)
			lead := s.whole()
			was := lead.Leader()
			other, third := was%3+1, (was+1)%3+1
			unknown := 0
			write := func() {
				s.writeTimed(func(geo.NodeID) {}, func(err error) {
					if errors.Is(err, kv.ErrUnknown) {
						unknown++
					}
				})
			}
			inSync := func() bool { return slices.Contains(lead.Replica().InSyncNodes(), third) }
			s.paused[third] = 1 << 62
			s.until("it is out of sync", func() bool { write(); return !inSync() })
			s.nodes[other].Range(testRange).Leave()
			lead.Leave()
			s.until("nobody to ask", lead.Stuck)
			for range 1000 { // 0.5 s
				write()
				s.step()
			}
			require.True(t, lead.Leading())
			s.paused[third] = 0
			s.until("it is in sync", func() bool { write(); return inSync() })
			at := s.clock.Mono()
			s.until("it leads", func() bool { write(); return s.leaderOf() == third })
			require.Less(t, s.clock.Mono()-at, 2*time.Second)
			require.Zero(t, unknown)
		}
	})
}

// What is in flight is waited for, but not for ever: a leader whose followers do not answer its entries asks one of them
// leaveAfter and leaveMax after it began to leave, and the outcome of what it proposed is unknown.
func TestLeavingLeaderWaitsForWhatIsInFlightForAWhile(t *testing.T) {
	// A replica is out of sync after 5 s, and an election timeout is a second.
	s := newSteppedWith(t, 306, 100, func(o *Options) { o.InSyncTimeout = 5 * time.Second })
	lead := s.whole()
	was := lead.Leader()
	for range 4000 { // 2 s
		s.step()
	}
	s.net.lose = func(e Envelope) bool {
		return e.Message.GetType() == pb.MsgAppResp && geo.NodeID(e.Message.GetTo()) == was
	}
	answered, evaluated := false, &increment{}
	lead.Submit(evaluated, func(error) { answered = true })
	s.until("it is in flight", func() bool { return evaluated.value > 0 })
	began := s.clock.Mono()
	lead.Leave()
	s.until("a question", lead.Replica().Transferring)
	took := s.clock.Mono() - began
	require.Greater(t, took, 600*time.Millisecond)
	require.Less(t, took, 700*time.Millisecond)
	require.False(t, answered)
}

// A replica that is not in sync is not asked, were it the only one, and of two in sync the one that is further comes first.
func TestLeavingLeaderAsksTheFurthest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 304)
		lead := s.whole()
		was := lead.Leader()
		write := func() bool {
			s.writeTimed(func(geo.NodeID) {}, func(error) {})
			return false
		}
		for range 3000 { // 1.5 s: all are settled.
			write()
			s.step()
		}
		for _, slow := range []geo.NodeID{was%3 + 1, (was+1)%3 + 1} {
			s.paused[slow] = s.clock.Mono() + time.Second
			began := s.clock.Mono()
			s.until("it lags", func() bool { return s.clock.Mono()-began > 60*time.Millisecond || write() })
			require.Contains(t, lead.Replica().InSyncNodes(), slow)
			require.Equal(t, 6-was-slow, lead.Replica().Heir([]geo.NodeID{1, 2, 3}), "slow: %d", slow)
			s.until("it is out of sync", func() bool { return !slices.Contains(lead.Replica().InSyncNodes(), slow) || write() })
			require.Zero(t, lead.Replica().Heir([]geo.NodeID{slow}))
			s.until("it is back", func() bool { return slices.Contains(lead.Replica().InSyncNodes(), slow) || write() })
			for range 3000 {
				write()
				s.step()
			}
		}
	})
}
