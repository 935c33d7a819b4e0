package node_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/change"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// leased waits for a leader with a lease that has just begun, and returns it.
func (s *stepped) leased() *ranges.Range {
	s.t.Helper()
	lead := s.whole()
	s.until("a lease", func() bool {
		s.read(lead.Leader())
		return lead.Replica().Lease() > s.clock.Mono()+50*time.Millisecond
	})
	return lead
}

// granted reports, from now on, whether a node grants another one that stands for election its vote, or would.
func (s *stepped) granted(by geo.NodeID) *bool {
	granted := false
	own := s.nodes[by].Range(testRange).Replica().ID()
	s.net.lose = func(e Envelope) bool {
		if e.Range == testRange && e.Message != nil && geo.ReplicaID(e.Message.GetFrom()) == own && !e.Message.GetReject() {
			typ := e.Message.GetType()
			granted = granted || typ == pb.MsgPreVoteResp || typ == pb.MsgVoteResp
		}
		return true
	}
	return &granted
}

// stands has a node ask another one for its vote, in a later term and with a longer log than any.
func (s *stepped) stands(id, of geo.NodeID) {
	typ, from, to := pb.MsgPreVote, uint64(s.nodes[id].Range(testRange).Replica().ID()), uint64(s.nodes[of].Range(testRange).Replica().ID())
	far := uint64(1) << 20
	s.nodes[of].Receive([]Envelope{{Range: testRange, From: id, Message: &pb.Message{
		Type: &typ, From: &from, To: &to, Term: &far, LogTerm: &far, Index: &far,
	}}})
}

// R5: the lease of a leader has ended two ticks before any follower that has answered for it would vote for another one, for
// clocks that drift: also where the follower's ticks come as early after the leader's message as they can.
func TestR5LeaseEndsBeforeAVote(t *testing.T) {
	t.Parallel()
	const tick = 10 * time.Millisecond
	for phase := time.Duration(0); phase <= tick; phase += tick / 5 {
		t.Run(phase.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, 3)
				lead := s.whole()
				id := lead.Leader()
				follower, other := id%3+1, (id+1)%3+1
				pass := func(id geo.NodeID) {
					_, err := s.nodes[id].Pass()
					require.NoError(t, err)
				}
				s.clock.Advance(tick)
				pass(follower) // A tick: the next one is a tick later.
				s.clock.Advance(phase)
				lead.Confirm(func(error) {})
				before := s.clock.Mono()
				for range 6 { // A round trip that takes no time.
					pass(id)
					s.net.deliver(1 << 20)
					if phase < tick {
						pass(follower)
					} else {
						pass(other) // The follower's message waits for the pass of the tick.
					}
					s.net.deliver(1 << 20)
				}
				until := lead.Replica().Lease()
				require.Greater(t, until, before+5*tick)
				granted := s.granted(follower)
				for !*granted {
					require.Less(t, s.clock.Mono(), before+time.Second, "it never votes")
					s.stands(other, follower)
					pass(follower)
					if !*granted {
						s.clock.Advance(time.Millisecond)
					}
				}
				require.LessOrEqual(t, until+2*tick, s.clock.Mono(), "it votes %s after the end of the lease", s.clock.Mono()-until)
			})
		})
	}
}

// R5: what a restarted replica promised before counts: it votes for nobody until a lease that relies on that has ended.
//
// Capability: Two locations: A range at rest closes when somebody looks (R12).
func TestR5RestartedReplicaDoesNotVote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var opened Options
		s := newSteppedWith(t, 5, 10, func(o *Options) {
			if o.ID == 2 {
				opened = *o
			}
		})
		var lead *ranges.Range
		s.until("another leader", func() bool {
			lead = s.leased()
			if lead.Leader() == 2 {
				lead.Leave()
				return false
			}
			return true
		})
		until, other := lead.Replica().Lease(), 4-lead.Leader()
		require.NoError(t, s.nodes[2].Close(false))
		n, err := Open(opened)
		require.NoError(t, err)
		s.nodes[2] = n
		granted := s.granted(2)
		for !*granted {
			require.Less(t, s.clock.Mono(), until+time.Second, "it never votes")
			s.stands(other, 2)
			_, err := n.Pass()
			require.NoError(t, err)
			s.clock.Advance(time.Millisecond)
		}
		require.Greater(t, s.clock.Mono(), until)
	})
}

// R5: the lease is checked after the read, which may have stood still meanwhile: for longer than the lease, or until its
// leader asked another replica to lead, so that no lease holds any more although its time is not over.
func TestR5LeaseIsCheckedAfterTheRead(t *testing.T) {
	s := newStepped(t, 4)
	lead := s.leased()
	s.until("a read under the lease", func() bool {
		s.read(lead.Leader())
		held, err := lead.ReadLeased(func(ranges.State) error { return nil })
		require.NoError(t, err)
		return held && lead.Replica().Lease() > s.clock.Mono()+10*time.Millisecond
	})
	held, err := lead.ReadLeased(func(ranges.State) error {
		s.clock.Advance(time.Second)
		return nil
	})
	require.NoError(t, err)
	require.False(t, held, "it stood still")

	id := lead.Leader()
	s.clocks[id].off = 10 * time.Minute
	transferred := func() bool { return s.count(LeaderTransferred, id%3+1)+s.count(LeaderTransferred, (id+1)%3+1) > 0 }
	checked := false
	s.until("a transfer while a lease lasts", func() bool {
		s.read(id)
		lead.Submit(&increment{}, func(error) {})
		until := lead.Replica().Lease()
		held, _ := lead.ReadLeased(func(ranges.State) error {
			_, err := s.nodes[id].Pass()
			return err
		})
		if transferred() && !checked {
			require.False(t, held)
			checked = true
			require.Greater(t, until, s.clock.Mono(), "the lease lasts")
			require.True(t, lead.Leading())
		}
		return checked
	})
}

// R5: a replica that is found lost while a read stands still between its round and its look at the state, and begins again
// with an empty one, does not answer from that: neither the former leader nor a follower.
func TestR5ReplacedStateIsNotRead(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string]bool{"a leader": true, "a follower": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, 6)
				lead := s.whole()
				acked := false
				lead.Submit(&increment{}, func(err error) { acked = err == nil })
				s.until("a write", func() bool { return acked })
				r := lead
				if !leads {
					r = s.nodes[lead.Leader()%3+1].Range(testRange)
					s.until("a leader that is known", func() bool { return r.Leader() == lead.Leader() })
				}
				n := s.nodes[r.Leader()]
				if !leads {
					n = s.nodes[lead.Leader()%3+1]
				}
				stands, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				var got []uint64
				read := func(st ranges.State) error {
					if len(got) == 0 {
						stands <- struct{}{}
						<-goOn
					}
					v, _, err := st.Get(counterKey())
					got = append(got, counterOf(v))
					return err
				}
				go func() {
					if leads {
						done <- r.Read(context.Background(), read)
					} else {
						done <- r.ReadFollowing(context.Background(), read)
					}
				}()
				answer := errNone
				s.until("a read that stands still", func() bool {
					select {
					case <-stands:
						return true
					case answer = <-done:
						return true
					default:
						return false
					}
				})
				require.ErrorIs(t, answer, errNone)
				r.Replica().Lose(errors.New("its log is gone"))
				require.NoError(t, r.Machine.Replace(func() error {
					b := n.State().NewBatch()
					return errors.Join(b.Delete(counterKey()), n.State().Commit(b), b.Close())
				}))
				_, err := n.Pass()
				require.NoError(t, err)
				close(goOn)
				s.until("an answer", func() bool {
					select {
					case answer = <-done:
						return true
					default:
						return false
					}
				})
				require.ErrorIs(t, answer, ranges.ErrNotLeader, "it read %v", got)
			})
		})
	}
}

// R5: a read that comes in the middle of a pass, after the pass has looked for reads, is not answered by a round from before
// it: the process may have stood still at the beginning of that pass, and another leader have acknowledged writes.
func TestR5ReadWithinAPass(t *testing.T) {
	t.Parallel()
	asked := 0
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, skipped := newStepped(t, seed), uint64(0)
				old := s.leased()
				id := old.Leader()
				for range seed % 2 { // A leader has something to send at every second tick.
					s.clock.Advance(10 * time.Millisecond)
					_, err := s.nodes[id].Pass()
					require.NoError(t, err)
				}
				s.clock.Advance(10 * time.Millisecond)
				read := errNone
				s.clocks[id].stop = func() {
					s.paused[id] = 1 << 62
					s.acknowledgeElsewhere(old)
					s.paused[id] = 0
					old.Submit(&increment{}, func(error) {})
					s.clocks[id].look = func() bool { // To evaluate it the pass looks at the wall clock, and for other things before.
						if skipped++; skipped <= seed/2 {
							return false
						}
						asked++
						old.Confirm(func(err error) { read = err })
						return true
					}
				}
				_, err := s.nodes[id].Pass()
				require.NoError(t, err)
				s.until("an answer", func() bool { return !errors.Is(read, errNone) })
				require.ErrorIs(t, read, ranges.ErrNotLeader)
			})
		})
	}
	require.Equal(t, 8, asked)
}

// heavy is an increment that writes more than half of what is applied at once.
type heavy struct{ increment }

func (c *heavy) Evaluate(tx *ranges.Tx) error {
	if err := c.increment.Evaluate(tx); err != nil {
		return err
	}
	p := partition(1)
	return tx.Change(p, change.Record{
		CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: []change.Op{{Row: []byte("r"), Value: make([]byte, 3<<20)}},
	})
}

// R5: a leader that has named a commit to its followers and has applied only a part of it, since it is large, answers no read
// from its state meanwhile, lease or not: a follower may have shown the rest.
func TestR5ReadBehindALargeCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 8)
		lead := s.leased()
		id := lead.Leader()
		var acked int
		for range 2 { // More is not on its way to a follower at once.
			lead.Submit(&heavy{}, func(err error) {
				if err == nil {
					acked++
				}
			})
		}
		seen := false
		s.until("all of it", func() bool {
			behind := lead.Replica().Behind()
			seen = seen || behind
			if behind {
				lead.Confirm(func(err error) {
					v, _, getErr := lead.State().Get(counterKey())
					require.NoError(t, errors.Join(err, getErr))
					require.EqualValues(t, 2, counterOf(v))
				})
				_, _ = lead.ReadLeased(func(ranges.State) error {
					t.Error("it reads from a state that is behind")
					return nil
				})
				_, err := s.nodes[id].Pass()
				require.NoError(t, err)
			}
			return acked == 2
		})
		require.True(t, seen, "all was applied at once")
	})
}
