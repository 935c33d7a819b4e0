package location

import (
	"maps"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/change"
)

// settlePauseMax bounds the pause between two tries of a settlement.
const settlePauseMax = time.Minute

// settleTries decides when a settlement is tried again. A try compares whole lanes, and the others wait meanwhile: so one
// that could not end, and changed nothing, is tried again after a pause that doubles from settleEvery to settlePauseMax.
type settleTries struct {
	clock clock.Clock
	of    map[settlement]*settleTry
}

// settleTry is the last try of a settlement that has not ended.
type settleTry struct {
	// stops are what it was tried with: with others, as after a command, it is another one.
	stops map[geo.Lane]change.Stop
	pause time.Duration
	next  time.Duration
	err   string
}

// due reports whether a settlement is to be tried now.
func (t *settleTries) due(of settlement, stops map[geo.Lane]change.Stop) bool {
	last := t.of[of]
	return last == nil || !maps.Equal(last.stops, stops) || t.clock.Mono() >= last.next
}

// ended takes the result of a try, and reports whether its error is another one than before.
func (t *settleTries) ended(of settlement, stops map[geo.Lane]change.Stop, changed bool, err error) (news bool) {
	now, last := t.clock.Mono(), t.of[of]
	maps.DeleteFunc(t.of, func(_ settlement, s *settleTry) bool { return now > s.next+2*settlePauseMax }) // They are gone.
	if err == nil {
		delete(t.of, of)
		return false
	}
	try := &settleTry{stops: stops, pause: settleEvery, err: err.Error()}
	if last != nil && !changed && maps.Equal(last.stops, stops) {
		try.pause = min(2*last.pause, settlePauseMax)
	}
	try.next = now + try.pause
	t.of[of] = try
	return last == nil || last.err != try.err
}
