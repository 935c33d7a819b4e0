package receive

import (
	"maps"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/cursor"
)

// acks is what is sent to the source (R14): the cursors that moved since it last answered. All
// cursors are sent every ReconcileEvery, at the start, after calls that failed and with a full
// closed record in a frame (R16). The last two come with another leader of the source, which knows
// of no cursor.
type acks struct {
	at     time.Duration // not before
	flying bool
	failed bool
	// full is true while a full set is due: it is sent once the mirror was loaded for it.
	full   bool
	fullAt time.Duration
	// sentAt is when the last full set was due, but for the one at the start.
	sentAt time.Duration
	// lost are the streams that the source has deleted up to a number, above the cursor it got. below are
	// those of them whose cursor here is below it in truth.
	lost, below map[geo.Stream]geo.Seq
}

// fullPause is how soon the source gets a full set again where it, or the link, changes often.
const fullPause = 5 * time.Second

// renew makes a full set due.
func (a *acks) renew(now time.Duration) {
	if a.sentAt > 0 {
		now = max(now, a.sentAt+fullPause)
	}
	a.fullAt = min(a.fullAt, now)
}

// acknowledgeSource sends the cursors of what is committed here to the source (R14).
func (rr *rangeReceiver) acknowledgeSource(now time.Duration) {
	a, m := &rr.acks, &rr.mirror
	if now >= a.fullAt {
		if a.fullAt > 0 {
			a.sentAt = now
		}
		a.fullAt = now + rr.r.o.ReconcileEvery
		a.full, m.stale = true, m.stale || m.known
	}
	full := a.full && !m.stale && !m.loading
	if a.flying || now < a.at || !m.known || !full && len(m.moved) == 0 {
		return
	}
	sent := m.moved
	cursors := make(map[geo.Stream]Cursor, len(sent))
	if full {
		for st, h := range m.applied {
			if h.Seq > 0 {
				cursors[st] = Cursor{Head: h, Stop: rr.foundHere(st)}
			}
		}
	}
	for st := range sent { // Also where there is no cursor: the source may have stopped the stream before its first record came.
		cursors[st] = Cursor{m.applied[st], a.below[st], rr.foundHere(st)}
	}
	m.moved = map[geo.Stream]struct{}{}
	a.flying, a.at = true, now+rr.r.o.AckEvery
	a.full = a.full && !full
	asked := settlings{cursors, maps.Clone(rr.settling)}
	rr.r.o.Source.Acknowledge(rr.src.Range, cursors, full, func(mismatches []Mismatch, err error) {
		rr.r.post(func(now time.Duration) {
			rr.acknowledged(mismatches, sent, full, err, now)
			if err == nil {
				rr.settle(mismatches, asked)
			}
		})
	})
}

// foundHere returns why a stream is stopped if this location alone may know that. What falls out of the source's outbox
// it finds itself.
func (rr *rangeReceiver) foundHere(st geo.Stream) change.StopReason {
	if s, ok := rr.settling[st]; ok {
		return s.Reason
	}
	if why := rr.stopped[st]; why != change.StopBudget {
		return why
	}
	return change.NotStopped
}

// acknowledged handles the source's answer.
func (rr *rangeReceiver) acknowledged(mismatches []Mismatch, sent map[geo.Stream]struct{}, full bool, err error, now time.Duration) {
	a := &rr.acks
	a.flying = false
	if err != nil {
		maps.Copy(rr.mirror.moved, sent)
		a.full = a.full || full
		a.failed = true
		a.at = now + rr.r.o.RetryAfter
		return
	}
	for _, v := range mismatches {
		if !v.Reason.Settles() {
			rr.mismatch(v, now)
		}
	}
	if a.failed {
		a.failed = false
		a.renew(now)
	}
}

// mismatch handles a cursor that does not fit the source's stream (R16). What the source has stopped
// is stopped here too. Otherwise the case is not proven yet, and the source gets the cursor again; of a
// loss only after the range here was read under its lease, since a cursor may have been read before the
// one that let the records go.
//
//	lost: not read ──a read that began later, and is below──> below ──the source stops──> stopped here
//	      not read ──a read that is not below, or an epoch that this location has left──> no loss
func (rr *rangeReceiver) mismatch(v Mismatch, now time.Duration) {
	a, m := &rr.acks, &rr.mirror
	if v.Stopped {
		delete(a.below, v.Stream)
		delete(a.lost, v.Stream)
		_, did := rr.stopped[v.Stream]
		switch {
		case did:
		case !v.Reason.Known(): // The source is of a later version (R11). Its reason cannot be kept here.
			v.Reason, v.There = change.StopVersion, geo.Head{Seq: m.applied[v.Stream].Seq + 1}
			rr.stop(v, now)
		case v.Reason != change.StopPoison && v.Reason != change.StopVersion:
			// What only this location finds it finds again; it may have been let go on here already (R11).
			rr.stop(v, now)
		}
		return
	}
	a.at = now + rr.r.o.RetryAfter
	if v.Reason == change.StopLost && a.below[v.Stream] != v.There.Seq {
		delete(a.below, v.Stream)
		a.lost[v.Stream] = v.There.Seq
		m.reload()
		return
	}
	m.moved[v.Stream] = struct{}{}
}

// confirm takes a progress that was read after the source had answered that streams are deleted there up
// to these numbers. Streams of an epoch that this location has left have no cursor here: the source is a former primary
// that does not know so yet (R22).
func (rr *rangeReceiver) confirm(asked map[geo.Stream]geo.Seq, p cursor.Progress) {
	a := &rr.acks
	for st, upTo := range asked {
		if a.lost[st] != upTo {
			continue
		}
		delete(a.lost, st)
		if p.HasEnded(st) {
			continue
		}
		if rr.mirror.applied[st].Seq < upTo {
			a.below[st] = upTo
		}
		rr.mirror.moved[st] = struct{}{}
	}
}
