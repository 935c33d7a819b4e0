package receive

import (
	"time"

	"antipode/geo"
)

// A source range at rest that is asked leaves out closed records (DESIGN, "At rest"). An answer that names the one that is
// here counts as a message of the range: there was none to send.
const (
	// restEvery is how often a source range is asked: more often than what is silent is compared, and several times in
	// ranges.restHolds.
	restEvery = 500 * time.Millisecond
	// restLater is the pause after a question that failed, as by a source of an earlier version.
	restLater = 2 * time.Second
)

// resting is the question to a source range.
type resting struct {
	asking bool
	at     time.Duration // not before
}

// askRest asks the source range for its last closed record.
func (rr *rangeReceiver) askRest(now time.Duration) {
	s := &rr.resting
	if s.asking || now < s.at || rr.mirror.closedT == 0 {
		return
	}
	// The questions about all ranges are at the same instants.
	s.asking, s.at = true, now.Truncate(restEvery)+restEvery
	rr.r.o.Source.Rest(rr.src.Range, func(i geo.Incarnation, t geo.Timestamp, err error) {
		rr.r.post(func(now time.Duration) {
			s.asking = false
			if err != nil {
				s.at = now + restLater
				return
			}
			if i == rr.mirror.incarnation && t == rr.mirror.closedT {
				rr.contact = rr.r.running.Time()
				rr.r.seen.contact(rr.src.Range)
			}
		})
	})
}
