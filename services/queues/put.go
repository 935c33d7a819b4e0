package queues

import (
	"antipode/geo"
	"antipode/services"
	"antipode/stamp/kv"
)

// Put is the command that puts a message (protocol/queue.md 19).
type Put struct {
	Command
	ID MessageID
	PutOptions

	// Message is the result.
	Message Message
}

// Evaluate implements services.Write. The commit time rises with each command, so that messages without a delay are
// ordered as they were put.
func (c *Put) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	e, err := c.open(get, at, StateAll)
	if err != nil {
		return services.Effect{}, err
	}
	p, m := place{ticksAfter(at, c.Delay), c.ID}, message{inserted: at}
	if c.TTL >= 0 {
		m.expires = ticksAfter(at, c.TTL)
	}
	e.setText(p.id, &m, c.Text)
	if e.head.count == 0 {
		e.head.first = at // Nothing is there, so that a walk need not pass what was.
	}
	e.insert(p, &m)
	e.head.count++
	c.Message = c.result(e, p, &m)
	return c.finish(e)
}

// setText gives a message its text.
func (e *evaluation) setText(id MessageID, m *message, text []byte) {
	switch {
	case len(text) > InlineMax:
		m.apart, m.text = true, nil
		e.set(textRow(id), text)
		return
	case m.apart:
		e.remove(textRow(id))
	}
	m.apart, m.text = false, text
}
