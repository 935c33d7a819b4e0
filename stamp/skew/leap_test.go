package skew

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

var errAway = errors.New("away")

// sites are two stamps that ask each other for their clocks while the link is up.
type sites struct {
	*stamp
	far  *stamp
	down bool
}

func newSites(t *testing.T) *sites {
	s := &sites{stamp: newStamp(t, 3)}
	s.far = newStampAt(t, 3, s.time)
	for _, st := range []*stamp{s.stamp, s.far} {
		for _, id := range st.ids {
			st.restart(id)
		}
	}
	return s
}

// run lets time pass in ticks.
func (s *sites) run(d time.Duration) {
	for range d / (100 * time.Millisecond) {
		s.time.Advance(100 * time.Millisecond)
		for i, st := range []*stamp{s.stamp, s.far} {
			st.tick(0, 0, 0)
			other := []*stamp{s.far, s.stamp}[i]
			for _, id := range st.ids {
				sent, ask := st.tables[id].AskFar()
				if !ask {
					continue
				}
				s.time.Advance(5 * time.Millisecond)
				own, err := other.tables[id].Own(), error(nil)
				if s.down || other.down[id] {
					own, err = Own{}, errAway
				}
				st.tables[id].TakeFar(sent, own, err)
			}
		}
	}
}

// leap sets all clocks of a stamp.
func (s *stamp) leap(off time.Duration) {
	for _, c := range s.clocks {
		c.off = off
	}
}

// all requires the agreement of each node of a stamp.
func (s *stamp) all(want Agreement) {
	s.t.Helper()
	for _, id := range s.ids {
		s.require(id, want)
	}
}

// R6: a stamp whose clocks leap together, from seconds to decades, gives no times, says so, and goes on once they are right.
// The other location goes on.
//
// Capability: Two locations: A wrong clock (R6).
// Capability: Two locations: All clocks of a location leap, by seconds to decades (R6).
func TestR6StampThatLeapsAlone(t *testing.T) {
	for _, off := range []time.Duration{10 * time.Second, 10 * time.Minute, 2 * time.Hour, 20 * 365 * 24 * time.Hour} {
		for _, cut := range []bool{false, true} {
			s := newSites(t)
			s.run(time.Minute)
			s.all(Agreed)
			s.down = cut
			s.leap(off)
			s.all(Off)
			for range 6 {
				s.run(time.Second)
				s.all(Off)
				s.far.all(Agreed)
			}
			require.Contains(t, s.tables[1].Why(), "its clock leapt ahead by "+off.String())
			require.Empty(t, s.compare(1).Better, "all leapt")
			s.leap(0)
			s.run(time.Second)
			s.all(Agreed)
		}
	}
}

// R6: a node whose clock leaps alone says from which nodes it is apart, not that its location leapt.
//
// Capability: Two locations: A wrong clock (R6).
// Capability: Two locations: All clocks of a location leap, by seconds to decades (R6).
func TestR6NodeThatLeapsAlone(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	s.clocks[1].off = 10 * time.Minute
	s.run(2 * time.Second)
	s.require(1, Off)
	require.Equal(t, "its clock is 10m0s ahead of that of node 2, 10m0s ahead of that of node 3", s.tables[1].Why())
	s.clocks[1].off = 0
	s.run(time.Second)
	s.all(Agreed)
}

// R6: a leap that the clock of the other location confirms is believed: that of a host which stood still. So is one that both
// made, later; and with the link cut one that has lasted as long as it is.
//
// Capability: Two locations: A wrong clock (R6).
// Capability: Two locations: All clocks of a location leap, by seconds to decades (R6).
func TestR6LeapThatIsRight(t *testing.T) {
	const by = time.Minute
	s := newSites(t)
	s.run(time.Minute)
	s.leap(-by)
	s.run(2 * by)
	s.all(Agreed) // It is behind.
	s.leap(0)
	s.all(Off)
	s.run(time.Second + 500*time.Millisecond)
	s.all(Agreed)

	both := newSites(t)
	both.run(time.Minute)
	both.leap(by)
	both.far.leap(by)
	both.run(leapTogether - time.Second)
	both.all(Off)
	both.far.all(Off)
	both.run(3 * time.Second)
	both.all(Agreed)
	both.far.all(Agreed)

	alone := newSites(t)
	alone.run(time.Minute)
	alone.down = true
	alone.leap(by)
	alone.run(by - time.Second)
	alone.all(Off)
	unsure := false
	for range 20 { // While it is weighed against its peers, which have not answered since, it is not apart from any.
		alone.run(100 * time.Millisecond)
		if alone.compare(2).Agreement == Unsure {
			unsure = true
			require.Equal(t, "its clock is not proven yet by those of a quorum", alone.tables[2].Why())
		}
	}
	require.True(t, unsure)
	alone.all(Agreed)
}

// R6: who was started after a leap takes it from those that were not, and proves nothing to them: one node, and all while the
// other location, which did not leap, is up.
func TestR6StartedAfterALeap(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	s.down = true
	s.leap(time.Hour)
	s.run(time.Second)
	for _, id := range s.ids {
		s.restart(id)
		s.run(5 * time.Second)
		s.all(Off)
	}
	s.down = false
	for _, id := range s.ids {
		s.restart(id)
	}
	s.require(1, Unsure)
	s.run(5 * time.Second)
	s.all(Off)
	s.leap(0)
	s.run(2 * time.Second)
	s.all(Agreed)
}

// R6: a node that is cut off from its stamp, and is started after a leap, believes its clock. It evaluates nothing without the
// others, and with them it believes it no more.
func TestR6StartedApartAfterALeap(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	s.down = true
	s.leap(time.Hour)
	s.stamp.down[2], s.stamp.down[3] = true, true
	s.restart(1)
	s.run(2 * startWait)
	s.require(1, Unsure)
	s.stamp.down[2], s.stamp.down[3] = false, false
	s.run(time.Second)
	s.all(Off)
}

// R6: a location that starts alone believes its clock after startWait; one that starts beside a slow clock of the other gives no
// times, and one beside a fast clock does.
func TestR6Starts(t *testing.T) {
	s := newSites(t)
	s.down = true
	s.run(startWait - 200*time.Millisecond)
	s.all(Unsure)
	s.run(time.Second)
	s.all(Agreed)

	s = newSites(t)
	s.run(time.Minute)
	for _, id := range s.ids {
		s.restart(id)
		s.clocks[id].off = time.Hour
	}
	s.run(time.Second)
	s.all(Off)
	for _, id := range s.ids {
		s.restart(id)
		s.clocks[id].off = -time.Hour
	}
	s.run(2 * time.Second)
	s.all(Agreed)
	require.True(t, s.tables[1].Own().Unsure, "it is behind, and proves nothing")
}

// R6: a node whose clock is slow, and apart from those of its stamp, has nobody distrust a clock that is right: neither two of
// its stamp that are started while the other location is away, nor the other location as it starts.
func TestR6SlowClockProvesNothing(t *testing.T) {
	for _, slowFirst := range []bool{false, true} {
		s := newSites(t)
		s.clocks[3].off = -time.Hour
		s.restart(3)
		s.stamp.down[1], s.stamp.down[2] = slowFirst, slowFirst
		s.run(2 * provenAfter)
		require.True(t, s.tables[3].Own().Unsure)
		for _, id := range s.far.ids {
			s.far.restart(id)
		}
		s.run(3 * startWait)
		s.far.all(Agreed)
		s.down = true
		clear(s.stamp.down)
		s.restart(1)
		s.restart(2)
		s.run(3 * startWait)
		s.require(1, Agreed)
		s.require(2, Agreed)
		s.require(3, Off)
	}
}

// R6: a clock that did not leap, as those of all others of its stamp did, has them distrusted after they are started.
func TestR6ClockThatDidNotLeapProves(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	s.down = true
	s.clocks[1].off, s.clocks[2].off = time.Hour, time.Hour
	s.run(2 * provenAfter)
	s.restart(1)
	s.restart(2)
	s.run(3 * startWait)
	s.all(Off)
	require.Positive(t, s.tables[1].Own().Leapt)
	require.False(t, s.tables[3].Own().Unsure)
}

// An answer that no honest node gives neither panics nor makes a proven clock distrusted.
func TestR6HostileFar(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	for _, wall := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		for _, leapt := range []time.Duration{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			for _, sent := range []time.Duration{math.MinInt64 / 2, 0, s.time.Mono(), math.MaxInt64} {
				s.tables[1].TakeFar(sent, Own{Wall: wall, Leapt: leapt}, nil)
				s.require(1, Agreed)
				s.restart(2)
				s.tables[2].Own()
				s.tables[2].TakeFar(sent, Own{Wall: wall, Leapt: leapt, Unsure: leapt == 1}, nil)
				s.compare(2)
			}
		}
	}
	require.GreaterOrEqual(t, geo.ClockOffMax, time.Second)
}

// R6: a location that was started with a wrong clock while the link was cut gives no times once it learns of the other one, within
// provenAfter.
func TestR6StartedWrongWhileCutOff(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	s.down = true
	s.leap(time.Hour)
	for _, id := range s.ids {
		s.restart(id)
	}
	s.run(2 * startWait)
	s.all(Agreed)
	s.down = false
	s.run(2 * time.Second)
	s.all(Off)
	s.far.all(Agreed)
	s.leap(0)
	s.run(time.Second)
	s.all(Agreed)
}

// R6: a clock that leaps while its node has just started is not believed for that; one that was slow as it started, and is
// set right, is believed once the clock of the other location agrees and is proven.
func TestR6LeapsAsItStarts(t *testing.T) {
	s := newSites(t)
	s.down = true
	s.run(startWait / 2)
	s.leap(time.Hour)
	s.run(2 * startWait)
	s.all(Off)
	require.Equal(t, time.Hour, s.tables[1].Own().Leapt.Round(time.Minute))
	s.leap(0)
	s.run(time.Second)
	s.all(Agreed)

	s = newSites(t)
	s.leap(-50 * 365 * 24 * time.Hour)
	s.run(startWait / 5)
	s.leap(0)
	s.run(startWait)
	s.all(Off)
	s.run(provenAfter)
	s.all(Agreed)
}

// R6: two locations that start together believe clocks that agree at once, and do not wait for startWait.
func TestR6BothStart(t *testing.T) {
	s := newSites(t)
	s.run(startWait / 2)
	s.all(Agreed)
	s.far.all(Agreed)
}

// R6: an answer that was long under way says too little of the other clock: it neither ends a leap nor begins one.
func TestR6WideAnswersProveNothing(t *testing.T) {
	s := newSites(t)
	s.run(time.Minute)
	s.down = true
	s.leap(1500 * time.Millisecond)
	s.require(1, Off)
	wide := 2*errMax + time.Second
	s.time.Advance(wide)
	s.tables[1].TakeFar(s.time.Mono()-wide, Own{Wall: s.time.Now().Add(-wide / 2).UnixMicro()}, nil)
	s.require(1, Off)
}

// R6: a node that is right does not take it from one that leapt a little that it has leapt, too, however wide the answer.
func TestR6SmallLeapIsNotTakenOver(t *testing.T) {
	s := newSites(t)
	s.down = true
	s.run(2 * startWait)
	s.require(1, Agreed)
	const width, leapt = 800 * time.Millisecond, 1200 * time.Millisecond
	wall := s.time.Now().Add(leapt - width/2)
	s.tables[1].TakeAnswer(2, Answer{Sent: s.time.Mono() - width, Wall: wall.UnixMicro(), Unsure: true, Leapt: leapt})
	require.Zero(t, s.tables[1].Own().Leapt)
}
