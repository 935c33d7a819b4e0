package receive

import (
	"errors"
	"maps"
	"slices"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
)

// rangeReceiver applies the streams of one source range at this location: one commit at a time,
// of everything that waits. States of a stream:
//
//	following ──gap, wait, behind a closed head──> pulling
//	pulling ──pulled past the last number dropped──> following
//	any ──another record under a number──> forked (stands until an operator decides)
type rangeReceiver struct {
	r   *Receiver
	src geo.SourceRange

	frames     []item // waiting, in the order of the bus
	bytes      int    // of the records that wait or are being committed
	committing bool
	retryAt    time.Duration

	pulls   map[geo.Stream]*pull
	behind  map[geo.Stream]time.Duration // since when below a closed head, in running time
	checkAt time.Duration

	needFull    bool // the full closed record has to be pulled
	fullFlying  bool
	pulledItems []item

	contact, silent time.Duration // running time
	toAck           bool
	ackAt           time.Duration
	ackFlying       bool
}

// item is a record or a closed record on its way to a commit.
type item struct {
	from   *pending // nil where it was pulled
	rec    *Record
	closed *change.Closed
}

// done reports the item as handled to its message.
func (i item) done() {
	if i.from != nil {
		i.from.open--
	}
}

// checkEvery is how often a rangeReceiver looks for streams behind their closed heads.
const checkEvery = 100 * time.Millisecond

func (rr *rangeReceiver) step(now, ran time.Duration) time.Duration {
	if now >= rr.retryAt {
		rr.commit()
	}
	rr.checkBehind(now, ran)
	rr.pullFull(now)
	for _, st := range slices.SortedFunc(maps.Keys(rr.pulls), geo.Stream.Compare) {
		rr.pulls[st].step(rr, st, now)
	}
	rr.acknowledgeSource(now)
	rr.checkSilence(ran)
	next := checkEvery
	if rr.toAck {
		next = min(next, max(rr.ackAt-now, time.Millisecond))
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
	var items []item
	size := 0
	take := func(queue *[]item) {
		for len(*queue) > 0 && size < rr.r.o.BatchBytesMax && b.Closed == nil {
			it := (*queue)[0]
			*queue = (*queue)[1:]
			items = append(items, it)
			if it.closed != nil {
				if len(*queue) > 0 && (*queue)[len(*queue)-1].closed != nil && !it.closed.Full {
					// A later closed record of the same chain promises more: fold this one into
					// it.
					rr.fold(it.closed, *queue)
					it.done()
					items = items[:len(items)-1]
					continue
				}
				b.Closed = it.closed
				continue
			}
			b.Records = append(b.Records, it.rec)
			size += len(it.rec.Bytes)
		}
	}
	take(&rr.pulledItems)
	take(&rr.frames)
	rr.committing = true
	rr.r.o.Applier.Apply(b, func(err error) {
		rr.r.post(func(now time.Duration) { rr.committed(b, items, err, now) })
	})
}

// fold joins a closed record into the next one of the queue: the heads of (T0, T]
// and (T, T'] together are those of (T0, T'].
func (rr *rangeReceiver) fold(c *change.Closed, queue []item) {
	for i := range queue {
		n := queue[i].closed
		if n == nil {
			continue
		}
		if n.Full || n.T0 > c.T {
			return // Nothing follows it, or the chain is broken and the full closed record will be pulled.
		}
		have := make(map[geo.Stream]bool, len(n.Heads))
		for _, h := range n.Heads {
			have[n.Stream(h)] = true
		}
		for _, h := range c.Heads {
			if !have[c.Stream(h)] {
				n.Heads = append(n.Heads, h)
			}
		}
		n.T0 = min(n.T0, c.T0)
		return
	}
}

// committed handles the outcomes of a batch.
func (rr *rangeReceiver) committed(b *Batch, items []item, err error, now time.Duration) {
	rr.committing = false
	if err != nil {
		// It is unknown whether the batch took effect: submit it again; duplicates are dropped.
		rr.retryAt = now + rr.r.o.RetryAfter
		rr.frames = append(items, rr.frames...)
		return
	}
	for _, it := range items {
		if it.rec != nil {
			rr.resolve(it.rec)
		}
		if it.rec != nil && it.from != nil {
			rr.bytes -= len(it.rec.Bytes)
		}
		it.done()
	}
	if b.Closed != nil && !b.ClosedTaken {
		rr.needFull = true
	}
	rr.toAck = true
	rr.commit()
}

// resolve acts on the outcome of a record. A record that cannot be applied now is not kept in
// memory: its stream is pulled.
func (rr *rangeReceiver) resolve(rec *Record) {
	st := rec.Record.Stream()
	switch rec.Outcome {
	case Gap:
		if rr.pulls[st] == nil {
			rr.r.o.Alarm(AlarmGap)
		}
		rr.leaveToPull(st, rec.Record.Seq)
	case Wait:
		rr.leaveToPull(st, rec.Record.Seq)
	case Fork:
		rr.fork(st, rec.Record.Seq)
	case Refused:
		rr.r.o.Alarm(AlarmEpoch)
		rr.r.o.Logger.Error("record refused: its epoch is below the gate's", "stream", st, "seq", rec.Record.Seq)
	}
}

// fork stops a stream: an operator has to pick a side (R16).
func (rr *rangeReceiver) fork(st geo.Stream, seq geo.Seq) {
	rr.leaveToPull(st, seq)
	if rr.pulls[st].forked {
		return
	}
	rr.pulls[st].forked = true
	rr.r.mu.Lock()
	rr.r.forked[st] = struct{}{}
	rr.r.mu.Unlock()
	rr.r.o.Alarm(AlarmFork)
	rr.r.o.Logger.Error("streams forked; an operator has to pick a side", "stream", st, "seq", seq)
}

// checkBehind starts the pull of streams that were below a closed head for longer than the grace:
// the end of the stream was lost.
func (rr *rangeReceiver) checkBehind(now, ran time.Duration) {
	if now < rr.checkAt {
		return
	}
	rr.checkAt = now + checkEvery
	p, _ := rr.r.o.Applier.Progress(rr.src)
	behind := p.Behind()
	for st := range rr.behind {
		if _, still := behind[st]; !still {
			delete(rr.behind, st)
		}
	}
	for _, st := range slices.SortedFunc(maps.Keys(behind), geo.Stream.Compare) {
		head := behind[st]
		since, known := rr.behind[st]
		switch {
		case !known:
			rr.behind[st] = ran
		case ran-since > rr.r.o.BehindGrace && rr.pulls[st] == nil:
			rr.r.o.Alarm(AlarmGap)
			rr.leaveToPull(st, head)
		}
	}
}

// pullFull fetches the full closed record when the chain of closed records broke.
func (rr *rangeReceiver) pullFull(now time.Duration) {
	if !rr.needFull || rr.fullFlying || now < rr.retryAt {
		return
	}
	rr.fullFlying = true
	rr.r.o.Source.Closed(rr.src.Range, func(c *change.Closed, err error) {
		rr.r.post(func(now time.Duration) {
			rr.fullFlying = false
			if err != nil {
				rr.retryAt = now + rr.r.o.RetryAfter
				return
			}
			rr.needFull = false
			rr.contact = rr.r.running.Time()
			rr.pulledItems = append(rr.pulledItems, item{closed: c})
		})
	})
}

// acknowledgeSource sends the cursors of what is committed here to the source (R14).
func (rr *rangeReceiver) acknowledgeSource(now time.Duration) {
	if !rr.toAck || rr.ackFlying || now < rr.ackAt {
		return
	}
	p, ok := rr.r.o.Applier.Progress(rr.src)
	if !ok {
		return
	}
	cursors := p.Cursors()
	rr.toAck, rr.ackFlying = false, true
	rr.ackAt = now + rr.r.o.AckEvery
	rr.r.o.Source.Acknowledge(rr.src.Range, cursors, func(err error) {
		rr.r.post(func(now time.Duration) {
			rr.ackFlying = false
			var fork *ForkError
			if errors.As(err, &fork) {
				for _, st := range fork.Streams {
					rr.fork(st, cursors[st].Seq)
				}
				return
			}
			if err != nil {
				rr.toAck = true
				rr.ackAt = now + rr.r.o.RetryAfter
			}
		})
	})
}

// checkSilence raises an alarm, once, when nothing was received of a range for too long.
func (rr *rangeReceiver) checkSilence(ran time.Duration) {
	limit := rr.r.o.SilenceAfter
	if limit == 0 || rr.contact == 0 || ran-rr.contact < limit {
		rr.silent = 0
		return
	}
	if rr.silent == 0 {
		rr.silent = ran
		rr.r.o.Alarm(AlarmSilence)
		rr.r.o.Logger.Warn("no contact with a range; Last Sync Time stands still", "origin", rr.src.Origin, "range", rr.src.Range)
	}
}
