package sim

import (
	"fmt"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/replication/receive"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// copied is the last record of a stream of this range at the other location.
func (h *history) copied(st geo.Stream) geo.Head { return h.l.far.history[h.id].m.cursors[st] }

// forked reports whether the copy of a stream holds a record that this range lost, or the range
// numbered one since that breaks its promise: no time may be shown over it.
func (h *history) forked(st geo.Stream) bool { return h.copiedLost(st) || h.breaks(st) }

// copiedLost reports whether the copy of a stream holds a record that this range lost.
func (h *history) copiedLost(st geo.Stream) bool {
	at, list := h.copied(st), h.sent[st]
	return h.incarnation != 0 && at.Seq > 0 && (at.Seq > geo.Seq(len(list)) || list[at.Seq-1].hash != at.Hash)
}

// breaks reports whether the first record that the copy of a stream does not have is of the time up to
// which the range had promised that it has all, before it was recovered.
func (h *history) breaks(st geo.Stream) bool {
	at, list := h.copied(st), h.sent[st]
	return at.Seq < geo.Seq(len(list)) && h.added(list[at.Seq]) && list[at.Seq].time <= h.broken
}

// added reports whether a record was committed by the recovery, or since.
func (h *history) added(r sent) bool {
	return h.incarnation != 0 && r.incarnation == h.incarnation || h.revived[r.hash]
}

// lossy reports whether the range was recovered in either location.
func (h *history) lossy() bool { return h.incarnation != 0 || h.l.far.history[h.id].incarnation != 0 }

// mustStop returns why a stream of this range may not go on.
func (h *history) mustStop(st geo.Stream) change.StopReason {
	switch p := h.s.poisoned; {
	case h.fellOut(st):
		return change.StopBudget
	case p != nil && p.stream == st:
		return change.StopPoison
	case h.forked(st):
		return change.StopForked
	case h.m.trimmed[st] > h.copied(st).Seq, h.foundLost(st):
		return change.StopLost
	}
	return change.NotStopped
}

// fellOut reports whether a stream fell out of this range's outbox (R18).
func (h *history) fellOut(st geo.Stream) bool { return h.m.stops[st].Reason == change.StopBudget }

// foundLost reports whether the range has found that the copy of a stream lost records, and stopped it. That stands,
// although the bus may bring the copy up to date since.
func (h *history) foundLost(st geo.Stream) bool { return h.m.stops[st].Reason == change.StopLost }

// streams lists all streams of an account's present epoch in this range that either location knows.
func (h *history) streams(a geo.Account) []geo.Stream {
	all := map[geo.Stream]bool{}
	for _, known := range []map[geo.Stream]geo.Head{h.m.heads, h.l.far.history[h.id].m.cursors} {
		for st := range known {
			if st.Account == a && st.Range == h.id && st.Epoch.Location == h.l.name && !h.ended(st) {
				all[st] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), geo.Stream.Compare)
}

// checkStop: a stream is stopped only for a reason.
func (h *history) checkStop(st geo.Stream, why *change.Stop) {
	from := h
	if st.Epoch.Location != h.l.name {
		from = h.l.far.history[st.Range]
	}
	if from.ended(st) {
		return // It decides nothing any more.
	}
	if from == h && why.Reason == change.StopBudget && h.s.budget > 0 {
		h.s.event("%s r%d: %s fell out", h.l.name, h.id, st)
		return
	}
	if must := from.mustStop(st); why.Reason != must {
		h.fail(ErrStopped, "%s: %q, want %q: the copy is at #%d, the source at #%d, trimmed up to #%d", st, why.Reason, must,
			from.copied(st).Seq, from.m.heads[st].Seq, from.m.trimmed[st])
		return
	}
	h.s.counts.StreamStopped++
	h.s.event("%s r%d: %s stopped: %s", h.l.name, h.id, st, why.Reason)
}

// checkTrim: a record is deleted only once the other location has it, and not another one under its
// number (R16). A stream is forgotten only once its epoch has ended there too (R13).
func (h *history) checkTrim(st geo.Stream, n geo.Seq) {
	far := h.l.far.history[st.Range]
	left := far.incarnation != far.m.compared || far.m.gates[st.Account].Epoch.Compare(st.Epoch) > 0
	if n == 0 && (!h.ended(st) || !left) {
		h.fail(ErrConserved, "%s is forgotten, and the other location has not left its epoch", st)
	}
	if list := h.sent[st]; !h.ended(st) && n > 0 && n <= geo.Seq(len(list)) && h.added(list[n-1]) && h.copiedLost(st) {
		h.fail(ErrConserved, "%s: deleted up to #%d, where the other location has another record than this", st, n)
	}
}

// mayAlarm reports whether an alarm has a cause.
func (s *Sim) mayAlarm(reason string) bool {
	if s.moves != nil {
		return true // Of a stream that has ended meanwhile. What is stopped is checked: see checkStop.
	}
	want, ok := map[string]change.StopReason{receive.AlarmFork: change.StopForked, receive.AlarmLost: change.StopLost, receive.AlarmBudget: change.StopBudget}[reason]
	if !ok {
		return false
	}
	for _, a := range s.accounts {
		for _, id := range s.shipped {
			for _, st := range a.home.history[id].streams(a.name) {
				if a.home.history[id].mustStop(st) == want {
					return true
				}
			}
		}
	}
	return false
}

// checkForgotten: at the end nothing is known of streams of former epochs (R13).
func (h *history) checkForgotten() {
	for _, st := range slices.SortedFunc(maps.Keys(h.m.heads), geo.Stream.Compare) {
		if h.ended(st) && !h.keeps(st) {
			h.fail(ErrConserved, "%s has ended, and its head is kept", st)
		}
	}
}

// checkConserved: the records of each stream are accounted for, at both ends (R14, R16).
func (s *Sim) checkConserved() {
	for _, l := range s.locations {
		for _, id := range s.shipped {
			h := l.history[id]
			for _, a := range s.accounts {
				if a.home == l {
					for _, st := range h.streams(a.name) {
						h.checkStream(st)
					}
				}
			}
		}
	}
}

// checkStream: trimmed <= cursor <= head.
func (h *history) checkStream(st geo.Stream) {
	head, trimmed, at := h.m.heads[st], h.m.trimmed[st], h.copied(st)
	confirmed := max(at.Seq, h.l.far.history[h.id].received[st])
	switch {
	case h.ended(st):
	case trimmed > confirmed && !h.fellOut(st):
		h.fail(ErrConserved, "%s: deleted up to #%d, the other location has #%d", st, trimmed, confirmed)
	case at.Seq > head.Seq && !h.forked(st):
		h.fail(ErrConserved, "%s: the other location has #%d, the head is #%d", st, at.Seq, head.Seq)
	case head.Seq != geo.Seq(len(h.sent[st])):
		h.fail(ErrConserved, "%s: the head is #%d, %d were numbered", st, head.Seq, len(h.sent[st]))
	}
}

// stopped returns what is missing of the stops of an account's streams, "" for nothing. any means
// that it must have one.
func (s *Sim) stopped(a *account, svc geo.Service) (missing string, any bool) {
	for _, id := range [...]geo.RangeID{geo.FirstRange(svc), geo.FirstRange(geo.Catalog)} {
		h := a.home.history[id]
		if !h.lossy() && s.budget == 0 {
			continue
		}
		for _, st := range h.streams(a.name) {
			must := h.mustStop(st)
			if must == change.NotStopped {
				continue
			}
			any = true
			for _, end := range []*history{h, h.l.far.history[id]} {
				if why, ok := end.m.stops[st]; !ok || why.Reason != must {
					missing = fmt.Sprintf("%s: %s should be stopped: %s", end.l.name, st, must)
				}
			}
		}
	}
	if any && missing == "" && a.synced[svc].live {
		missing = fmt.Sprintf("%s %s is live, with a stream that is stopped", a.name, svc)
	}
	return missing, any
}

// promisedBy returns up to which number a stream of this range must be at the other location when that
// shows a Last Sync Time. It fails the run where none may be shown at all.
func (h *history) promisedBy(st geo.Stream, lastSync geo.Timestamp) geo.Seq {
	want := h.upTo(st, lastSync)
	if h.incarnation == 0 {
		return want
	}
	if h.forked(st) {
		if h.announced || lastSync > h.broken {
			h.fail(ErrHidden, "%s: %d is shown, with #%d there; %d was promised before the recovery (announced since: %t)",
				st, lastSync, h.copied(st).Seq, h.broken, h.announced)
		}
		return min(want, h.kept(st))
	}
	return want
}

// kept is how many records of a stream survived the last recovery.
func (h *history) kept(st geo.Stream) geo.Seq {
	n := slices.IndexFunc(h.sent[st], h.added)
	if n < 0 {
		n = len(h.sent[st])
	}
	return geo.Seq(n)
}

// backlog returns which records of streams that may go on are still in the outbox, "" for none.
func (h *history) backlog() string {
	for _, st := range slices.SortedFunc(maps.Keys(h.m.heads), geo.Stream.Compare) {
		if h.m.trimmed[st] < h.m.heads[st].Seq && !h.keeps(st) && (h.ended(st) || h.mustStop(st) == change.NotStopped) {
			return fmt.Sprintf("%s r%d: %s is at #%d, deleted up to #%d", h.l.name, h.id, st, h.m.heads[st].Seq, h.m.trimmed[st])
		}
	}
	return ""
}

// inStopped reports whether a partition is in a stream that may not go on.
func (s *Sim) inStopped(p keys.Partition) bool {
	h := s.account(p.Account).home.history[geo.FirstRange(p.Service)]
	if !h.lossy() && s.budget == 0 {
		return false
	}
	for _, st := range h.streams(p.Account) {
		if st.Lane == p.Lane() && h.mustStop(st) != change.NotStopped {
			return true
		}
	}
	return false
}

// countStopped counts the streams that are stopped at the end.
func (s *Sim) countStopped() {
	for _, a := range s.accounts {
		for _, id := range s.shipped {
			h := a.home.history[id]
			for _, st := range h.streams(a.name) {
				switch h.mustStop(st) {
				case change.StopForked:
					s.counts.Forked++
				case change.StopLost:
					s.counts.ReceiverLost++
				case change.StopBudget:
					s.counts.FellOut++
				}
			}
		}
	}
}
