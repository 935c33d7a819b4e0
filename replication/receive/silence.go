package receive

import "time"

// checkSilence raises an alarm, once, when nothing was received of a range for too long: since the last
// contact, or since the range is expected to send, which it may never have done.
func (rr *rangeReceiver) checkSilence(ran time.Duration) {
	limit := rr.r.o.SilenceAfter
	if limit == 0 {
		return
	}
	if !rr.r.o.Applier.Expects(rr.src) {
		rr.contact, rr.silent = 0, 0 // A range that ships no account sends nothing (R12).
		return
	}
	if rr.contact == 0 {
		rr.contact = ran
	}
	rr.compareSilent(ran)
	if ran-rr.contact < limit {
		rr.silent = 0
		return
	}
	if rr.silent == 0 {
		rr.silent = ran
		rr.r.o.Alarm(AlarmSilence)
		rr.r.o.Logger.Warn("no contact with a range; Last Sync Time stands still", "origin", rr.src.Origin, "range", rr.src.Range)
	}
}

// Of a range that is silent: after how long, and how often at most, its source gets all cursors; comparePause
// is added for each cursor, so that this takes some 60 KB/s at most.
const (
	compareAfter = time.Second
	comparePause = time.Millisecond
)

// compareSilent makes the source compare all cursors while nothing comes off the bus: what it lost in a recovery
// shows in no cursor that moves, and would else be found at the next ReconcileEvery (R16).
func (rr *rangeReceiver) compareSilent(ran time.Duration) {
	if ran-rr.contact < compareAfter || ran < rr.compareAt {
		return
	}
	rr.compareAt = ran + compareAfter + time.Duration(len(rr.mirror.applied))*comparePause
	rr.acks.fullAt = 0
}
