package ranges

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"antipode/internal/clock"
	"antipode/stamp/kv"
)

// Commands are evaluated on the scheduler, which all ranges of a node share, and read rows there. A row that is in no
// cache costs a read of the disk: 512 commands on such rows would hold the heartbeats, leases and writes of all other
// ranges for as long. So
//
//   - a pass evaluates the commands of a range for evaluateMax and one command. The others follow in the next passes, in
//     their order.
//   - where that was not enough, and the commands took coldCommand each and waited for the disk, rows are in no cache. From
//     then on a command that is Rehearsed is evaluated once on the goroutine of its caller first, for what it reads, so that
//     the scheduler finds it in memory. Those that wait already go back to their callers for that, once.
//
// What a rehearsal finds is dropped, so that it decides nothing. While rows are in memory it costs one comparison.

const (
	// evaluateMax is how long a pass evaluates commands of a range, but for the last of them.
	evaluateMax = 10 * time.Millisecond
	// coldCommand is how long a command takes that reads from a disk: several times what others take.
	coldCommand = 100 * time.Microsecond
	// coldShare is of how many commands one reads from the disk at least.
	coldShare = 4
	// coldFor is how long commands are rehearsed after the last one that read from a disk, in running time.
	coldFor = time.Second
	// rehearsalsMax bounds those of a range that go on at once: each may block a thread.
	rehearsalsMax = 32
)

// Rehearsed is a command that may also be evaluated on the goroutine of its caller, before it is queued, on a state of its
// own that is dropped: its Evaluate changes nothing but its results.
type Rehearsed interface {
	Command
	// Rehearses reports whether that is done at all times: it reads so many rows that one alone would hold the scheduler.
	Rehearses() (always bool)
}

// errRehearse gives a command back to Do: nothing happened.
var errRehearse = errors.New("ranges: the rows of the command are read first")

// Do is Submit, and waits for the answer. kv.ErrUnknown if ctx ends before it.
func (r *Range) Do(ctx context.Context, cmd Command) error {
	command, may := cmd.(Rehearsed)
	rehearse := may && (r.cold() || command.Rehearses())
	for {
		if rehearse {
			if err := r.rehearse(ctx, cmd); err != nil {
				return err
			}
		}
		done := make(chan error, 1)
		r.enqueue(&waiter{cmd: cmd, done: func(err error) { done <- err }, at: r.o.Clock.Now(), returns: may && !rehearse})
		select {
		case err := <-done:
			if errors.Is(err, errRehearse) {
				rehearse = true
				continue
			}
			return err
		case <-ctx.Done():
			return kv.ErrUnknown
		}
	}
}

// DoAll is Do for many commands, which are queued in their order with nothing in between: they have one group, as far as that
// has room for them. It returns the error of each.
func (r *Range) DoAll(ctx context.Context, cmds []Command) []error {
	errs := slices.Repeat([]error{kv.ErrUnknown}, len(cmds))
	left := make([]int, len(cmds))
	for i := range left {
		left[i] = i
	}
	for rehearse := r.cold(); len(left) > 0; rehearse = true {
		left = r.rehearseAll(ctx, cmds, left, errs, rehearse)
		left = r.queueAll(ctx, cmds, left, errs, !rehearse)
	}
	return errs
}

// rehearseAll rehearses those commands of left that are to be now, and returns the ones that go on.
func (r *Range) rehearseAll(ctx context.Context, cmds []Command, left []int, errs []error, all bool) []int {
	refused := make([]error, len(cmds))
	var wg sync.WaitGroup
	for _, i := range left {
		if c, may := cmds[i].(Rehearsed); may && (all || c.Rehearses()) {
			wg.Go(func() { refused[i] = r.rehearse(ctx, c) })
		}
	}
	wg.Wait()
	return slices.DeleteFunc(left, func(i int) bool {
		if refused[i] != nil {
			errs[i] = refused[i]
		}
		return refused[i] != nil
	})
}

// queueAll queues the commands of left, waits for their answers, and returns those that are to be rehearsed first.
func (r *Range) queueAll(ctx context.Context, cmds []Command, left []int, errs []error, returns bool) (again []int) {
	type answer struct {
		i   int
		err error
	}
	at, answers, ws := r.o.Clock.Now(), make(chan answer, len(left)), make([]*waiter, len(left))
	for n, i := range left {
		_, may := cmds[i].(Rehearsed)
		ws[n] = &waiter{cmd: cmds[i], done: func(err error) { answers <- answer{i, err} }, at: at, returns: may && returns}
	}
	r.enqueue(ws...)
	for range left {
		select {
		case a := <-answers:
			if errs[a.i] = a.err; errors.Is(a.err, errRehearse) {
				errs[a.i] = kv.ErrUnknown
				again = append(again, a.i)
			}
		case <-ctx.Done():
			return nil
		}
	}
	slices.Sort(again)
	return again
}

// rehearse evaluates a command for what it reads. Its error is that nothing happened, and nothing will.
func (r *Range) rehearse(ctx context.Context, cmd Command) error {
	select {
	case r.rehearsals <- struct{}{}:
		defer func() { <-r.rehearsals }()
	case <-ctx.Done():
		return kv.ErrBusy
	}
	if !r.Leading() {
		return ErrNotLeader
	}
	began, reads := r.o.Clock.Now(), r.o.State.Reads()
	apart := &Range{o: r.o, Machine: r.Machine}
	apart.resetOverlay()
	_ = cmd.Evaluate(&Tx{r: apart, g: &group{}, now: began, passBegan: r.o.Clock.Mono()})
	if r.o.Clock.Now().Sub(began) >= coldCommand && r.o.State.Reads() > reads {
		r.foundCold()
	}
	if ctx.Err() != nil {
		return kv.ErrBusy
	}
	return nil
}

// cold reports whether commands are rehearsed now.
func (r *Range) cold() bool {
	return r.o.Running.Time() < time.Duration(r.coldUntil.Load())
}

func (r *Range) foundCold() { r.coldUntil.Store(int64(r.o.Running.Time() + coldFor)) }

// spell is the time for which the commands of a range are evaluated in a pass.
type spell struct {
	clock    clock.Clock
	began    time.Time
	commands int
	took     time.Duration
	reads    uint64 // of the state store, before
	// dropped: Raft takes no entries now. The commands wait for more than the next pass.
	dropped bool
}

// over reports whether no further command of the range is evaluated in this pass.
func (s *spell) over() bool {
	s.took = s.clock.Now().Sub(s.began)
	return s.commands > 0 && s.took >= evaluateMax
}

// rest leaves the commands that wait to the next passes, or to rehearsals.
func (r *Range) rest(s *spell) {
	// A machine that is busy makes commands slow, too, and others read. One command in some reads, where rows are not there.
	read := r.o.State.Reads() - s.reads
	if s.took/time.Duration(s.commands) >= coldCommand && read > 0 && read >= uint64(s.commands/coldShare) {
		r.foundCold()
		r.giveBack()
	}
	if !s.dropped && !r.idle() {
		r.o.Wake()
	}
}

// giveBack returns the commands that wait to those who can rehearse them.
func (r *Range) giveBack() {
	var back []*waiter
	r.mu.Lock()
	r.queue = slices.DeleteFunc(slices.Clone(r.queue), func(w *waiter) bool {
		if w.returns {
			back = append(back, w)
		}
		return w.returns
	})
	r.mu.Unlock()
	for _, w := range back {
		w.done(errRehearse)
	}
}
