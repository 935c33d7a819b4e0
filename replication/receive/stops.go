package receive

import (
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// reportStops raises an alarm, once per receiver, for each stream that may not go on, which is state
// of the local range, found here or at the source (R16); for a copy that fell out of the source's outbox, whose
// streams all stop, it raises one (R18). An operator has to decide, but for what an upgrade ends: see again.go.
func (rr *rangeReceiver) reportStops(stops []cursor.StreamStop) {
	before := rr.stopped
	rr.stopped = make(map[geo.Stream]change.StopReason, len(stops))
	fell := map[geo.Account]bool{}
	for st, why := range before {
		if why == change.StopBudget {
			fell[st.Account] = true
		}
	}
	stops = rr.takeSettling(stops)
	for _, s := range stops {
		rr.pulls.end(s.Stream)
		rr.stopped[s.Stream] = s.Reason
		if s.Reason.MaySettle() {
			rr.mirror.moved[s.Stream] = struct{}{} // An operator may let the source offer a base.
		}
		if _, did := before[s.Stream]; did {
			continue
		}
		rr.mirror.moved[s.Stream] = struct{}{} // The source compares its end (R16).
		if s.Reason == change.StopBudget {
			if fell[s.Stream.Account] {
				continue
			}
			fell[s.Stream.Account] = true
		}
		rr.r.o.Alarm(alarmOf(s.Reason))
		says := "stream stopped; an operator has to decide"
		if s.Reason == change.StopVersion {
			says = "stream stopped: its next record is of a later version; upgrade this location"
		}
		rr.r.o.Logger.Error(says, "stream", s.Stream, "reason", s.Reason, "here", s.Here.Seq, "there", s.There.Seq)
	}
}

// reportRefused raises an alarm for each stream of which a record was refused, unless it is one of an epoch that this
// location has left: those of a former primary that does not know yet are nothing that somebody has to look at (R22).
func (rr *rangeReceiver) reportRefused(p cursor.Progress) {
	for _, st := range slices.SortedFunc(maps.Keys(rr.unreported), geo.Stream.Compare) {
		if seq := rr.unreported[st]; !p.HasEnded(st) {
			rr.r.o.Alarm(AlarmEpoch)
			rr.r.o.Logger.Error("record refused: its epoch is below the gate's", "stream", st, "seq", seq)
		}
	}
	clear(rr.unreported)
}

// alarmOf is the alarm of a stop.
func alarmOf(r change.StopReason) string {
	switch r {
	case change.StopForked:
		return AlarmFork
	case change.StopLost:
		return AlarmLost
	case change.StopPoison:
		return AlarmPoison
	case change.StopVersion:
		return AlarmVersion
	case change.StopBudget:
		return AlarmBudget
	case change.NotStopped, change.StopSettling, change.StopTaking:
	}
	return r.String()
}
