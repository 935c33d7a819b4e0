package node_test

import (
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

// timed is an increment that checks the time it is given against the true one.
type timed struct {
	increment
	s *stepped
}

func (c *timed) Evaluate(tx *ranges.Tx) error {
	at := tx.Timestamp(0).Time()
	require.LessOrEqual(c.s.t, at.Sub(c.s.clock.Now()), geo.ClockOffMax, "a commit time of the future")
	return c.increment.Evaluate(tx)
}

// writeTimed begins a timed write at a node that thinks it leads. acked is called with the node that
// acknowledged it.
func (s *stepped) writeTimed(acked func(geo.NodeID), refused func(error)) {
	r := s.leading()
	if r == nil {
		return
	}
	id, cmd := r.Leader(), &timed{s: s}
	r.Submit(cmd, func(err error) {
		if err != nil {
			refused(err)
			return
		}
		s.floor = max(s.floor, cmd.value)
		acked(id)
	})
}

func (s *stepped) count(kind EventKind, of geo.NodeID) (n int) {
	for _, e := range s.events {
		if e.Kind == kind && e.Node == of {
			n++
		}
	}
	return n
}

// R6: a leader whose wall clock is set wrong evaluates nothing by it, not one group, and transfers
// leadership to a voter whose clock is right, where writes go on. It reports that once, with the offset. When its
// clock is right again that is reported too.
//
// Capability: Two locations: A recovery with loss commits above what the other location has received (R6).
// Capability: Two locations: A wrong clock (R6).
func TestR6LeaderWithAWrongClockTransfers(t *testing.T) {
	t.Parallel()
	for seed, off := range []time.Duration{10 * time.Minute, -10 * time.Minute, 1100 * time.Millisecond, 74 * 365 * 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStepped(t, uint64(seed))
				wrong := s.whole().Leader()
				none := func(error) {}
				s.clocks[wrong].off = off
				var by geo.NodeID
				s.until("a write elsewhere", func() bool {
					s.writeTimed(func(id geo.NodeID) { by = id }, none)
					require.NotEqual(t, wrong, by)
					return by != 0
				})
				s.until("word of it", func() bool { return s.count(ClockOff, wrong) == 1 })
				for _, e := range s.events {
					if e.Kind == ClockOff {
						require.Equal(t, wrong, e.Node)
						require.Contains(t, e.Reason, off.Abs().String())
					}
				}
				for range 3000 {
					s.writeTimed(func(geo.NodeID) {}, none)
					s.step()
				}
				require.Equal(t, 1, s.count(ClockOff, wrong), "one episode")
				require.Zero(t, s.count(ClockAgrees, wrong))
				isOff := s.nodes[wrong].Clocks().Off() != ""
				require.True(t, isOff)
				s.clocks[wrong].off = 0
				s.until("the end of it", func() bool { return s.count(ClockAgrees, wrong) == 1 })
			})
		})
	}
}

// R6: with one of three away and the other two apart by more than 1 s neither can know which is right:
// after the measurements of the third have aged none evaluates, and commands are refused as busy, which
// means that nothing happened. With the third the range goes on.
//
// Capability: Two locations: A recovery with loss commits above what the other location has received (R6).
// Capability: Two locations: A wrong clock (R6).
func TestR6TwoThatDisagreeEvaluateNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 3)
		lead := s.whole()
		away := lead.Leader()%3 + 1
		s.paused[away] = 1 << 62
		delete(s.net.nodes, away)
		for id := range s.nodes {
			if id != away && id != lead.Leader() {
				s.clocks[id].off = -2 * time.Second
			}
		}
		for range 80_000 { // 40 s
			s.step()
		}
		busy := 0
		s.until("a refusal", func() bool {
			s.writeTimed(func(geo.NodeID) { t.Error("acknowledged") }, func(err error) {
				if err == kv.ErrBusy { //nolint:errorlint // It is answered as it is.
					busy++
				}
			})
			return busy > 0
		})
		s.net.nodes[away], s.paused[away] = s.nodes[away], 0
		acked := false
		s.until("a write", func() bool {
			s.writeTimed(func(geo.NodeID) { acked = true }, func(error) {})
			return acked
		})
	})
}

// R6: nodes on one machine have one clock. When it is set, by any amount, writes wait for a round of
// comparisons, are not refused, and go on where they were.
//
// Capability: Two locations: A recovery with loss commits above what the other location has received (R6).
// Capability: Two locations: A wrong clock (R6).
func TestR6ClocksSetTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 4)
		lead := s.whole()
		for _, by := range []time.Duration{10 * time.Minute, -20 * time.Minute, 700 * time.Millisecond} {
			s.clock.Step(by)
			acked := false
			lead.Submit(&increment{}, func(err error) {
				require.NoError(t, err)
				acked = true
			})
			s.until("a write", func() bool { return acked })
		}
		for id := range s.nodes {
			require.Zero(t, s.count(ClockOff, id))
		}
	})
}

// R5, R6: a transfer whose message is lost leaves a leader that goes on, once its clock is right, in a term
// in which no lease may hold. It transfers leadership again, also if nobody writes, so reads have a lease again.
//
// Capability: The primary location: Reads at any node (R5).
func TestR5LeaseAfterATransferThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t, 5)
		lead := s.whole()
		wrong := lead.Leader()
		_, term := lead.Replica().Leader()
		s.net.lose = func(e Envelope) bool { return e.Message.GetType() == pb.MsgTimeoutNow }
		s.clocks[wrong].off = 10 * time.Minute
		s.until("a transfer", func() bool {
			s.writeTimed(func(geo.NodeID) {}, func(error) {})
			return slices.ContainsFunc(s.events, func(e Event) bool { return e.Kind == LeaderTransferred })
		})
		s.clocks[wrong].off = 0
		acked := false
		s.until("a write where it was", func() bool {
			s.writeTimed(func(id geo.NodeID) { acked = id == wrong }, func(error) {})
			return acked
		})
		_, now := lead.Replica().Leader()
		require.Equal(t, term, now)
		require.Zero(t, lead.Replica().Lease())
		s.net.lose = nil
		s.until("a lease", func() bool {
			s.read(geo.NodeID(1 + s.rng.IntN(3)))
			r := s.leading()
			return r != nil && r.Replica().Lease() > s.clock.Mono()
		})
	})
}

// R5, R6: while the clock of one node at a time is wrong, leaders are paused, ways are cut and messages are
// lost, no read is stale, a leader that transfers leadership included, and no time is given that is ahead
// of the true one by more than 1 s.
//
// Capability: The primary location: Reads at any node (R5).
func TestR5TransferForTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transfers, refused := 0, 0
		for seed := range seeds(16) {
			s := newStepped(t, 100+seed)
			s.whole()
			s.net.calm = false
			var wrong geo.NodeID
			for range 12_000 {
				s.step()
				switch s.rng.IntN(100) {
				case 0, 1, 2, 3:
					s.writeTimed(func(geo.NodeID) {}, func(err error) {
						if err == kv.ErrBusy { //nolint:errorlint // It is answered as it is.
							refused++
						}
					})
				case 4, 5, 6, 7, 8, 9:
					s.read(geo.NodeID(1 + s.rng.IntN(3)))
				case 10:
					s.disturb()
				case 11:
					if s.rng.IntN(10) > 0 {
						continue
					}
					for _, c := range s.clocks {
						c.off = 0
					}
					if r := s.leading(); r != nil && wrong == 0 {
						wrong = r.Leader()
						s.clocks[wrong].off = time.Duration(1+s.rng.IntN(1000)) * 2 * time.Second
					} else if wrong != 0 {
						wrong = 0
					}
				}
			}
			for _, e := range s.events {
				if e.Kind == LeaderTransferred {
					transfers++
				}
			}
		}
		fmt.Printf("%d transfers, %d refusals\n", transfers, refused)
		require.Positive(t, transfers)
		require.Positive(t, refused)
	})
}
