package receive

import (
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// pull applies the missing records of one stream from the source's outbox:
//
//	due ──asks──> asking ──answer──> records in a commit ──applied──> due
//	                      └─payload missing──> chunks fetched ──> due
//	records in a commit ──its next record waits──> due after a pause, with that record, if it is kept, or asking for it alone
//
// A record that waits is kept, within a bound: while a gate is closed it would cross the link again after each pause.
//
// A stream that is below a closed head is asked for its next record before it counts as a gap: the source
// answers without one while the payload of that record is on its way (ship.Shipper.Ready), and sends it over
// the bus after that.
//
//	behind ──no record──> held ──a record──> due after a grace, behind
//	behind or held ──applied off the bus──> gone
//	behind ──a record──> a gap: the alarm is raised
type pull struct {
	stream geo.Stream
	// dropped is the last number that was received and dropped. The pull ends above it.
	dropped geo.Seq
	// at is when it is due; index is its place among those that are, -1 while something is under way.
	at    time.Duration
	order uint64
	index int

	asking   bool
	reserved int // bytes, while asking
	queued   int // its records that are in a commit or wait for one
	stopping bool
	// missing are the chunks of its next record that are not asked for yet; chunks counts those that
	// are under way. listed is true while it is in the line of Receiver.chunks.
	missing []extent.Ref
	chunks  int
	listed  bool

	// kept is its next record, encoded, while it waits: a copy, since what came with it is not kept. It is
	// counted in pulls.kept.
	kept []byte
	// pause is how long it waited last because its next record waits.
	pause time.Duration
	// size, if it is not zero, is the size of its next record, which is asked for alone: it waits, or
	// there was no room for it.
	size int
	// last is the size of the first record of the last answer: large ones come one after the other.
	last  int
	ahead bool // its next record waits for the clock here
	// from is the first number of the last request.
	from geo.Seq
	// bad is the next record if it could not be decoded when it came last.
	bad geo.Head
	// behind: it began since the stream is below a closed head, and nothing shows that a record is missing. held:
	// the source answered that it has not sent what follows.
	behind, held bool
}

// A pull whose next record waits (for its generation, for a gate, for payload) asks again after a pause
// that doubles. So it is late by no more than it has waited already.
const (
	pauseLeast = 20 * time.Millisecond
	pauseMost  = 5 * time.Second
)

// heldGraces is how many times BehindGrace a record that was held back may take over the bus once the
// source has sent it: twice what is under way on a narrow line (pace.Late).
const heldGraces = 4

// leaveToPull makes a stream be pulled up to a number at least.
func (rr *rangeReceiver) leaveToPull(st geo.Stream, seq geo.Seq) *pull {
	p := rr.pulls.of[st]
	if p == nil {
		p = &pull{stream: st, index: -1}
		rr.pulls.of[st] = p
		rr.pulls.schedule(p, 0)
	}
	p.dropped = max(p.dropped, seq)
	p.behind, p.held = false, false
	return p
}

// next goes on with what follows the cursor: with the record that is kept, or it asks the source.
func (p *pull) next(rr *rangeReceiver, now time.Duration) {
	b := p.kept
	rr.pulls.keep(p, nil)
	if b != nil {
		h, err := change.ParseHeader(b)
		if from := rr.mirror.applied[p.stream].Seq + 1; err == nil && h.Seq == from {
			p.from = from
			p.take(rr, [][]byte{b}, now)
			return
		}
	}
	p.ask(rr)
}

// ask asks for what follows the cursor.
func (p *pull) ask(rr *rangeReceiver) {
	ps := &rr.pulls
	bytes := ps.wants(p)
	p.from = rr.mirror.applied[p.stream].Seq + 1
	p.asking, p.reserved = true, bytes
	ps.asking++
	ps.bytes += bytes
	ps.schedule(p, p.at)
	if p.size > 0 || p.behind { // One that is behind asks whether anything is missing: it may be on its way over the bus.
		bytes = 1 // The first record comes whatever its size.
	}
	rr.r.o.Source.Records(p.stream, p.from, bytes, func(records [][]byte, err error) {
		rr.r.post(func(now time.Duration) { p.arrived(rr, records, err, now) })
	})
}

func (p *pull) arrived(rr *rangeReceiver, records [][]byte, err error, now time.Duration) {
	ps := &rr.pulls
	reserved := p.reserved
	p.asking, p.reserved = false, 0
	ps.asking--
	ps.bytes -= reserved
	if ps.of[p.stream] != p {
		return // Its stream was stopped or refused meanwhile.
	}
	if err != nil {
		ps.schedule(p, now+rr.r.o.RetryAfter)
		return
	}
	if len(records) == 0 {
		rr.mirror.stale = true                 // What follows may be applied, acknowledged and gone.
		rr.mirror.moved[p.stream] = struct{}{} // Or the source has stopped the stream, and answers that.
		p.held = p.behind
		p.later(rr, now)
		ps.schedule(p, max(p.at, now+rr.r.o.RetryAfter))
		return
	}
	if p.held {
		p.held = false
		ps.schedule(p, now+heldGraces*rr.r.o.BehindGrace)
		return
	}
	if p.behind {
		p.behind = false
		rr.r.o.Alarm(AlarmGap)
	}
	rr.contact = rr.r.running.Time()
	total := 0
	for _, b := range records {
		total += len(b)
	}
	if total > reserved && ps.bytes > 0 && ps.bytes+total > ps.share {
		p.size = len(records[0]) // It is asked for again once there is room.
		ps.schedule(p, now)
		return
	}
	p.take(rr, records, now)
}

// take passes records on to a commit, up to one that cannot be decoded or misses payload.
func (p *pull) take(rr *rangeReceiver, records [][]byte, now time.Duration) {
	ps := &rr.pulls
	p.last = len(records[0])
	for i, b := range records {
		rec, err := change.ParseRecord(b)
		if err == nil && rec.Stream() != p.stream {
			err = errForeign
		}
		if err != nil && i == 0 {
			rr.r.o.Alarm(AlarmChecksum)
			rr.r.o.Logger.Error("pulled record cannot be decoded", "stream", p.stream, "seq", p.from, "error", err)
			rr.undecodable(p, geo.Head{Seq: p.from, Hash: change.HashOf(b)}, change.Undecodable(b), now)
			return
		}
		if err != nil {
			break // It is asked for again once those before it are applied.
		}
		if missing := rr.missingPayload(&rec); len(missing) > 0 {
			if p.missing = missing; i == 0 {
				ps.keep(p, b)
			}
			rr.r.chunks.enlist(rr, p)
			break
		}
		p.queued++
		ps.bytes += len(b)
		rr.pulledItems = append(rr.pulledItems, item{rec: &Record{Bytes: b, Record: rec}, pull: p})
	}
	ps.schedule(p, now)
}

// errForeign: the source answered with a record of another stream.
var errForeign = errors.New("receive: record of another stream")

// undecodable handles the next record of a stream where it cannot be decoded, here or at the node that
// evaluates it. The first time it may be damaged on the way; the source sends it again. The same bytes
// again stop the stream, and no other one (R11).
func (rr *rangeReceiver) undecodable(p *pull, at geo.Head, why change.StopReason, now time.Duration) {
	again := p.bad == at
	p.bad, p.stopping = at, again
	rr.pulls.schedule(p, now+rr.r.o.RetryAfter)
	if !again {
		return
	}
	rr.r.o.Applier.Stop(p.stream, change.Stop{Reason: why, There: at}, func(err error) {
		rr.r.post(func(now time.Duration) {
			if err == nil {
				rr.mirror.reload() // It is reported from the progress.
			}
			p.stopping = false
			rr.pulls.schedule(p, now+rr.r.o.RetryAfter)
		})
	})
}

// later puts the pull off because its next record is not applied yet.
func (p *pull) later(rr *rangeReceiver, now time.Duration) {
	if p.at > now {
		return // It was put off for a record of the same commit.
	}
	p.pause = min(max(2*p.pause, pauseLeast), pauseMost)
	rr.pulls.schedule(p, now+p.pause)
}

// waits handles that the next record cannot be applied yet: after the pause it is tried again.
func (p *pull) waits(rr *rangeReceiver, rec *Record, now time.Duration) {
	p.size = max(1, len(rec.Bytes))
	rr.pulls.keep(p, rec.Bytes)
	rr.pulls.setAhead(p, rec.Ahead > 0)
	if rec.Ahead > 0 {
		rr.pulls.schedule(p, now+min(rec.Ahead, aheadRetryMax))
		return
	}
	p.later(rr, now)
}

// moved handles that a record of the stream was applied: the pull goes on at once. One without a gap ends, and
// the stream has its grace again.
func (p *pull) moved(rr *rangeReceiver, now time.Duration) {
	if p.behind {
		rr.pulls.end(p.stream)
		return
	}
	p.pause, p.size, p.bad = 0, 0, geo.Head{}
	rr.pulls.keep(p, nil)
	rr.pulls.setAhead(p, false)
	rr.pulls.schedule(p, now)
}

// release gives back what a pulled record has of the pulls' bytes.
func (rr *rangeReceiver) release(i *item) {
	p := i.pull
	if p == nil {
		return
	}
	i.pull = nil
	p.queued--
	rr.pulls.bytes -= len(i.rec.Bytes)
	rr.pulls.schedule(p, p.at)
}
