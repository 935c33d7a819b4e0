package queues

import (
	"errors"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/kv"
)

const (
	// walkMax is how many rows a Get walks over that have expired, and deletes, before it leaves the rest to the next one.
	walkMax = 1000
	// headRest is how far a head moves before a Get that finds nothing writes it: polls of an idle queue write nothing.
	headRest = time.Second
)

// errWalker: a command that walks was evaluated on a state that has no order.
var errWalker = errors.New("queues: a command needs rows in order")

// Get is the command that takes visible messages and hides them (protocol/queue.md 21).
type Get struct {
	Command
	// Max is how many messages it takes at most.
	Max     int
	Timeout time.Duration

	// Messages are the result, in the order in which they were visible. More: there may be others, behind many that have
	// expired.
	Messages []Message
	More     bool
	// walked counts the rows that the last evaluation walked over.
	walked int
}

type taken struct {
	place
	message
}

// Evaluate implements services.Write.
func (c *Get) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	c.Messages, c.More, c.walked = nil, false, 0
	e, err := c.open(get, at, StateAll, StateAllExceptPut)
	if err != nil {
		return services.Effect{}, err
	}
	if e.head.count == 0 {
		return c.unchanged(e)
	}
	before := e.head.first
	found, err := c.walk(e)
	if err != nil {
		return services.Effect{}, err
	}
	for i, t := range found {
		text, err := textOf(get, e.prefix, t.place, &t.message)
		if err != nil {
			return services.Effect{}, err
		}
		t.dequeues++
		// Messages of one Get come back in the order in which they were.
		to := place{after(ticksAfter(at, c.Timeout), int64(i)), t.id}
		e.move(t.place, to, &t.message)
		m := c.result(e, to, &t.message)
		m.Text = append([]byte{}, text...)
		c.Messages = append(c.Messages, m)
	}
	// Where nothing is visible, all are hidden: a poll of an empty queue does not come here.
	if moved := e.head.first >= ticksAfter(before, headRest); len(e.ops) == 0 && !moved {
		return c.unchanged(e)
	}
	return c.finish(e)
}

// walk finds the messages to take, deletes those that have expired on the way, and moves the head to the first message
// that stays where it is, or to now: a walk ends there, so that no other one is visible.
func (c *Get) walk(e *evaluation) (found []taken, err error) {
	w, ordered := e.get.(kv.Walker)
	if !ordered {
		return nil, errWalker
	}
	from := appendVisible(e.prefix[:len(e.prefix):len(e.prefix)], e.head.first)
	end := appendVisible(e.prefix[:len(e.prefix):len(e.prefix)], e.at+1)
	next := e.at
	var damaged error
	err = w.Rows(from, end, func(key, value []byte) bool {
		var t taken
		if t.place, t.message, damaged = parseRow(e.prefix, key, value); damaged != nil {
			return false
		}
		expired := t.expired(e.at)
		if !expired && len(found) == c.Max || c.walked == walkMax+c.Max {
			next, c.More = t.visible, len(found) < c.Max
			return false
		}
		c.walked++
		if expired {
			e.drop(t.place, &t.message)
		} else {
			found = append(found, t)
		}
		return true
	})
	e.head.first = next
	return found, errors.Join(err, damaged)
}

// ticksAfter returns the time d after t.
func ticksAfter(t geo.Timestamp, d time.Duration) geo.Timestamp {
	return after(t, int64(d/(time.Second/geo.TicksPerSecond)))
}
