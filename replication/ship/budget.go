package ship

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/outbox"
	"antipode/stamp/ranges"
)

// AlarmBudget: a copy fell out of the budget of the outbox (R18). It is raised once for a copy and range.
const AlarmBudget = "behind_outbox"

// Budget bounds what the outboxes of a node's ranges hold for a location that does not acknowledge. What
// counts is records and the payload that they name. The zero value bounds nothing.
//
// Past it a copy falls out (R18): the leader of a range stops the streams of an account there and
// deletes what the outbox has of them. It takes the one with the most, of all ranges of its node; so an account that writes
// little outlives one that writes much. Writers notice nothing.
type Budget struct {
	// Bytes bounds all copies together, AccountBytes those of each account, in the ranges of the node.
	Bytes, AccountBytes int64
	// Age bounds how old the oldest record of a copy may be. An older copy falls out once that record has
	// stood there for Grace after it was found: a stamp that was off for long, or a clock that was wrong,
	// costs nothing that can still be sent. Zero Grace means Age/10, an hour at most.
	Age, Grace time.Duration
	// Ranges are those of the node, with the shipper's. Nil means that one alone.
	Ranges func() []*ranges.Range
}

func (o Budget) validate() []error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{{"Bytes", o.Bytes}, {"AccountBytes", o.AccountBytes}, {"Age", int64(o.Age)}, {"Grace", int64(o.Grace)}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("ship: Budget.%s is %d: want a number above zero, or zero for no bound", f.name, f.value))
		}
	}
	return errs
}

const (
	// budgetEvery is how often a leader looks at what the outboxes hold. They may pass the budget by
	// what is written between two looks.
	budgetEvery = time.Second
	// graceMax bounds the zero value of Budget.Grace.
	graceMax = time.Hour
)

// keeper keeps the outbox of a shipper's range within its budget. Step alone uses it, but for what mu
// guards.
type keeper struct {
	o     Budget
	r     *ranges.Range
	wake  func()
	at    time.Duration // not before
	oldAt time.Duration // the same for the age
	old   map[outbox.Copy]waits
	// fell are the copies that are known to have fallen out, nil before the first look of a leader; why is
	// what this leader let one fall out for.
	fell map[outbox.Copy]bool
	why  map[outbox.Copy]string

	mu     sync.Mutex
	flying bool
	// again reports that the next look is due at once.
	again bool
}

// waits is a record that is too old, and since when that is known.
type waits struct {
	record geo.Timestamp
	since  time.Duration
}

// held is what the outbox of a range holds of a copy.
type held struct {
	ranges.Holding
	rangeID geo.RangeID
	why     string
}

func newKeeper(o Budget, r *ranges.Range, wake func()) *keeper {
	if o.Ranges == nil {
		o.Ranges = func() []*ranges.Range { return []*ranges.Range{r} }
	}
	if o.Grace == 0 {
		o.Grace = min(graceMax, o.Age/10)
	}
	return &keeper{o: o, r: r, wake: wake, old: map[outbox.Copy]waits{}, why: map[outbox.Copy]string{}}
}

// none reports whether nothing is bounded.
func (o Budget) none() bool { return o.Bytes == 0 && o.AccountBytes == 0 && o.Age == 0 }

// step lets copies fall out, and deletes what was numbered since of those that did. wall is the wall
// clock. It returns the copies that have fallen out since the last call.
func (k *keeper) step(now time.Duration, wall func() time.Time) (fell []held, err error) {
	k.mu.Lock()
	due := !k.flying && (k.again || now >= k.at)
	k.again = k.again && !due
	k.mu.Unlock()
	if !due {
		return nil, nil
	}
	k.at = now + budgetEvery
	before := k.fell
	k.fell = map[outbox.Copy]bool{}
	var cmd fallOut
	var rest []held // of this range, that did not fall out
	for _, c := range k.r.Machine.Holdings() {
		h := held{Holding: c, rangeID: k.r.ID(), why: k.why[c.Copy]}
		if !c.FellOut {
			rest = append(rest, h)
			continue
		}
		if k.fell[c.Copy] = true; before != nil && !before[c.Copy] {
			fell = append(fell, h)
		}
		if c.Records > 0 {
			cmd = append(cmd, h)
		}
	}
	if len(rest) > 0 && !k.o.none() {
		next, err := k.next(now, wall, rest)
		if err != nil {
			return fell, err
		}
		for _, h := range next {
			k.why[h.Copy] = h.why
		}
		cmd = append(cmd, next...)
	}
	k.submit(cmd)
	return fell, nil
}

// next returns the copies that have to fall out of this range now; rest are those that could.
func (k *keeper) next(now time.Duration, wall func() time.Time, rest []held) ([]held, error) {
	if most, ok := k.o.over(k.holdings(rest)); ok && most.rangeID == k.r.ID() {
		return []held{most}, nil
	}
	if k.o.Age == 0 || now < k.oldAt {
		return nil, nil
	}
	k.oldAt = now + min(time.Minute, max(budgetEvery, k.o.Grace/4))
	return k.tooOld(now, wall().Add(-k.o.Age), rest)
}

// holdings adds to rest what the other ranges of the node hold of copies that did not fall out.
func (k *keeper) holdings(rest []held) []held {
	all := slices.Clone(rest)
	for _, r := range k.o.Ranges() {
		if r == k.r {
			continue
		}
		for _, c := range r.Machine.Holdings() {
			if !c.FellOut {
				all = append(all, held{Holding: c, rangeID: r.ID()})
			}
		}
	}
	return all
}

// over returns the copy that falls out next: the one with the most, of all if together they pass the
// budget, else of an account that passes its own. ok is false if none has to. All leaders of a stamp find the
// same one, as far as their nodes have the same ranges.
func (o Budget) over(all []held) (most held, ok bool) {
	var total int64
	of := map[geo.Account]int64{}
	for _, h := range all {
		total += h.Size()
		of[h.Account] += h.Size()
	}
	whole := o.Bytes > 0 && total > o.Bytes
	for _, h := range all {
		own := o.AccountBytes > 0 && of[h.Account] > o.AccountBytes
		switch {
		case !whole && !own || ok && !larger(h, most):
			continue
		case whole:
			h.why = fmt.Sprintf("the outbox has %d bytes, its budget is %d; the account has most of it", total, o.Bytes)
		default:
			h.why = fmt.Sprintf("the outbox has %d bytes of the account, the budget of one is %d", of[h.Account], o.AccountBytes)
		}
		most, ok = h, true
	}
	return most, ok
}

// larger orders copies by size; equal ones by name and range.
func larger(a, b held) bool {
	return cmp.Or(cmp.Compare(b.Size(), a.Size()), cmp.Compare(a.Account, b.Account), cmp.Compare(a.rangeID, b.rangeID)) < 0
}

// tooOld returns the copies whose oldest record was committed before a time, and has not moved for Grace.
func (k *keeper) tooOld(now time.Duration, before time.Time, rest []held) (out []held, err error) {
	b, err := k.r.Machine.Backlog()
	if err != nil {
		return nil, err
	}
	var oldest map[outbox.Copy]geo.Timestamp
	if b.Oldest != 0 && b.Oldest.Time().Before(before) {
		if oldest, err = k.r.Machine.Oldest(); err != nil {
			return nil, err
		}
	}
	was := k.old
	k.old = map[outbox.Copy]waits{}
	for _, h := range rest {
		t := oldest[h.Copy]
		if t == 0 || !t.Time().Before(before) {
			continue
		}
		w := was[h.Copy]
		if w.record != t {
			w = waits{t, now}
		}
		k.old[h.Copy] = w
		if now-w.since >= k.o.Grace {
			h.why = fmt.Sprintf("the oldest change is of %s, %s ago at least", t, k.o.Age)
			out = append(out, h)
		}
	}
	return out, nil
}

// submit proposes that copies fall out, or the deletion of what is left of those that did.
func (k *keeper) submit(cmd fallOut) {
	if len(cmd) == 0 {
		return
	}
	k.mu.Lock()
	k.flying = true
	k.mu.Unlock()
	k.r.Submit(cmd, func(err error) {
		k.mu.Lock()
		k.flying = false
		for _, h := range cmd {
			// One that has just fallen out is to be reported.
			k.again = k.again || err == nil && (!h.FellOut || h.Records > outbox.TrimRowsMax)
		}
		k.mu.Unlock()
		k.wake()
	})
}

// end forgets what a leader knows: the range is led elsewhere.
func (k *keeper) end() {
	k.fell, k.at, k.oldAt = nil, 0, 0
	clear(k.old)
	clear(k.why)
}

// fallOut lets copies fall out in every replica. An evaluation at a leader that was deposed is never
// committed.
type fallOut []held

// Reclaims implements ranges.Reclaimer.
func (fallOut) Reclaims() {}

// Evaluate implements ranges.Command.
func (c fallOut) Evaluate(tx *ranges.Tx) error {
	for _, h := range c {
		if err := tx.FallOut(h.Copy); err != nil {
			return err
		}
	}
	return nil
}

var errBudget = errors.New("the outbox cannot be kept within its budget")

// keep keeps the outbox within its budget, and reports what fell out. The next closed record is then a
// full one, to which the receiver answers with all its cursors; it then learns of the stops.
func (s *Shipper) keep(now time.Duration) {
	fell, err := s.keeper.step(now, s.o.Clock.Now)
	if err != nil {
		s.o.Logger.Error(errBudget.Error(), "range", s.o.Range.ID(), "error", err)
	}
	for _, h := range fell {
		s.fullNext = true
		s.o.Alarm(AlarmBudget)
		s.o.Logger.Error("the secondary fell out of the outbox's budget and has to be rebuilt: antipodectl account rebuild "+string(h.Account),
			"account", h.Account, "range", s.o.Range.ID(), "reason", h.why, "bytes", h.Bytes, "payload", h.Payload, "records", h.Records)
	}
}

// fellOut reports whether a stream is of a copy that fell out of the outbox's budget (R18): none of it is
// sent, and all of it is named in closed records.
func (s *Shipper) fellOut(st geo.Stream) bool {
	why, ok := s.o.Range.Machine.Stopped(st)
	return ok && why.Reason == change.StopBudget
}
