package queues

import (
	"bytes"
	"errors"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Open is the command that makes a subqueue, before it comes into the dictionary. One that is open stays as it is.
// ErrStale: it was closed.
type Open struct {
	Command
	// Clears: it takes the place of others, which will be deleted.
	Clears bool
}

// Deletes implements services.Deletion.
func (c *Open) Deletes() bool { return c.Clears }

// Evaluate implements services.Write.
func (c *Open) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	e, exists, err := c.begin(get, at)
	switch {
	case err != nil:
		return services.Effect{}, err
	case !exists:
		e.head = head{state: StateAll, schema: schemaCurrent, first: at}
		return c.finish(e)
	case e.head.state != StateAll:
		return services.Effect{}, ErrStale
	}
	return c.unchanged(e)
}

// SetState is the command that gives a subqueue the state that the dictionary has for it. ErrStale: it was never
// opened, or is to be deleted, which is for good: a put that comes late is refused, never lost.
type SetState struct {
	Command
	To State
}

// Deletes implements services.Deletion.
func (c *SetState) Deletes() bool { return c.To == StateToBeDeleted }

// IsRemainder implements services.Remainder: the change of the dictionary is committed, and its answer waits.
func (c *SetState) IsRemainder() {}

// Evaluate implements services.Write.
func (c *SetState) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	e, exists, err := c.begin(get, at)
	switch {
	case err != nil:
		return services.Effect{}, err
	case exists && e.head.state == c.To:
		return c.unchanged(e)
	case !exists || e.head.state == StateToBeDeleted:
		return services.Effect{}, ErrStale
	}
	e.head.state = c.To
	return c.finish(e)
}

// collectMax is how many rows a Collect looks at.
const collectMax = 1000

// Collect is the command that deletes some of the messages of a subqueue that is to be deleted; of another one, some of
// those that have expired (protocol/queue.md 22, 23). It may be stopped, and begun again, anywhere.
type Collect struct {
	Command
	// From is where it begins: Next of the one before, nil for the first. What is to be deleted needs no place: there the
	// head is the place.
	From []byte

	// Next is a result: where the next one begins, nil at the end.
	Next []byte
	// Deleted is a result: how many messages it has deleted.
	Deleted int
}

// Deletes implements services.Deletion.
func (c *Collect) Deletes() bool { return true }

// IsRemainder implements services.Remainder: nobody puts what it deletes again.
func (c *Collect) IsRemainder() {}

// Evaluate implements services.Write.
func (c *Collect) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	c.Next, c.Deleted = nil, 0
	e, exists, err := c.begin(get, at)
	if err != nil {
		return services.Effect{}, err
	}
	w, ordered := get.(kv.Walker)
	switch {
	case !exists:
		return services.Effect{}, ErrStale
	case e.head.count == 0:
		return c.unchanged(e)
	case !ordered:
		return services.Effect{}, errWalker
	}
	if err := c.walk(e, w); err != nil {
		return services.Effect{}, err
	}
	if c.Deleted == 0 {
		return c.unchanged(e)
	}
	return c.finish(e)
}

func (c *Collect) walk(e *evaluation, w kv.Walker) error {
	all := e.head.state == StateToBeDeleted
	from := appendVisible(e.prefix[:len(e.prefix):len(e.prefix)], e.head.first)
	if !all && c.From != nil {
		from = append(e.prefix[:len(e.prefix):len(e.prefix)], c.From...)
	}
	end := keys.PrefixEnd(append(e.prefix[:len(e.prefix):len(e.prefix)], rowMessage))
	looked := 0
	var damaged error
	err := w.Rows(from, end, func(key, value []byte) bool {
		var p place
		var m message
		if p, m, damaged = parseRow(e.prefix, key, value); damaged != nil {
			return false
		}
		if looked == collectMax {
			c.Next = bytes.Clone(key[len(e.prefix):])
			if all {
				e.head.first = p.visible
			}
			return false
		}
		looked++
		if all || m.expired(e.at) {
			e.drop(p, &m)
			c.Deleted++
		}
		return true
	})
	return errors.Join(err, damaged)
}
