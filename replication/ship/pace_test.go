package ship

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
)

// line is a bus behind a line of some bytes per second, which stores what was published in its turn.
type line struct {
	*world
	perSecond int
	free      time.Duration
	at        []time.Duration // when each publish under way is stored
	worst     time.Duration   // from a publish to its answer
	frames    int
	largest   int
}

// pass lets some time pass in small steps, and answers what is stored by then.
func (l *line) pass(d time.Duration) {
	const tick = 10 * time.Millisecond
	for end := l.now + d; l.now < end; {
		l.clock.Advance(tick)
		l.step(tick)
		for len(l.at) < len(l.flying) {
			p := l.flying[len(l.at)]
			began := max(l.free, l.now)
			l.free = began + time.Duration(p.size)*time.Second/time.Duration(l.perSecond)
			l.at = append(l.at, l.free)
			l.worst = max(l.worst, l.free-l.now)
			l.frames++
			l.largest = max(l.largest, p.size)
		}
		for len(l.at) > 0 && l.at[0] <= l.now {
			p := l.flying[0]
			l.flying, l.at = l.flying[1:], l.at[1:]
			l.receiver.take(&p.frame)
			p.done(nil)
		}
	}
}

// Behind a narrow line the frames under way are what the line carries in about a second: no publish lasts until the
// bus seems to be silent (5 s), at any width, and the line is never idle while there is a backlog. When it
// becomes wide again, so does the window, within seconds.
//
// Capability: Two locations: A narrow line between the locations.
func TestPaceFollowsTheLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.gates("a")
	parts := lanes("a")
	w.write(10, false, parts...)
	w.drain(nil)
	for range 48 {
		w.write(4<<10, false, parts...) // 6 MiB
	}
	l := &line{world: w, perSecond: 100 << 10}
	l.pass(10 * time.Second)
	l.worst, l.largest = 0, 0
	before := l.free
	l.pass(20 * time.Second)
	require.Less(t, l.worst, 2*time.Second, "from a publish to its answer")
	require.Less(t, l.largest, 64<<10, "a frame")
	require.InDelta(t, 20, (l.free - before).Seconds(), 1, "seconds in which the line was busy")
	require.Zero(t, w.receiver.doubled)

	l.perSecond, l.frames = 100<<20, 0
	l.pass(5 * time.Second)
	w.complete()
	require.Zero(t, w.receiver.doubled, "bytes that crossed twice")
}

// After a failed publish what flew is sent again frame by frame, then at most twice as much in each round trip.
func TestPaceAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Bounds: wide})
	w.gates("a")
	parts := lanes("a")
	for range 16 {
		w.write(16<<10, false, parts...)
	}
	w.step(0)
	require.Len(t, w.flying, w.ship.o.FlyingMax)
	w.answer(bus.ErrUnavailable)
	w.step(0)
	for round, most := 0, 1; round < 5; round++ {
		w.step(200 * time.Millisecond)
		require.NotEmpty(t, w.flying)
		require.LessOrEqual(t, len(w.flying), most, "round %d", round)
		w.arrive(nil)
		if round > 0 {
			most *= 2
		}
	}
	w.drain(nil)
	w.complete()
	require.Zero(t, w.receiver.doubled)
}
