package ranges

import (
	"time"

	"antipode/stamp/change"
	"antipode/stamp/kv"
	"antipode/stamp/room"
)

// waiter is a command that waits for its answer.
type waiter struct {
	cmd  Command
	done func(error)
	at   time.Time // for OnCommit
	// err is the result of the last evaluation; unchanged reports that it staged
	// nothing, so the answer also needs a lease (R5).
	err       error
	unchanged bool
	fenced    fenced // see Tx.Confirmed
	// returns: it may be answered with errRehearse.
	returns bool
}

// SubmitAll is Submit for many commands, with nothing in between: they have one group, as far as that has room for them.
// done is called exactly once with the index of each.
func (r *Range) SubmitAll(cmds []Command, done func(i int, err error)) {
	at, ws := r.o.Clock.Now(), make([]*waiter, len(cmds))
	for i, cmd := range cmds {
		ws[i] = &waiter{cmd: cmd, done: func(err error) { done(i, err) }, at: at}
	}
	r.enqueue(ws...)
}

// closeByTime commits a closed record if the range committed none in this interval (R12).
// The intervals of all ranges of a stamp end at the same instants, so that at rest one sync
// of a log holds the closed records of several ranges.
func (r *Range) closeByTime(now time.Duration) {
	if r.o.CloseInterval == 0 || now/r.o.CloseInterval == r.lastClosed/r.o.CloseInterval || len(r.inflight) >= inflightMax {
		return // It would wait, and others behind it, as long as nothing is applied.
	}
	if r.rests(now) {
		return
	}
	r.lastClosed = now
	if r.Machine.Numbered() && !r.Machine.Uncompared() {
		w := &waiter{cmd: &Close{}, done: func(error) {}, at: r.o.Clock.Now()}
		r.mu.Lock()
		r.queue = append(r.queue, w)
		r.mu.Unlock()
	}
}

// evaluate takes the waiting commands, evaluates them one after the other on the
// overlay, and proposes their changes as one entry (DESIGN 2.2). It ends after evaluateMax: see rehearse.go.
func (r *Range) evaluate(now time.Duration) {
	var s *spell
	for {
		alone := r.replica.FewInSync()
		if len(r.inflight) >= inflightMax && !alone {
			return
		}
		if r.idle() {
			return
		}
		wall, clock := r.checkClock(now)
		if clock == clockWaits && !alone {
			return
		}
		batch := r.takeQueue(now < r.slowUntil && !alone && clock != clockRefuses)
		if len(batch) == 0 {
			return
		}
		if alone || clock == clockRefuses { // R2, R6: nothing happened.
			for _, w := range batch {
				w.done(kv.ErrBusy)
			}
			continue
		}
		if level := r.replica.Room(); level != room.Plenty {
			if batch = refuse(batch, level, r.replica.Standstill()); len(batch) == 0 {
				continue
			}
		}
		if s == nil {
			s = &spell{clock: r.o.Clock, began: r.o.Clock.Now(), reads: r.o.State.Reads()}
		}
		before := len(r.inflight)
		r.propose(batch, wall, now, s)
		if s.over() {
			r.rest(s)
			return
		}
		if len(r.inflight) == before {
			return // Nothing was proposed, and would not be before something changes.
		}
	}
}

// Reclaimer is a command that is accepted while the disk is nearly full, since it frees room
// or needs almost none.
type Reclaimer interface {
	Command
	Reclaims()
}

// Deletion is a command of a client that frees room in the end, but takes some at first, in the log and in the
// outbox. It is accepted while the disk is nearly full, until half of the reserve is used up.
type Deletion interface {
	Command
	Deletes()
}

// Probe is a command that never changes anything. It is accepted whatever room there is.
type Probe interface {
	Command
	Probes()
}

// refuse answers the commands that need room with kv.ErrBusy and returns the others. Writes
// are refused before the disk is full, since a log that cannot be written costs the replica
// (R4). With standstill no quorum takes what is proposed: see replica.Standstill.
func refuse(batch []*waiter, level room.Level, standstill bool) []*waiter {
	kept := batch[:0]
	for _, w := range batch {
		if accepts(w.cmd, level, standstill) {
			kept = append(kept, w)
			continue
		}
		w.done(kv.ErrBusy)
	}
	return kept
}

// accepts reports whether a command is accepted with so little room.
func accepts(cmd Command, level room.Level, standstill bool) (accepted bool) {
	switch cmd.(type) {
	case Probe:
		return true
	case Reclaimer:
		return !standstill
	case Deletion:
		return level == room.Full
	}
	return false
}

// idle reports whether no command waits.
func (r *Range) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) == 0
}

// takeQueue takes the next commands; while the range is slowed only those that make room.
func (r *Range) takeQueue(slowed bool) []*waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slowed {
		return r.takeReclaimers()
	}
	n := min(len(r.queue), groupCommands)
	batch := r.queue[:n:n]
	r.queue = r.queue[n:]
	if len(r.queue) == 0 {
		r.queue = nil
	}
	return batch
}

// propose evaluates a batch at the time wall, as far as there is time for it in this pass.
func (r *Range) propose(batch []*waiter, wall time.Time, now time.Duration, s *spell) {
	g := &group{id: change.GroupID{Term: r.term, Number: r.number + 1}, wall: wall}
	tx := &Tx{r: r, g: g, now: wall, passBegan: now}
	tx.b.Reserve(min(len(batch)*r.commandBytes, reservedMax))
	for i, w := range batch {
		if tx.b.Len() >= groupBytesMax || s.over() {
			r.requeue(batch[i:])
			break
		}
		s.commands++
		tx.begin(w)
		if w.err = tx.run(w.cmd); w.err != nil {
			tx.undo()
		}
		w.unchanged = tx.unchanged()
		g.waiters = append(g.waiters, w)
	}
	if tx.b.Count() == 0 {
		r.answerUnchanged(g, now)
		return
	}
	r.number++
	r.commandBytes = tx.b.Len()/len(g.waiters) + 1
	if err := r.replica.Propose(tx.b.Finish(g.id, r.pred, r.answered)); err != nil {
		// Not appended, so it will never commit: its commands are evaluated again
		// when the log takes entries again, or fail when this replica ceases to lead.
		tx.undoGroup()
		r.requeue(g.waiters)
		s.dropped = true
		return
	}
	if tx.shipped {
		r.lastClosed = now
	}
	r.slow(tx.b.Len(), now)
	r.pred = g.id
	r.inflight = append(r.inflight, g)
}

// requeue puts waiters back at the head of the queue.
func (r *Range) requeue(ws []*waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(ws[:len(ws):len(ws)], r.queue...)
}

// answerUnchanged answers the commands of a group that changed nothing. The answer comes after
// the last group that they could have seen, and under a lease (R5).
func (r *Range) answerUnchanged(g *group, now time.Duration) {
	switch {
	case len(r.inflight) > 0:
		last := r.inflight[len(r.inflight)-1]
		last.waiters = append(last.waiters, g.waiters...)
	case len(r.acking) > 0:
		last := r.acking[len(r.acking)-1]
		last.waiters = append(last.waiters, g.waiters...)
	default:
		r.answerUnderLease(g.waiters, now)
	}
}

// acknowledge answers the groups that every in-sync replica has persisted.
func (r *Range) acknowledge(now time.Duration) {
	index := r.replica.AckIndex(now)
	r.inSync.Store(int64(r.replica.InSync()))
	if len(r.acking) == 0 || r.acking[0].index > index {
		return
	}
	var unchanged []*waiter
	at, mono := r.o.Clock.Now(), r.fenceClock(now)
	for len(r.acking) > 0 && r.acking[0].index <= index {
		for _, w := range r.acking[0].waiters {
			if w.unchanged {
				unchanged = append(unchanged, w)
				continue
			}
			if r.o.OnCommit != nil {
				r.o.OnCommit(at.Sub(w.at))
			}
			err := r.committedResult(w, mono)
			w.done(err)
			r.refused = r.refused || err != nil
		}
		if !r.refused {
			r.answered = r.acking[0].index
		}
		r.acking = r.acking[1:]
	}
	r.answerUnderLease(unchanged, now)
}

// answerUnderLease answers commands that changed nothing: at once if the lease holds,
// otherwise after the next round. They were evaluated before the call, in the pass that began
// at passBegan or in an earlier one. The lease is compared with the current time, not with
// passBegan: the process may have stood still since, for longer than the lease, while another
// leader acknowledged what the evaluation did not see (R5).
func (r *Range) answerUnderLease(ws []*waiter, passBegan time.Duration) {
	if len(ws) == 0 {
		return
	}
	now := r.leaseClock(passBegan)
	if r.replica.Lease() > now {
		for _, w := range ws {
			w.done(r.unchangedResult(w, now))
		}
		return
	}
	r.mu.Lock()
	for _, w := range ws {
		r.reads = append(r.reads, pendingRead{done: func(err error) {
			if err == nil {
				err = r.unchangedResult(w, r.o.Clock.Mono())
			}
			w.done(err)
		}})
	}
	r.mu.Unlock()
	r.renewLease(now)
}
