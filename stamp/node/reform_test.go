package node_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/stamp/extent"
	"antipode/stamp/membership"
	"antipode/stamp/memtransport"
	. "antipode/stamp/node"
	"antipode/stamp/snapshot"
)

// alone returns a stamp of which one node runs, and that node.
func alone(t *testing.T) (*snapStamp, *Node) {
	t.Helper()
	s := newSnapStamp(t, memtransport.New(), patient)
	s.write(0, 10, "a")
	left := s.follower()
	for _, id := range s.Nodes() {
		if id != left {
			require.NoError(t, s.Stop(id, false))
		}
	}
	return s, s.Node(left)
}

// A node re-forms a range only from the replica that the operator's request saw, under a recovery
// later than all that it knows, and not while it receives a snapshot. A refusal changes nothing.
func TestReformRefusesWhatChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := alone(t)
		var saw membership.Survey
		silence := func() bool { // It may have been elected in between.
			var err error
			saw, err = n.Survey(t.Context(), testRange)
			return err == nil && !saw.Leads && !saw.Follows
		}
		require.Eventually(t, silence, electionWait, time.Millisecond)
		first, err := n.Identity(testRange).Recovery().Next(n.ID())
		require.NoError(t, err)
		second, err := first.Next(n.ID())
		require.NoError(t, err)
		change := func(f func(v *membership.Survey)) membership.Survey {
			v := saw
			f(&v)
			return v
		}
		for name, from := range map[string]membership.Survey{
			"another replica": change(func(v *membership.Survey) { v.Replica++ }),
			"not trusted":     change(func(v *membership.Survey) { v.Trusted = false }),
			"a longer log":    change(func(v *membership.Survey) { v.Index++ }),
			"a later term":    change(func(v *membership.Survey) { v.Term++ }),
			"an old survey":   change(func(v *membership.Survey) { v.Taken -= membership.ReformWithin }),
		} {
			require.ErrorContains(t, n.Reform(t.Context(), testRange, from, first, 0), "changed meanwhile", name)
		}
		require.ErrorContains(t, n.Reform(t.Context(), testRange, saw, 0, 0), "changed meanwhile", "no recovery")
		reserved := n.ReserveSnapshot(testRange)
		require.NotNil(t, reserved)
		require.ErrorContains(t, n.Reform(t.Context(), testRange, saw, first, 0), "receives a snapshot")
		reserved.Free()
		now, err := n.Survey(t.Context(), testRange)
		require.NoError(t, err)
		require.True(t, saw.Same(now))

		require.Eventually(t, func() bool { // A busy machine may let the process stand still.
			return silence() && n.Reform(t.Context(), testRange, saw, second, 0) == nil
		}, electionWait, time.Millisecond)
		saw, err = n.Survey(t.Context(), testRange)
		require.NoError(t, err)
		saw.Leads = false // It may do so by now.
		require.Error(t, n.Reform(t.Context(), testRange, saw, first, 0), "an earlier recovery")
		require.Error(t, n.Reform(t.Context(), testRange, saw, second, 0), "the same recovery")
		require.Equal(t, second, n.Identity(testRange).Recovery())
		s.requireRows(0, 10, "a")
	})
}

// taking is a rough network whose nodes take range snapshots, of which none is ever sent.
type taking struct{ *rough }

func (taking) Snapshot(geo.NodeID, geo.NodeID, snapshot.Header) (snapshot.Stream, error) {
	return nil, ErrUnreachable
}

// R4, R5: an operator finds that one node alone answers, and has it re-form the range. It does so in the moment of
// that answer. But not after it stood still, at the very point of its pass at which it would: the others may be back, and
// have acknowledged writes that it lacks and whose messages it has not read. Nor as soon as it follows a leader.
func TestR4NoRecoveryAfterAPause(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"the others stay away": false, "the others are back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSteppedWith(t, 3, 10, func(o *Options) { o.RowChunks, o.Transport = chunkRow, taking{o.Transport.(*rough)} })
				lead := s.whole()
				id := lead.Leader()%3 + 1
				survivor, old := s.nodes[id], s.nodes[id].Range(testRange)
				others := []geo.NodeID{id%3 + 1, (id+1)%3 + 1}
				away := func(until time.Duration) {
					for _, o := range others {
						s.paused[o] = until
					}
				}
				survey := func() membership.Survey {
					v, err := survivor.Survey(t.Context(), testRange)
					require.NoError(t, err)
					return v
				}
				require.True(t, survey().Follows || lead.Leader() == id)
				away(1 << 62)
				s.until("silence", func() bool { v := survey(); return !v.Leads && !v.Follows })
				best, as, err := membership.Survivor([]membership.Survey{survey()}, false)
				require.NoError(t, err)
				reformed := errors.New("it did not run")
				s.clocks[id].stop = func() {
					if back {
						s.paused[id] = 1 << 62
						away(0)
						s.acknowledgeElsewhere(old)
						s.paused[id] = 0
					}
					reformed = survivor.Reform(t.Context(), testRange, best, as, 0)
				}
				_, err = survivor.Pass()
				require.NoError(t, err)
				if !back {
					require.NoError(t, reformed)
					require.Equal(t, as, survivor.Identity(testRange).Recovery())
					return
				}
				require.ErrorIs(t, reformed, membership.ErrChanged)
				s.until("a leader that it follows", func() bool { return survey().Follows })
				_, _, err = membership.Survivor([]membership.Survey{survey()}, true)
				require.ErrorIs(t, err, membership.ErrQuorum)
				fresh := survey()
				require.ErrorIs(t, survivor.Reform(t.Context(), testRange, fresh, as, 0), membership.ErrChanged)
				require.Zero(t, survivor.Identity(testRange).Recovery())
			})
		})
	}
}

// R4: what a former leader sent, and what waits for its payload, is not stepped by the replica that
// the range is re-formed with.
func TestReformDropsHeldEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := alone(t)
		// The term is above that of any other message: a leader that was elected meanwhile would make the node drop this one.
		ref, from, term := extent.NewRef(extent.ChunkID{7}, []byte("gone")), uint64(n.ID()%3+1), uint64(1)<<32
		typ := pb.MsgApp
		wait := Envelope{Range: testRange, From: geo.NodeID(from), Message: &pb.Message{
			Type: &typ, From: &from, Term: &term, Entries: []*pb.Entry{{Index: &term, Data: groupNaming(t, term, ref)}},
		}}
		held := func() (out []Envelope) {
			t.Helper()
			require.NoError(t, n.Work(t.Context(), func() (refusal, failure error) {
				out = n.Held(testRange)
				return nil, nil
			}))
			return out
		}
		require.NoError(t, n.Work(t.Context(), func() (refusal, failure error) {
			n.Hold(wait)
			return nil, nil
		}))
		require.Equal(t, []Envelope{wait}, held())
		s.recover(false)
		require.Empty(t, held())
	})
}

// Work for a node that is closed is refused, even if the caller would wait for ever.
func TestWorkForAClosedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSnapStamp(t, memtransport.New(), nil)
		n := s.Node(1)
		require.NoError(t, s.Stop(1, false))
		ctx, cancel := context.WithTimeout(t.Context(), electionWait)
		defer cancel()
		err := n.Work(ctx, func() (refusal, failure error) { return nil, errors.New("it ran") })
		require.ErrorIs(t, err, ErrUnreachable)
	})
}

// Without any write the nodes of a stamp still report to each other, so that a damaged store is set
// aside there too.
func TestDamagedStoreOfAnIdleStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen events
		s := newSnapStamp(t, memtransport.New(), func(o *Options) {
			eager(o)
			o.ScrubPeriod = time.Hour
			o.OnEvent = seen.takeAll
		})
		s.write(0, 10, "a")
		id := s.follower()
		s.same()
		n := s.Node(id)
		ticks := func() (out uint64) {
			t.Helper()
			require.NoError(t, n.Work(t.Context(), func() (refusal, failure error) {
				out = n.Ticks()
				return nil, nil
			}))
			return out
		}
		since := ticks()
		require.Eventually(t, func() bool { return ticks() > since+2*IdleTicks }, electionWait, 10*time.Millisecond)
		n.Quarantine("state", errors.New("a test says so"))
		require.Eventually(t, func() bool { return seen.has(NodeRestarted, 0) }, 3*electionWait, time.Millisecond)
	})
}
