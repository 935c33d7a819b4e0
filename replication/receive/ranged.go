package receive

import (
	"cmp"
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
)

// rangeReceiver applies the streams of one source range at this location: one commit at a time,
// of everything that waits. States of a stream:
//
//	following ──gap, wait, behind a closed head──> pulling
//	pulling ──pulled past the last number dropped──> following
//	following ──its range stands (see window)──> pulling
//	any ──stopped in the local range──> stopped (stands until an operator decides)
type rangeReceiver struct {
	r   *Receiver
	src geo.SourceRange

	waiting

	pulls    pulls
	stopped  map[geo.Stream]change.StopReason // reported as such
	settling map[geo.Stream]change.Stop       // their forks are being settled: see settle.go
	settled  map[geo.Stream]settled           // those of them whose settlement has ended at the source
	again    map[geo.Stream]*again            // of stops that a later version does not need: see again.go
	refused  map[geo.Stream]struct{}          // nothing of them is ever taken
	// unreported are those of refused that are to be reported, with the number of a record.
	unreported map[geo.Stream]geo.Seq
	mirror     mirror
	checkAt    time.Duration // of the streams behind
	acks       acks

	needFull bool // the full closed record has to be pulled
	// doubted: the last full closed record did not show of every stream whether the source has what is applied here, or did
	// not join. Until one does, no other is taken: it would join the chain of before and pass over what the source lost (R16).
	doubted     bool
	fullFlying  bool
	fullAt      time.Duration // not before
	fullPause   time.Duration // after one that was refused, doubled for each up to fullPauseMax
	later       bool          // its closed records are of a later version, the last one at laterAt
	laterAt     time.Duration
	pulledItems []item
	ahead       *closedAhead // see ahead.go
	resting     resting      // see rest.go

	contact, silent time.Duration // running time
	compareAt       time.Duration // running time, not before; see compareSilent
}

// fullPauseMax bounds the pause after a full closed record that was refused: its time may be long before what the range
// here needs after a recovery with loss.
const fullPauseMax = 2 * time.Second

// checkEvery is how often a rangeReceiver looks for streams behind their closed heads.
const checkEvery = 100 * time.Millisecond

func (rr *rangeReceiver) step(now, ran time.Duration) time.Duration {
	if now >= rr.retryAt {
		rr.commit()
	}
	rr.load(now)
	rr.checkBehind(now, ran)
	rr.retryClosed(now)
	rr.pullFull(now)
	rr.askRest(now)
	next := min(checkEvery, rr.pulls.step(rr, now))
	if now >= rr.retryAt {
		rr.commit() // Of records that were kept.
	}
	rr.acknowledgeSource(now)
	rr.checkSilence(ran)
	rr.reportAhead(now)
	if len(rr.mirror.moved) > 0 {
		next = min(next, max(rr.acks.at-now, time.Millisecond))
	}
	return next
}

// commit submits everything that waits to the applier, up to the bound of a batch. Pulled records
// go first, since the others wait for them.
func (rr *rangeReceiver) commit() {
	if rr.committing || len(rr.frames)+len(rr.pulledItems) == 0 {
		return
	}
	b := &Batch{Source: rr.src}
	size := 0
	take := func(queue *[]item, sizeMax int) {
		for len(*queue) > 0 && size < sizeMax && b.Closed == nil {
			it := (*queue)[0]
			*queue = (*queue)[1:]
			rr.flying = append(rr.flying, it)
			if it.closed != nil {
				if !it.closed.Full && (rr.doubted || rr.fold(it.closed, *queue, sizeMax-size)) {
					it.done() // The later one promises more.
					rr.bytes -= it.bytes
					rr.flying = rr.flying[:len(rr.flying)-1]
					continue
				}
				b.Closed = it.closed
				continue
			}
			b.Records = append(b.Records, it.rec)
			size += len(it.rec.Bytes)
		}
	}
	pulledMax := rr.r.o.BatchBytesMax
	if len(rr.frames) > 0 {
		pulledMax /= 2 // Frames of the bus must not stand still while pulls go on.
	}
	take(&rr.pulledItems, max(1, pulledMax))
	take(&rr.frames, rr.r.o.BatchBytesMax)
	if len(rr.flying) == 0 {
		return
	}
	rr.committing = true
	rr.r.o.Applier.Apply(b, func(err error) {
		rr.r.post(func(now time.Duration) { rr.committed(b, err, now) })
	})
}

// fold joins a closed record into the next one of the queue, if that follows it: the heads of (T0, T]
// and (T, T'] together are those of (T0, T']. The records between have to fit the batch: where the
// queue is always longer, the closed time would stand still. A full one does not stand for those
// before it: it may be refused where they are taken, as for a time ahead of the clock here (R6).
func (rr *rangeReceiver) fold(c *change.Closed, queue []item, room int) bool {
	for i := range queue {
		n := queue[i].closed
		if n == nil {
			if room -= len(queue[i].rec.Bytes); room <= 0 {
				return false
			}
			continue
		}
		if n.Full || n.T0 > c.T || n.Incarnation != c.Incarnation {
			return false
		}
		have := make(map[geo.Stream]bool, len(n.Heads))
		for _, h := range n.Heads {
			have[n.Stream(h)] = true
		}
		for _, h := range c.Heads {
			if !have[c.Stream(h)] {
				n.Heads = append(n.Heads, h)
				queue[i].bytes += headBytes
				rr.bytes += headBytes
			}
		}
		n.T0, n.Wall = min(n.T0, c.T0), cmp.Or(n.Wall, c.Wall)
		return true
	}
	return false
}

// committed handles the outcomes of a batch.
func (rr *rangeReceiver) committed(b *Batch, err error, now time.Duration) {
	items := rr.flying
	rr.committing, rr.flying = false, nil
	if err != nil {
		// It is unknown whether the batch took effect: submit it again; duplicates are dropped.
		rr.retryAt = now + rr.r.o.RetryAfter
		rr.frames = append(items, rr.frames...)
		return
	}
	rr.movedAt, rr.standing = rr.r.running.Time(), false
	for _, it := range items {
		if it.rec != nil {
			rr.resolve(it.rec, it.pull, now)
		}
		rr.bytes -= it.bytes
		it.done()
		rr.release(&it)
	}
	if b.Closed != nil {
		if b.Closed.Full {
			rr.doubted = !b.ClosedTaken && b.ClosedAhead == 0
		}
		switch {
		case b.ClosedTaken:
			rr.mirror.close(b.Closed, rr.movedAt)
			rr.knownClosed(now)
			rr.fullPause = 0
		case b.ClosedLater:
			rr.laterClosed(now)
		default:
			if b.Closed.Full {
				rr.fullRefused(b.ClosedAhead > 0, now)
			}
			if rr.mirror.voided(b) {
				rr.mirror.reload()
			}
		}
		if b.ClosedStops {
			rr.mirror.reload() // They are reported from the progress.
		}
		rr.resolveClosed(b, now)
	}
	rr.commit()
}

// fullRefused has the next full closed record come after a pause. What waits for the clock here has its own: see ahead.go.
func (rr *rangeReceiver) fullRefused(ahead bool, now time.Duration) {
	if !ahead {
		rr.fullPause *= 2
	}
	rr.fullPause = min(max(rr.fullPause, rr.r.o.RetryAfter), fullPauseMax)
	rr.fullAt = now + rr.fullPause
}

// resolve acts on the outcome of a record, which pulled is not nil of if it was pulled. A record that
// cannot be applied now is not kept in memory: its stream is pulled.
func (rr *rangeReceiver) resolve(rec *Record, pulled *pull, now time.Duration) {
	st := rec.Record.Stream()
	if pulled != nil && rec.Outcome != Applied {
		pulled.later(rr, now)
	}
	switch rec.Outcome {
	case Applied:
		delete(rr.stopped, st) // An operator let it go on.
		if p := rr.pulls.of[st]; p != nil {
			p.moved(rr, now)
		}
		rr.mirror.advance(rec, rr.r.running.Time())
	case Duplicate:
		rr.mirror.again(st, rec.Record.Seq)
	case Gap:
		if rec.Record.Seq == rr.mirror.applied[st].Seq+1 {
			rr.mirror.stale = true // It is ahead of what is committed.
		}
		if p := rr.pulls.of[st]; p == nil || p.behind {
			rr.r.o.Alarm(AlarmGap)
		}
		rr.leaveToPull(st, rec.Record.Seq)
	case Wait:
		if p := rr.leaveToPull(st, rec.Record.Seq); rec.Record.Seq == rr.mirror.applied[st].Seq+1 {
			p.waits(rr, rec, now)
		}
	case Fork, Stopped:
		rr.pulls.end(st)
		if _, did := rr.stopped[st]; !did {
			rr.mirror.reload() // It is reported from the progress.
		}
	case Refused:
		rr.pulls.end(st)
		if _, did := rr.refused[st]; !did {
			rr.refused[st], rr.unreported[st] = struct{}{}, rec.Record.Seq
			rr.mirror.reload()
		}
	case Void:
		rr.r.o.Logger.Warn("record dropped: the source lost it in a recovery", "stream", st, "seq", rec.Record.Seq)
	case Undecodable, UnknownVersion:
		reason := change.StopPoison
		if rec.Outcome == UnknownVersion {
			reason = change.StopVersion
		}
		rr.undecodable(rr.leaveToPull(st, rec.Record.Seq), geo.Head{Seq: rec.Record.Seq, Hash: change.HashOf(rec.Bytes)}, reason, now)
	}
}

// mayPull reports whether records of a stream may still be taken here.
func (rr *rangeReceiver) mayPull(st geo.Stream) bool {
	_, stopped := rr.stopped[st]
	_, refused := rr.refused[st]
	return !stopped && !refused
}

// stop makes durable here what the source found and has stopped.
func (rr *rangeReceiver) stop(v Mismatch, now time.Duration) {
	rr.acks.at = max(rr.acks.at, now+rr.r.o.RetryAfter) // It is not answered again meanwhile.
	rr.r.o.Applier.Stop(v.Stream, change.Stop{Reason: v.Reason, There: v.There}, func(err error) {
		rr.r.post(func(now time.Duration) {
			if err != nil { // The source answers the same again.
				rr.mirror.moved[v.Stream] = struct{}{}
				rr.acks.at = now + rr.r.o.RetryAfter
				return
			}
			rr.mirror.reload()
		})
	})
}

// pullFull fetches the full closed record when the chain of closed records broke.
func (rr *rangeReceiver) pullFull(now time.Duration) {
	if !rr.needFull || rr.fullFlying || rr.standing || rr.ahead != nil || now < max(rr.retryAt, rr.fullAt) {
		return
	}
	rr.fullFlying = true
	rr.r.o.Source.Closed(rr.src.Range, func(c *change.Closed, err error) {
		rr.r.post(func(now time.Duration) {
			rr.fullFlying = false
			if errors.Is(err, change.ErrVersion) {
				rr.laterClosed(now)
				return
			}
			if err != nil {
				rr.retryAt = now + rr.r.o.RetryAfter
				return
			}
			rr.needFull = false
			rr.contact = rr.r.running.Time()
			rr.takeClosed(c)
		})
	})
}

// takeClosed puts a closed record before the pulled records, of which there may always be some. It
// needs none of them: streams that are below its heads are behind.
func (rr *rangeReceiver) takeClosed(c *change.Closed) {
	rr.pulledItems = append([]item{{closed: c}}, rr.pulledItems...)
}
