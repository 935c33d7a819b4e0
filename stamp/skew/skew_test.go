package skew

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
)

// machine is the clock of a node of these tests: the monotonic time of all, and a wall clock that
// is off.
type machine struct {
	*clock.Manual
	off time.Duration
	// slow lets each reading of the wall clock take this long.
	slow time.Duration
}

func (m *machine) Now() time.Time {
	if m.slow > 0 {
		defer m.Advance(m.slow)
	}
	return m.Manual.Now().Add(m.off)
}

// stamp is some nodes that ask each other.
type stamp struct {
	t      *testing.T
	time   *clock.Manual
	ids    []geo.NodeID
	clocks map[geo.NodeID]*machine
	ran    map[geo.NodeID]*clock.Running
	tables map[geo.NodeID]*Table
	down   map[geo.NodeID]bool
}

func newStamp(t *testing.T, nodes int) *stamp {
	at := clock.NewManual(time.Unix(1_800_000_000, 0))
	at.Advance(time.Hour)
	return newStampAt(t, nodes, at)
}

func newStampAt(t *testing.T, nodes int, at *clock.Manual) *stamp {
	s := &stamp{
		t: t, time: at, clocks: map[geo.NodeID]*machine{},
		ran: map[geo.NodeID]*clock.Running{}, tables: map[geo.NodeID]*Table{}, down: map[geo.NodeID]bool{},
	}
	for id := geo.NodeID(1); id <= geo.NodeID(nodes); id++ {
		s.ids = append(s.ids, id)
	}
	for _, id := range s.ids {
		s.clocks[id], s.ran[id] = &machine{Manual: s.time}, clock.NewRunning(100*time.Millisecond)
		s.tables[id] = New(id, s.ids, s.clocks[id], s.ran[id], false)
	}
	return s
}

// restart starts a node again, as one of a stamp that has another location.
func (s *stamp) restart(id geo.NodeID) {
	s.ran[id] = clock.NewRunning(100 * time.Millisecond)
	s.ran[id].Advance(s.time.Mono())
	s.tables[id] = New(id, s.ids, s.clocks[id], s.ran[id], true)
}

// tick lets each node ask those whose turn it is. A question takes there, its answer back; it is held
// at the peer for held.
func (s *stamp) tick(there, held, back time.Duration) (asked int) {
	for _, id := range s.ids {
		s.ran[id].Advance(s.time.Mono())
		if s.down[id] {
			continue
		}
		q, peers := s.tables[id].Ask()
		asked += len(peers)
		s.time.Advance(there)
		for _, p := range peers {
			if !s.down[p] {
				s.tables[p].TakeQuestion(id, q)
			}
		}
		s.time.Advance(held)
		for _, p := range peers {
			for _, to := range s.tables[p].Answers() {
				s.time.Advance(back)
				s.tables[to.Node].TakeAnswer(p, to.Answer)
			}
		}
		s.tables[id].CompareStamp(s.ids, s.time.Mono())
	}
	return asked
}

// ticks lets time pass at ten ticks a second, without delays.
func (s *stamp) ticks(d time.Duration) (asked int) {
	for range d / (100 * time.Millisecond) {
		s.time.Advance(100 * time.Millisecond)
		asked += s.tick(0, 0, 0)
	}
	return asked
}

func (s *stamp) compare(id geo.NodeID) Comparison { return s.tables[id].Compare(s.ids, s.time.Mono()) }

func (s *stamp) require(id geo.NodeID, want Agreement) Comparison {
	s.t.Helper()
	c := s.compare(id)
	require.Equal(s.t, want, c.Agreement, "node %d: %s", id, Describe(s.tables[id].Offsets()))
	return c
}

// R6: a clock agrees only with the proof of a quorum. It is off when no quorum can agree with it any
// more; then the others that agree with a quorum are known.
func TestR6Agreement(t *testing.T) {
	s := newStamp(t, 3)
	s.require(1, Unsure)
	s.ticks(200 * time.Millisecond)
	for _, id := range s.ids {
		s.require(id, Agreed)
	}
	s.clocks[2].off = 10 * time.Minute
	s.ticks(2 * time.Second)
	s.require(1, Agreed)
	s.require(3, Agreed)
	require.Equal(t, []geo.NodeID{1, 3}, s.require(2, Off).Better)
	require.Equal(t, "its clock is 10m0s ahead of that of node 1, 10m0s ahead of that of node 3", Describe(s.tables[2].Offsets()))
	s.clocks[3].off = -time.Hour
	s.ticks(2 * time.Second)
	for _, id := range s.ids {
		require.Empty(t, s.require(id, Off).Better, "no two agree")
	}
	s.clocks[2].off, s.clocks[3].off = 0, 900*time.Millisecond
	s.ticks(2 * time.Second)
	for _, id := range s.ids {
		s.require(id, Agreed)
	}
}

// R6: with one node away, two that disagree are unsure once its last measurement is old; they do not know which
// of them is right.
func TestR6TwoThatDisagree(t *testing.T) {
	s := newStamp(t, 3)
	s.ticks(time.Second)
	s.down[3], s.clocks[2].off = true, -3*time.Second
	s.ticks(2 * time.Second)
	s.require(1, Agreed) // Node 3 agreed a moment ago.
	s.ticks(sampleAge)
	s.require(1, Unsure)
	s.require(2, Unsure)
}

// R6: a clock that was set is unsure in the very next comparison, before anybody measured it, and its
// questions from before it count no more.
func TestR6StepIsFoundAtOnce(t *testing.T) {
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute, geo.ClockOffMax, 74 * 365 * 24 * time.Hour} {
		s := newStamp(t, 3)
		s.ticks(time.Second)
		s.time.Advance(time.Second)
		q, _ := s.tables[1].Ask()
		s.tables[2].TakeQuestion(1, q)
		answers := s.tables[2].Answers()
		s.clocks[1].off = off
		s.require(1, Unsure)
		s.tables[1].TakeAnswer(2, answers[0].Answer)
		s.require(1, Unsure)
		s.ticks(200 * time.Millisecond)
		if off != geo.ClockOffMax { // That far is allowed; the measurement's own error is not.
			s.require(1, Off)
		}
		s.clocks[1].off = 0
		s.require(1, Unsure)
		s.ticks(200 * time.Millisecond)
		s.require(1, Agreed)
	}
}

// Late answers prove little, in either direction: a clock that is right is never off for them, and a
// clock that is off never agrees, whichever way took how long and wherever the time was lost. One
// good answer in sampleAge is enough, so that a node without processor time goes on to evaluate.
func TestR6LateAnswers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	some := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	for range 300 {
		s := newStamp(t, 3)
		s.clocks[2].off = time.Duration(rng.IntN(2)) * (geo.ClockOffMax + 500*time.Millisecond)
		for range 20 {
			s.tick(some(2*time.Second), some(5*time.Second), some(2*time.Second))
			s.time.Advance(some(time.Second))
			require.NotEqual(t, Off, s.compare(1).Agreement)
			if c := s.compare(2); s.clocks[2].off != 0 {
				require.NotEqual(t, Agreed, c.Agreement)
			}
		}
		if s.clocks[2].off == 0 {
			s.tick(10*time.Millisecond, time.Second, 10*time.Millisecond)
			for range 5 {
				s.tick(2*time.Second, 0, 2*time.Second)
			}
			s.require(2, Agreed)
		}
	}
}

// A pause of this process, however long, costs no measurement: its clock was not set. A pause between
// the readings of the two clocks is not taken for a clock that was set.
func TestR6Pauses(t *testing.T) {
	s := newStamp(t, 3)
	s.ticks(time.Second)
	s.time.Advance(time.Hour)
	for _, id := range s.ids {
		s.ran[id].Advance(s.time.Mono())
	}
	s.require(1, Agreed)
	s.clocks[1].slow = 5 * time.Second
	require.NotEqual(t, Off, s.compare(1).Agreement)
	s.clocks[1].slow = 0
	s.require(1, Agreed)
}

// Answers that no honest node gives change nothing for the worse than a peer whose clock is
// wrong: no panic, no overflow, and a quorum of honest ones decides.
func TestR6HostilePeer(t *testing.T) {
	s := newStamp(t, 3)
	s.ticks(time.Second)
	now := s.time.Mono()
	extreme := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, int64(now), int64(now) + 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, sent := range extreme {
		for _, held := range extreme {
			for _, wall := range extreme {
				s.tables[1].TakeAnswer(2, Answer{Sent: time.Duration(sent), Held: time.Duration(held), Wall: wall})
				s.require(1, Agreed)
				s.tables[1].TakeAnswer(99, Answer{Sent: time.Duration(sent), Wall: wall})
			}
		}
	}
	require.LessOrEqual(t, len(s.tables[1].peers[2].samples), samplesMax)
	s.tables[1].TakeQuestion(99, Question{})
	for range 10_000 {
		s.tables[1].TakeQuestion(2, Question{Sent: math.MaxInt64})
	}
	require.Len(t, s.tables[1].Answers(), 1, "one answer for each peer, whatever it asks")
	require.Empty(t, s.tables[1].Answers())
}

// A peer is asked once a second, and in each tick while its clock is not known.
func TestAsking(t *testing.T) {
	s := newStamp(t, 3)
	require.InDelta(t, 3*2*10, s.ticks(10*time.Second), 3*2*2)
	s.down[3] = true
	s.ticks(2 * sampleAge)
	_, peers := s.tables[1].Ask()
	require.True(t, slices.Contains(peers, 3))
	_, peers = s.tables[1].Ask()
	require.Equal(t, []geo.NodeID{3}, peers)
}

// An episode begins after half a second and is reported once; its end too.
func TestWatch(t *testing.T) {
	var w Watch
	at := time.Hour
	step := func(bad bool, after time.Duration) [2]bool {
		at += after
		begins, ends := w.Step(bad, at)
		require.Equal(t, bad, w.Off())
		return [2]bool{begins, ends}
	}
	none, begins, ends := [2]bool{}, [2]bool{true, false}, [2]bool{false, true}
	require.Equal(t, none, step(true, 0))
	require.Equal(t, none, step(false, reportAfter-1), "a clock that was set and compared")
	require.Equal(t, none, step(true, 1))
	require.Equal(t, begins, step(true, reportAfter))
	require.Equal(t, none, step(true, time.Hour))
	require.Equal(t, ends, step(false, time.Hour))
	require.Equal(t, none, step(false, time.Hour))
}
