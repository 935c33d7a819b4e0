package node_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/kv"
	. "antipode/stamp/node"
	"antipode/stamp/ranges"
)

// submitHere queues a command at a leader, and returns where its answer comes.
func (s *stepped) submitHere(r *ranges.Range, cmd ranges.Command) *error {
	answer := errNone
	r.Submit(cmd, func(err error) { answer = err })
	return &answer
}

// slow cuts a follower of a leader off from it, one way: the leader gets none of its answers. It returns the follower.
func (s *stepped) slow(lead *ranges.Range) geo.NodeID {
	id := lead.Leader()
	s.net.cut[[2]geo.NodeID{id%3 + 1, id}] = true
	return id%3 + 1
}

// R5: a refusal is not answered, lease or not, before every in-sync replica has each group that it saw: neither while the group
// is on its way to them, nor once it is committed.
//
// Capability: The primary location: Reads at any node (R5).
func TestR5RefusalWaitsForWhatItSaw(t *testing.T) {
	s := newSteppedWith(t, 9, 10, func(o *Options) { o.InSyncTimeout = time.Hour })
	lead := s.leased()
	id := lead.Leader()
	pass := func() {
		_, err := s.nodes[id].Pass()
		require.NoError(t, err)
	}
	write := s.submitHere(lead, &increment{})
	pass()
	early := s.submitHere(lead, refusal{})
	pass()
	require.Greater(t, lead.Replica().Lease(), s.clock.Mono(), "the lease lasts")
	require.ErrorIs(t, *write, errNone)
	require.ErrorIs(t, *early, errNone, "the group is in flight")

	s.slow(lead)
	s.until("a commit", func() bool {
		s.read(id)
		v, _, err := lead.State().Get(counterKey())
		require.NoError(t, err)
		return counterOf(v) == 1 && lead.Replica().Lease() > s.clock.Mono()+20*time.Millisecond
	})
	late := s.submitHere(lead, refusal{})
	pass()
	require.Greater(t, lead.Replica().Lease(), s.clock.Mono(), "the lease lasts")
	for _, answer := range []*error{write, early, late} {
		require.ErrorIs(t, *answer, errNone, "one in-sync replica has not answered")
	}
	clear(s.net.cut)
	s.until("answers", func() bool { return !errors.Is(*late, errNone) && !errors.Is(*early, errNone) })
	require.NoError(t, *write)
	for _, answer := range []*error{early, late} {
		var saw countError
		require.ErrorAs(t, *answer, &saw)
		require.EqualValues(t, 1, saw.saw)
	}
}

// R1: the writes that a leader has committed and not acknowledged yet when it is deposed may have happened: so they are
// answered.
func TestDeposedLeaderAnswersWhatItCommitted(t *testing.T) {
	s := newSteppedWith(t, 10, 10, func(o *Options) { o.InSyncTimeout = time.Hour })
	lead := s.whole()
	s.slow(lead)
	write := s.submitHere(lead, &increment{})
	s.until("a commit", func() bool {
		v, _, err := lead.State().Get(counterKey())
		require.NoError(t, err)
		return counterOf(v) == 1
	})
	require.ErrorIs(t, *write, errNone)
	id := lead.Leader()
	s.paused[id] = 1 << 62
	for _, n := range []geo.NodeID{id%3 + 1, (id+1)%3 + 1} {
		s.net.cut[[2]geo.NodeID{id, n}] = true
	}
	s.until("another leader", func() bool {
		return s.nodes[id%3+1].Range(testRange).Leading() || s.nodes[(id+1)%3+1].Range(testRange).Leading()
	})
	s.paused[id] = 0
	clear(s.net.cut)
	s.until("an answer", func() bool { return !errors.Is(*write, errNone) })
	require.ErrorIs(t, *write, kv.ErrUnknown)
}

// R21, R22: a write that was committed and not answered as it was evaluated counts as not answered, and so does all behind it in
// the term of its leader: the groups that follow say so in every replica. In a later term of the same leader that is over.
func TestR22UnansweredWriteStaysSo(t *testing.T) {
	type entry struct {
		index    uint64
		answered uint64
	}
	var groups []entry
	f := &fencedStamp{fence: &ranges.Fence{}}
	f.stepped = newSteppedWith(t, 11, 10, func(o *Options) {
		o.Fence = f.fence
		if o.ID == 1 {
			o.OnApplied = func(id geo.RangeID, a ranges.Applied) {
				if id == testRange && len(a.Entry) > 0 {
					g, err := change.ParseGroup(a.Entry)
					require.NoError(t, err)
					groups = append(groups, entry{a.Index, g.Answered})
				}
			}
		}
	})
	f.until("a leader", func() bool { return f.leading() != nil })
	gate := change.Gate{Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true}
	require.NoError(t, f.submit(setGate{gate}))
	// last is the last group that node 1 has applied, once that is all.
	last := func() entry {
		lead := f.leading()
		f.until("all applied", func() bool {
			for ; lead == nil; lead = f.leading() {
				f.step()
			}
			return f.nodes[1].Range(testRange).Machine.AppliedState().Index == lead.Machine.AppliedState().Index
		})
		return groups[len(groups)-1]
	}
	write := func() entry {
		f.hold(time.Hour, nil)
		require.NoError(t, f.submit(&fencedWrite{}))
		return last()
	}
	before := write()
	require.Greater(t, write().answered, before.answered)
	f.hold(time.Second, nil)
	lead := f.leading()
	for ; lead == nil; lead = f.leading() {
		f.step()
	}
	answer := f.submitHere(lead, &fencedWrite{then: func() { f.clock.Advance(2 * time.Second) }})
	f.until("an answer", func() bool { return !errors.Is(*answer, errNone) })
	require.ErrorIs(t, *answer, kv.ErrUnknown)
	unanswered := last()
	for range 3 {
		require.Less(t, write().answered, unanswered.index)
	}
	id, term := lead.Leader(), lead.LeadTerm()
	f.paused[id] = 1 << 62
	f.until("another leader", func() bool {
		return f.nodes[id%3+1].Range(testRange).Leading() || f.nodes[(id+1)%3+1].Range(testRange).Leading()
	})
	f.paused[id] = 0
	f.until("the same one again", func() bool {
		for n := geo.NodeID(1); n <= 3; n++ {
			if r := f.nodes[n].Range(testRange); n != id && r.Leading() {
				r.Leave()
			}
		}
		return lead.LeadTerm() > term
	})
	first := write()
	require.Zero(t, first.answered, "nothing of this term is answered yet")
	require.GreaterOrEqual(t, write().answered, first.index)
}

// A read of a follower that comes after the node has closed is refused, and does not wait for ever.
func TestReadOfAClosedFollower(t *testing.T) {
	s := newStepped(t, 12)
	lead := s.whole()
	id := lead.Leader()%3 + 1
	n, r := s.nodes[id], s.nodes[id].Range(testRange)
	require.NoError(t, n.Close(false))
	delete(s.nodes, id)
	answer := errNone
	r.CatchUp(func(err error) { answer = err })
	require.ErrorIs(t, answer, ranges.ErrNotLeader)
	r.Confirm(func(err error) { answer = errors.Join(err, errRefused) })
	require.ErrorIs(t, answer, ranges.ErrNotLeader)
}

// forks is a command that stops a stream as forked where its head is not above what the other location has, as a shipper does.
type forks struct {
	s     geo.Stream
	above geo.Seq
}

func (c forks) Evaluate(tx *ranges.Tx) error {
	if head := tx.Head(c.s); head.Seq < c.above {
		tx.Stop(c.s, change.Stop{Reason: change.StopForked, Here: head, There: geo.Head{Seq: c.above}})
	}
	return nil
}

// R16: a leader that stands still at the beginning of a pass, while another one numbers records that the other location then
// has, finds that location ahead of it. That is no fork: what it stops is stopped on no replica, and is not answered as done.
func TestR16PausedLeaderFindsNoFork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds(6) {
			s := newStepped(t, seed)
			old := s.whole()
			id := old.Leader()
			require.NoError(t, s.answer(old, setGate{change.Gate{
				Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true,
			}}))
			stream := geo.Stream{Account: "acct", Epoch: geo.Epoch{Number: 1, Location: "north"}, Range: testRange, Lane: partition(0).Lane()}
			require.NoError(t, s.answer(old, &increment{}))
			var stopped *error
			s.clocks[id].stop = func() {
				s.paused[id] = 1 << 62
				s.acknowledgeElsewhere(old)
				stopped = s.submitHere(old, forks{stream, old.Machine.Head(stream).Seq + 1})
				s.paused[id] = 0
			}
			_, err := s.nodes[id].Pass()
			require.NoError(t, err)
			s.until("an answer", func() bool { return !errors.Is(*stopped, errNone) })
			require.Error(t, *stopped)
			s.until("all have the record that it lacked", func() bool {
				for n := geo.NodeID(1); n <= 3; n++ {
					if s.nodes[n].Range(testRange).Machine.Head(stream).Seq < 2 {
						return false
					}
				}
				return true
			})
			for n := geo.NodeID(1); n <= 3; n++ {
				require.Empty(t, s.nodes[n].Range(testRange).Machine.Stops(), "node %d", n)
			}
		}
	})
}

// answer returns the answer of a leader to a command.
func (s *stepped) answer(r *ranges.Range, cmd ranges.Command) error {
	s.t.Helper()
	answer := s.submitHere(r, cmd)
	s.until("an answer", func() bool { return !errors.Is(*answer, errNone) })
	return *answer
}
