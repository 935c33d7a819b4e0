package receive

import (
	"errors"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// pull applies the missing records of one stream from the source's outbox.
type pull struct {
	// dropped is the last number that was received and dropped. The pull ends above it.
	dropped geo.Seq
	flying  bool
	retryAt time.Duration
	ahead   bool // its next record waits for the clock here
	// from is the first number of the last request.
	from geo.Seq
	// bad is the next record if it could not be decoded when it came last.
	bad geo.Head
}

// pullBytesMax bounds one answer of the source.
const pullBytesMax = 256 << 10

func (rr *rangeReceiver) leaveToPull(st geo.Stream, seq geo.Seq) {
	p := rr.pulls[st]
	if p == nil {
		p = &pull{}
		rr.pulls[st] = p
	}
	p.dropped = max(p.dropped, seq)
}

// step asks for what follows the cursor, or ends the pull.
func (p *pull) step(rr *rangeReceiver, st geo.Stream, now time.Duration) {
	if p.flying || now < p.retryAt || rr.standing || rr.committing || len(rr.pulledItems) > 0 {
		return
	}
	if !rr.mirror.known {
		return
	}
	at := rr.mirror.applied[st].Seq
	if at >= p.dropped {
		delete(rr.pulls, st)
		return
	}
	p.flying, p.from = true, at+1
	rr.r.o.Source.Records(st, p.from, pullBytesMax, func(records [][]byte, err error) {
		rr.r.post(func(now time.Duration) { p.arrived(rr, st, records, err, now) })
	})
}

func (p *pull) arrived(rr *rangeReceiver, st geo.Stream, records [][]byte, err error, now time.Duration) {
	if p.flying = false; rr.pulls[st] != p {
		return // Its stream was stopped or refused meanwhile.
	}
	// This holds after a success too: a record that could not be applied yet is not requested
	// again at once.
	p.retryAt = now
	if err == nil && len(records) == 0 {
		rr.mirror.stale = true // What follows may be applied, acknowledged and gone.
	}
	if err != nil || len(records) == 0 {
		p.retryAt = now + rr.r.o.RetryAfter
		return
	}
	rr.contact = rr.r.running.Time()
	for i, b := range records {
		rec, err := change.ParseRecord(b)
		if err == nil && rec.Stream() != st {
			err = errForeign
		}
		if err != nil {
			if i == 0 {
				rr.r.o.Alarm(AlarmChecksum)
				rr.r.o.Logger.Error("pulled record cannot be decoded", "stream", st, "seq", p.from, "error", err)
				rr.undecodable(st, geo.Head{Seq: p.from, Hash: change.HashOf(b)}, change.Undecodable(b), now)
				return
			}
			break // It is asked for again once those before it are applied.
		}
		if missing := p.missingPayload(rr, &rec); len(missing) > 0 {
			p.fetch(rr, missing)
			return
		}
		rr.pulledItems = append(rr.pulledItems, item{rec: &Record{Bytes: b, Record: rec}})
	}
	p.retryAt = now + pullPause
}

// errForeign: the source answered with a record of another stream.
var errForeign = errors.New("receive: record of another stream")

// undecodable handles the next record of a stream where it cannot be decoded, here or at the node that
// evaluates it. The first time it may be damaged on the way; the source sends it again. The same bytes
// again stop the stream, and no other one (R11).
func (rr *rangeReceiver) undecodable(st geo.Stream, at geo.Head, why change.StopReason, now time.Duration) {
	p := rr.pulls[st]
	p.retryAt = now + rr.r.o.RetryAfter
	if p.bad != at {
		p.bad = at
		return
	}
	p.flying = true
	rr.r.o.Applier.Stop(st, change.Stop{Reason: why, There: at}, func(err error) {
		rr.r.post(func(now time.Duration) {
			p.flying, p.retryAt = false, now+rr.r.o.RetryAfter
			if err == nil {
				rr.mirror.reload() // It is reported from the progress.
			}
		})
	})
}

// pullPause keeps a record that has to wait (for its generation, for a gate) from
// being pulled in a tight loop.
const pullPause = 20 * time.Millisecond

func (p *pull) missingPayload(rr *rangeReceiver, rec *change.Record) []extent.Ref {
	var missing []extent.Ref
	for _, ref := range rec.Chunks {
		if !rr.r.o.Applier.HasPayload(ref) {
			missing = append(missing, ref)
		}
	}
	return missing
}

// fetch copies missing chunks to this location, one after the other, before the record is
// applied.
func (p *pull) fetch(rr *rangeReceiver, refs []extent.Ref) {
	p.flying = true
	end := func(err error) {
		rr.r.post(func(now time.Duration) {
			p.flying = false
			if err != nil {
				p.retryAt = now + rr.r.o.RetryAfter
			}
		})
	}
	rr.r.o.Source.Chunk(refs[0], func(data []byte, err error) {
		if err != nil {
			end(err)
			return
		}
		rr.r.o.Applier.PutPayload(refs[0], data, end)
	})
}
