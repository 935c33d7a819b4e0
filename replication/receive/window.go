package receive

import (
	"errors"
	"time"

	"antipode/replication/bus"
	"antipode/stamp/change"
)

// window is what was fetched from the bus and is not acknowledged to it. The messages of all
// ranges come in one sequence and are acknowledged in it (AckAll), so one range without a leader
// would hold up all others. The rule (R15):
//
// A range *waits* while it holds records or closed records that are not committed, and *stands*
// if it waits and has committed nothing for StandAfter. A range that stands is left to the pull
// if it is past its share and another range does not stand. It is past its share with
//
//   - PendingBytesMax, or an equal share of WindowBytesMax if that is less, in memory, or
//   - UnackedMax messages behind one of this range, or
//   - no commit for 5 times StandAfter: before the bus delivers everything behind it again.
//
// If a range is left to the pull, one batch of it stays in memory and is submitted until it is
// committed. Everything else, and what arrives meanwhile, is dropped and acknowledged to the bus;
// each stream is marked to be pulled up to the last number dropped. With the first commit the range
// follows the bus again, and its streams are pulled.
//
// A range past its share that moves, or that stands while all others do, is not:
// fetching pauses until it has room, and the bus holds the backlog. So a backlog that is drained
// does not cross the link a second time.
type window struct {
	// unacked are the messages not yet acknowledged to the bus, oldest first.
	unacked []*pending
}

// pending is a fetched message. Its data is not kept here.
type pending struct {
	msg  bus.Message
	of   *rangeReceiver
	open int // records and closed record that are not handled yet
}

// standLong is after how many times StandAfter a range is left to the pull whatever it holds: at 10 s,
// within the 30 s after which the bus delivers again.
const standLong = 5

// waiting is what a range holds until it is committed.
type waiting struct {
	frames []item // in the order of the bus
	flying []item // in the commit that is under way
	bytes  int    // of both, as far as they came off the bus
	share  int    // of memory, in bytes

	committing bool
	retryAt    time.Duration
	// movedAt is when something was committed last, or began to wait, in running time.
	movedAt time.Duration
	// standing is true from leaving to the pull until the next commit.
	standing bool
}

// item is a record or a closed record on its way to a commit.
type item struct {
	from   *pending // nil where it was pulled, or its message need not wait for it
	rec    *Record
	closed *change.Closed
	pull   *pull // that pulled rec, nil where it came off the bus
	bytes  int   // of the waiting bytes, zero where it was pulled
}

// done reports the item as handled to its message.
func (i *item) done() {
	if i.from != nil {
		i.from.open--
		i.from = nil
	}
}

// headBytes is what a closed record is taken to need in memory for each head.
const headBytes = 128

// fetch takes frames from the bus while there is room.
func (r *Receiver) fetch(ran time.Duration) {
	for r.room(ran) {
		batch, err := r.o.Consumer.Poll(1)
		if err != nil {
			r.unanswered(err, ran)
			return
		}
		r.failing, r.unavailable = false, false
		if len(batch) == 0 {
			return
		}
		for _, m := range batch {
			r.accept(m, ran)
		}
	}
}

// room reports whether one more message may be fetched. Ranges that stand in the way are left to
// the pull. A range may exceed its share by one message.
func (r *Receiver) room(ran time.Duration) bool {
	for _, rr := range r.order {
		if rr.standing {
			continue
		}
		full := rr.bytes >= rr.share
		if (full || rr.holdsOthers(ran)) && rr.stands(ran) && r.othersMove(rr, ran) {
			rr.leaveAll()
			continue
		}
		if full {
			return false
		}
	}
	return true
}

// stands reports whether the range waits and commits nothing.
func (rr *rangeReceiver) stands(ran time.Duration) bool {
	return rr.waits() && ran-rr.movedAt >= rr.r.o.StandAfter
}

func (rr *rangeReceiver) waits() bool {
	return rr.committing || len(rr.frames)+len(rr.pulledItems) > 0
}

// holdsOthers reports whether messages of other ranges wait too long, or too many of them, for
// those of this one.
func (rr *rangeReceiver) holdsOthers(ran time.Duration) bool {
	u := rr.r.window.unacked
	return len(u) > rr.r.o.UnackedMax && u[0].of == rr || ran-rr.movedAt >= standLong*rr.r.o.StandAfter
}

// othersMove reports whether a range other than this one does not stand.
func (r *Receiver) othersMove(than *rangeReceiver, ran time.Duration) bool {
	for _, rr := range r.order {
		if rr != than && !rr.standing && !rr.stands(ran) {
			return true
		}
	}
	return false
}

// leaveAll leaves what waits to the pull, but for one batch.
func (rr *rangeReceiver) leaveAll() {
	rr.r.o.Alarm(AlarmStands)
	rr.r.o.Logger.Warn("a range commits nothing while others do; what it is sent is dropped, and pulled later",
		"origin", rr.src.Origin, "range", rr.src.Range, "bytes", rr.bytes)
	rr.standing = true
	for i := range rr.flying {
		rr.flying[i].done()
	}
	keep := 0
	if !rr.committing {
		for size := 0; keep < len(rr.frames) && size < rr.r.o.BatchBytesMax; keep++ {
			size += rr.frames[keep].bytes
			rr.frames[keep].done()
		}
	}
	for i := range rr.frames[keep:] {
		rr.drop(&rr.frames[keep+i])
	}
	rr.frames = append([]item(nil), rr.frames[:keep]...)
}

// drop leaves a record or a closed record to the pull.
func (rr *rangeReceiver) drop(it *item) {
	if it.rec == nil {
		rr.needFull = true
	} else if rr.mayPull(it.rec.Record.Stream()) {
		rr.leaveToPull(it.rec.Record.Stream(), it.rec.Record.Seq)
	}
	rr.bytes -= it.bytes
	it.done()
	rr.release(it)
}

// enqueue takes a record or closed record off the bus.
func (rr *rangeReceiver) enqueue(it item, ran time.Duration) {
	it.from.open++
	rr.bytes += it.bytes
	if rr.standing {
		rr.drop(&it)
		return
	}
	if !rr.waits() {
		rr.movedAt = ran
	}
	rr.frames = append(rr.frames, it)
}

// unanswered raises an alarm, once, when the bus does not answer for too long. Some seconds
// without an answer are usual at the start and while its servers elect a leader.
func (r *Receiver) unanswered(err error, ran time.Duration) {
	if !r.failing {
		r.failing, r.failingSince = true, ran
	}
	limit := r.o.SilenceAfter
	if limit == 0 || r.unavailable || ran-r.failingSince < limit {
		return
	}
	r.unavailable = true
	r.o.Alarm(AlarmUnavailable)
	r.o.Logger.Error("the stream does not answer; Last Sync Time stands still until its servers are back",
		"origin", r.o.Origin, "error", err)
}

// accept splits one message into its records and its closed record.
func (r *Receiver) accept(m bus.Message, ran time.Duration) {
	if !m.Incarnation.Equal(r.incarnation) {
		if !r.incarnation.IsZero() {
			r.o.Alarm(AlarmIncarnation)
			r.o.Logger.Warn("the stream was deleted and made again; what it lost is pulled", "origin", r.o.Origin)
			r.window.unacked = nil // Sequence numbers of the old stream mean nothing in the new one.
		}
		r.incarnation = m.Incarnation
		r.o.OnIncarnation(m.Incarnation)
	}
	f, err := change.ParseFrame(m.Data)
	rr := r.ranges[f.Range]
	p := &pending{msg: m, of: rr}
	p.msg.Data = nil
	r.window.unacked = append(r.window.unacked, p)
	switch {
	case errors.Is(err, change.ErrVersion):
		r.o.Alarm(AlarmVersion)
		r.o.Logger.Error("frame of a later version refused; what it held is pulled once this location is upgraded", "seq", m.Seq)
		return
	case err != nil:
		r.o.Alarm(AlarmChecksum)
		r.o.Logger.Error("frame refused; what it held is pulled", "seq", m.Seq, "error", err)
		return
	case f.Origin != r.o.Origin || rr == nil:
		r.o.Alarm(AlarmEpoch)
		r.o.Logger.Error("frame of a foreign origin or range refused", "origin", f.Origin, "range", f.Range)
		return
	}
	rr.contact = ran
	bad, badErr := 0, error(nil)
	for _, b := range f.Records {
		rec, err := r.names.ParseRecord(b)
		if err != nil {
			bad, badErr = bad+1, err // It shows as a gap, or as a stream that is behind.
			continue
		}
		rr.enqueue(item{from: p, rec: &Record{Bytes: b, Record: rec}, bytes: len(b)}, ran)
	}
	if bad > 0 {
		r.o.Alarm(AlarmChecksum)
		r.o.Logger.Error("records cannot be decoded; they are pulled", "range", f.Range, "records", bad, "error", badErr)
	}
	if f.LaterClosed != nil {
		rr.laterClosed(r.o.Clock.Mono())
	}
	if f.Closed != nil {
		if f.Closed.Full {
			rr.acks.renew(r.o.Clock.Mono())
		}
		rr.enqueue(item{from: p, closed: f.Closed, bytes: headBytes * (1 + len(f.Closed.Heads))}, ran)
	}
}

// acknowledge confirms to the bus the longest prefix of messages that is done.
func (r *Receiver) acknowledge() {
	u := r.window.unacked
	n := 0
	for n < len(u) && u[n].open == 0 {
		n++
	}
	if n == 0 {
		return
	}
	if err := r.o.Consumer.Ack(u[n-1].msg); err != nil {
		r.o.Logger.Debug("acknowledgement lost; the stream delivers again", "error", err)
	}
	r.window.unacked = append(u[:0:0], u[n:]...)
}
