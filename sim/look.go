package sim

import (
	"time"

	"antipode/geo"
	"antipode/stamp/ranges"
)

// One seed in restingEvery is a run in which receivers ask ranges at rest, so that these close for one who looks alone. In the
// others all close by time, as those that nobody asks (DESIGN, "At rest").
const restingEvery = 2

// lookEvery is how often somebody looks at Last Sync Times, who has ranges at rest close.
const lookEvery = 250 * time.Millisecond

// startLooks has somebody look from now on, where calls cross the link.
func (s *Sim) startLooks() {
	s.after(lookEvery, func() {
		for _, l := range s.locations {
			for _, id := range s.shipped {
				if r := l.Leader(id); r != nil && r.Rests() && s.callsFail() == nil {
					s.counts.Looked++
					s.event("%s r%d closes for one who looks", l.name, id)
					r.SubmitAll([]ranges.Command{&ranges.Close{}}, func(int, error) {})
				}
			}
		}
		s.startLooks()
	})
}

// Rest implements receive.Source.
func (l link) Rest(id geo.RangeID, done func(geo.Incarnation, geo.Timestamp, error)) {
	if !l.far.s.rests {
		return // No answer ever comes.
	}
	type answer struct {
		i geo.Incarnation
		t geo.Timestamp
	}
	call(l, func(a answer, err error) { done(a.i, a.t, err) }, func() (a answer, err error) {
		r := l.far.Leader(id)
		if r == nil {
			return a, errLink
		}
		a.i, a.t = r.Rest()
		return a, nil
	})
}
