package location

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp"
	"antipode/stamp/route"
)

const (
	// lookFresh is how old a closed time may be that is shown as it is: ranges that are written close as often.
	lookFresh = 250 * time.Millisecond
	// lookWait bounds how long one who looks waits: what is known then is true as well.
	lookWait = 500 * time.Millisecond
	lookPoll = 5 * time.Millisecond
	// lookPause is how long nobody looks after a call that failed.
	lookPause = 2 * time.Second
)

// looking is the state of Look.
type looking struct {
	// turn is that of one round at a time.
	turn chan struct{}
	// failed is when a call failed last, on the monotonic clock; only with the turn.
	failed time.Duration
}

// Look has the ranges of the other location that are at rest close (DESIGN, "At rest"), and waits until that is known here,
// lookWait at most: for one who is going to show a Last Sync Time. Calls at the same time share one round.
func (l *Location) Look(ctx context.Context) {
	s, err := l.Stamp()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	select {
	case l.looks.turn <- struct{}{}: // Everything may be fresh by now.
		defer func() { <-l.looks.turn }()
	case <-ctx.Done():
		return
	}
	if l.looks.failed != 0 && l.o.Clock.Mono()-l.looks.failed < lookPause {
		return
	}
	var round sync.WaitGroup
	var failed atomic.Bool
	for _, d := range l.from.Ranges() {
		if _, shown := l.closedNow(s, d); shown != 0 && l.o.Clock.Now().Sub(shown.Time()) > lookFresh {
			round.Go(func() {
				if l.lookAt(ctx, s, d) != nil {
					failed.Store(true)
				}
			})
		}
	}
	round.Wait()
	if failed.Load() {
		l.looks.failed = l.o.Clock.Mono()
	}
}

func (l *Location) lookAt(ctx context.Context, s *stamp.Stamp, d route.Range) error {
	_, t, err := l.far.Rest(ctx, d.ID, true)
	for err == nil {
		if closed, _ := l.closedNow(s, d); closed >= t {
			break
		}
		err = clock.Wait(ctx, lookPoll)
	}
	return err
}

// closedNow is the least closed time of a range of the other location that this process knows to be committed here, and the
// least as it is shown.
func (l *Location) closedNow(s *stamp.Stamp, d route.Range) (least, shown geo.Timestamp) {
	least, shown = ^geo.Timestamp(0), ^geo.Timestamp(0)
	for _, own := range l.o.Route.Holding(d.Span) {
		p, _ := s.ProgressNow(own.ID, geo.SourceRange{Origin: l.o.Other, Range: d.ID}, "")
		least, shown = min(least, p.Closed), min(shown, p.Shown())
	}
	return least, shown
}
