package receive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
)

// taker is an applier that keeps what it is given, and does not answer.
type taker struct {
	Applier
	got []*Batch
}

func (a *taker) Apply(b *Batch, _ func(error)) { a.got = append(a.got, b) }

// R16: a full closed record that did not join leaves its source in doubt: those that follow are done with, untaken,
// until a full one joins. A closed record that waits for the clock here is tried again, and none is in doubt.
//
// Capability: Two locations: Disks of a location that were set back cannot make Last Sync Time wrong (R12, R16).
// Capability: Two locations: A fork or a loss is settled by stream, for the primary's side (R16).
func TestR16DoubtedSourceNeedsAFullOne(t *testing.T) {
	w := newWorld(t, 1)
	o, applier := w.options(testRange), &taker{}
	o.Applier = applier
	rr := New(o).ranges[testRange]
	rr.mirror.closedT = 10
	p := &pending{}
	closed := func(at geo.Timestamp, full bool) item {
		p.open++
		return item{closed: &change.Closed{Origin: testOrigin, Range: testRange, T0: at - 10, T: at, Full: full}, from: p}
	}
	outcome := func(taken bool, ahead time.Duration) {
		t.Helper()
		b := applier.got[len(applier.got)-1]
		b.ClosedTaken, b.ClosedAhead = taken, ahead
		rr.committed(b, nil, 0)
	}
	rr.frames = []item{closed(20, true)}
	rr.commit()
	rr.frames = []item{closed(30, false)}
	outcome(false, 0)
	require.Len(t, applier.got, 1, "it would join the chain of before")
	require.Zero(t, p.open, "both are done with")
	require.True(t, rr.needFull)
	require.False(t, rr.committing)
	require.Zero(t, rr.mirror.closedT, "the source is not asked whether it rests")
	require.True(t, rr.mirror.stale)
	pause := rr.r.o.RetryAfter
	require.Equal(t, pause, rr.fullAt)
	for range 9 {
		rr.frames = []item{closed(20, true)}
		rr.commit()
		outcome(false, 0)
		pause = min(2*pause, fullPauseMax)
		require.Equal(t, pause, rr.fullAt)
	}
	applier.got = applier.got[:1]

	rr.frames = []item{closed(40, false), closed(50, true)}
	rr.commit()
	require.Len(t, applier.got, 2)
	require.EqualValues(t, 50, applier.got[1].Closed.T)
	rr.frames = []item{closed(60, false)}
	outcome(true, 0)
	require.Len(t, applier.got, 3, "none is in doubt")
	require.Zero(t, rr.fullPause)
	outcome(true, 0)

	rr.frames = []item{closed(70, true)}
	rr.commit()
	rr.frames = []item{closed(80, false)}
	outcome(false, time.Second)
	require.Len(t, applier.got, 5, "it waits for the clock, which puts nothing in doubt")
}
