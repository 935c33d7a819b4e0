package receive

import (
	"errors"
	"time"

	"antipode/geo"
)

// A closed record of a later version promises nothing here (R11): the records of its frame, batch and range are
// applied, no other range notices, and the sync times of the range stand still until this location is upgraded.

// laterPause is how long the full closed record is not pulled again after it was of a later version: it has a
// head for each stream.
const laterPause = 30 * time.Second

// laterClosed handles a closed record that cannot be decoded for its version, here or at the node that evaluates.
func (rr *rangeReceiver) laterClosed(now time.Duration) {
	rr.needFull, rr.fullAt, rr.laterAt = true, now+laterPause, now
	if rr.later {
		return
	}
	rr.later = true
	rr.r.seen.closedLater(rr.src.Range, errLaterClosed)
	rr.r.o.Alarm(AlarmVersion)
	rr.r.o.Logger.Error("closed record of a later version: Last Sync Time stands still until this location is upgraded",
		"origin", rr.src.Origin, "range", rr.src.Range)
}

// laterAgain is after how long without one the episode ends: the bus may deliver older messages again.
const laterAgain = 5 * time.Second

// knownClosed ends the episode: a closed record was taken.
func (rr *rangeReceiver) knownClosed(now time.Duration) {
	if rr.later && now-rr.laterAt >= laterAgain {
		rr.later = false
		rr.r.seen.closedLater(rr.src.Range, nil)
	}
}

// errLaterClosed is the trouble of a range while its closed records are of a later version.
var errLaterClosed = errors.New("the closed records of the source are of a later version; upgrade this location")

// closedLater keeps that the closed records of a range are of a later version, or, with nil, that they are not.
func (v *observer) closedLater(id geo.RangeID, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ranges[id].later.ended(err, v.clock.Mono())
}
