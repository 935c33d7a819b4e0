package queues

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/geo"
)

// ScaleOptions says when the number of a queue's subqueues changes (protocol/queue.md 24). The zero value is that of
// production.
type ScaleOptions struct {
	// Window is over how long rates are taken. Zero means 10 s. A short one takes a burst for a load.
	Window time.Duration
	// UpRate is from how many commands per second on one subqueue, or UpThrottled from how many of them per Window that
	// were refused as busy, a queue gets another subqueue. Zero means 1,000 and 20.
	UpRate, UpThrottled float64
	// UpSize is from how many messages in one subqueue a queue gets another one. Zero means that sizes do not matter.
	UpSize uint64
	// A queue whose subqueues all take less than DownRate commands per second drains one of them: at once if each has
	// fewer than DownSize messages, else once it was so quiet for DownQuiet. DownRate is far below UpRate, so that those
	// that stay do not pass that one. Zero means a quarter of UpRate, 100 and 5 min.
	DownRate  float64
	DownSize  uint64
	DownQuiet time.Duration
	// Max is how many subqueues a queue gets at most. Zero means 64. With 1 a queue gets none.
	Max int
	// WithinRange: a queue may have several subqueues in one range. Without it a queue gets another one only in a range that
	// has none which takes messages, and of several in one range all but one are drained.
	WithinRange bool
	// Cooldown lies between two changes of a queue at least. Zero means 30 s.
	Cooldown time.Duration
}

func (o ScaleOptions) withDefaults() ScaleOptions {
	o.Window = cmp.Or(o.Window, 10*time.Second)
	o.UpRate = cmp.Or(o.UpRate, 1000)
	o.UpThrottled = cmp.Or(o.UpThrottled, 20)
	o.DownRate = cmp.Or(o.DownRate, o.UpRate/4)
	o.DownSize = cmp.Or(o.DownSize, 100)
	o.DownQuiet = cmp.Or(o.DownQuiet, 5*time.Minute)
	o.Max = cmp.Or(o.Max, 64)
	o.Cooldown = cmp.Or(o.Cooldown, 30*time.Second)
	return o
}

// Validate reports every field that cannot be: with limits that are too near to each other a queue would get a subqueue and
// lose it again for ever.
func (o ScaleOptions) Validate() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(o.Window < 0 || o.DownQuiet < 0 || o.Cooldown < 0, "scaling of queues: a time is below zero")
	refuse(o.UpRate < 0 || o.UpThrottled < 0 || o.DownRate < 0, "scaling of queues: a rate is below zero")
	refuse(o.Max < 0 || o.Max > subqueuesMax, "scaling of queues: a maximum of %d subqueues, not 1 to %d", o.Max, subqueuesMax)
	d := o.withDefaults()
	refuse(d.DownRate > d.UpRate/3, "scaling of queues: the lower rate, %g, is more than a third of the upper one, %g", d.DownRate, d.UpRate)
	refuse(d.UpSize > 0 && d.DownSize > d.UpSize/3,
		"scaling of queues: the lower size, %d, is more than a third of the upper one, %d", d.DownSize, d.UpSize)
	refuse(d.Cooldown < d.Window, "scaling of queues: a pause of %s between changes, less than the window of %s", d.Cooldown, d.Window)
	return errors.Join(errs...)
}

// subqueuesMax bounds ScaleOptions.Max: the rest of the dictionary is for subqueues whose messages are not deleted yet.
const subqueuesMax = 256

// load is what came to a subqueue over a window, per second, and how many of that were refused as busy, per window.
type load struct {
	rate, throttled float64
}

// up reports whether it is more than one subqueue is for.
func (o *ScaleOptions) up(l load) bool { return l.rate >= o.UpRate || l.throttled >= o.UpThrottled }

// quiet reports whether another subqueue may take a part of it as well.
func (o *ScaleOptions) quiet(l load) bool { return l.rate < o.DownRate && l.throttled == 0 }

// observed is what is known of one subqueue of a dictionary.
type observed struct {
	Entry
	counted
	load
	in geo.RangeID
}

// observation is what is known of a queue.
type observation struct {
	subqueues []observed
	// quiet is for how long all of its subqueues have been quiet, as far as that is known here.
	quiet time.Duration
	// since is how long ago the dictionary was changed.
	since time.Duration
	// schema is that of subqueues that are made now, rooms are the ranges that can hold them.
	schema byte
	rooms  []room
}

// action is what becomes of a queue.
type action int

const (
	nothing action = iota
	// add a subqueue that takes messages.
	add
	// drain: a subqueue takes no more messages.
	drain
	// remove a subqueue that drained.
	remove
)

// decision is what is done, with which subqueue, and why.
type decision struct {
	action action
	id     SubqueueID
	why    string
	// rooms are those in one of which a subqueue is added.
	rooms []room
}

// decide returns what becomes of a queue now, one change at a time. It changes nothing while a change is under way, as the head
// of a subqueue that is in another state shows (protocol/queue.md 24, 25).
func (o *ScaleOptions) decide(q *observation) decision {
	var takes []observed
	live := 0
	for _, s := range q.subqueues {
		switch {
		case s.State == StateToBeDeleted:
			continue
		case s.State != s.state:
			return decision{}
		case s.State == StateAllExceptPut && s.n == 0:
			return decision{action: remove, id: s.ID, why: "it is empty"} // Nothing comes into it any more, so that no pause is needed.
		case s.State == StateAll:
			takes = append(takes, s)
		}
		live++
	}
	if len(takes) == 0 || q.since < o.Cooldown {
		return decision{}
	}
	newest := slices.MaxFunc(takes, newer)
	rooms := free(q.rooms, takes)
	if newest.Schema < q.schema {
		if len(rooms) == 0 {
			rooms = q.rooms // The others drain.
		}
		return decision{action: add, why: "all others have rows of an older version", rooms: rooms}
	}
	if i := slices.IndexFunc(takes, func(s observed) bool { return s.Schema < newest.Schema }); i >= 0 {
		return decision{action: drain, id: takes[i].ID, why: "it has rows of an older version"}
	}
	if o.WithinRange && len(rooms) == 0 {
		rooms = q.rooms
	}
	if more := doubled(takes); len(more) > 0 && !o.WithinRange {
		return decision{action: drain, id: fewest(more).ID, why: "its range has another one of the queue"}
	}
	for _, s := range takes {
		large := o.UpSize > 0 && s.n >= o.UpSize
		why := o.why(s.load, large)
		switch {
		case why == "":
			continue
		case live >= o.Max || len(q.subqueues) >= entriesMax || len(rooms) == 0:
			return decision{}
		}
		return decision{action: add, why: fmt.Sprintf("subqueue %s %s", s.ID, why), rooms: rooms}
	}
	return o.down(q, takes)
}

// why names what is too much for a subqueue, "" for nothing.
func (o *ScaleOptions) why(l load, large bool) string {
	switch {
	case l.throttled >= o.UpThrottled:
		return fmt.Sprintf("refused %.0f commands in %s", l.throttled, o.Window)
	case l.rate >= o.UpRate:
		return fmt.Sprintf("takes %.0f commands per second", l.rate)
	case large:
		return "has many messages"
	}
	return ""
}

// down decides whether one of those that take messages is drained.
func (o *ScaleOptions) down(q *observation, takes []observed) decision {
	if len(takes) < 2 || q.quiet < o.Window {
		return decision{}
	}
	small := !slices.ContainsFunc(takes, func(s observed) bool { return s.n >= o.DownSize })
	switch {
	case small:
		return decision{action: drain, id: fewest(takes).ID, why: fmt.Sprintf("each has fewer than %d messages", o.DownSize)}
	case q.quiet >= o.DownQuiet:
		return decision{action: drain, id: fewest(takes).ID, why: fmt.Sprintf("all are quiet for %s", q.quiet.Round(time.Second))}
	}
	return decision{}
}

func newer(a, b observed) int { return cmp.Compare(a.Schema, b.Schema) }

// settled is what makes a dictionary and the heads of its subqueues agree.
type settled struct {
	// opens are subqueues without a head, closes those whose heads are less closed than the dictionary has them.
	opens  []SubqueueID
	closes []Entry
	// to is the dictionary with the states of heads that are more closed, nil if there are none.
	to *Dictionary
}

func (s *settled) any() bool { return s.to != nil || len(s.opens)+len(s.closes) > 0 }

// settle compares a dictionary with the heads of its subqueues: the one who changed them may have stopped half way,
// and a range may have been recovered with a loss. The more closed of two states counts, so that no subqueue ever
// opens again behind the back of those who know it closed. A disabled one is left to those who disabled it.
func settle(d *Dictionary, heads []counted) (s settled) {
	for i, e := range d.Subqueues {
		h := heads[i].state
		switch {
		case h == 0:
			s.opens = append(s.opens, e.ID)
		case e.State == h, e.State == StateDisabled, h == StateDisabled, e.State == StateToBeDeleted:
			// The rows of what is to be deleted are collected, which closes it.
		case e.State > h:
			s.closes = append(s.closes, e)
		default:
			if s.to == nil {
				s.to = d.clone()
			}
			s.to.Subqueues[i].State = h
		}
	}
	return s
}
