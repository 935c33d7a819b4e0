package queues

import (
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// ErrStale is the error of a command that was made of an older dictionary. Nothing was changed, and the command may be
// made again of the present one.
var ErrStale = errors.New("queues: the subqueue is not what the dictionary said")

// Command is what the commands on one subqueue have in common.
type Command struct {
	At Subqueue
	// Left is a result: how many messages are in the subqueue after the command.
	Left uint64
}

// Partition implements services.Write.
func (c *Command) Partition() keys.Partition { return c.At.Partition() }

// Gone implements services.Write.
func (c *Command) Gone() error { return storageerr.QueueNotFound }

// readHead reads the head row of a subqueue, whose keys have a prefix. The first one has none at first, and is open.
func readHead(get kv.Getter, prefix []byte, id SubqueueID) (h head, exists bool, err error) {
	v, ok, err := get.Get(append(prefix[:len(prefix):len(prefix)], rowHead))
	if err != nil {
		return head{}, false, err
	}
	if ok {
		h, err = parseHead(v)
		return h, true, err
	}
	if id == 0 {
		return head{state: StateAll, schema: schemaCurrent}, true, nil
	}
	return head{}, false, nil
}

// evaluation is one evaluation of a command: the rows that it sees, and what it does to them.
type evaluation struct {
	get    kv.Getter
	at     geo.Timestamp
	prefix []byte
	head   head
	ops    []change.Op
}

// begin reads the head. exists is false for a subqueue that was never opened.
func (c *Command) begin(get kv.Getter, at geo.Timestamp) (e *evaluation, exists bool, err error) {
	prefix := c.At.Partition().Append(make([]byte, 0, 128))
	h, exists, err := readHead(get, prefix, c.At.ID)
	return &evaluation{get: get, at: at, prefix: prefix, head: h}, exists, err
}

// open is begin for a subqueue that must be in one of some states.
func (c *Command) open(get kv.Getter, at geo.Timestamp, states ...State) (*evaluation, error) {
	e, exists, err := c.begin(get, at)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		if exists && e.head.state == s {
			return e, nil
		}
	}
	return nil, ErrStale
}

// finish writes the head, and returns the effect.
func (c *Command) finish(e *evaluation) (services.Effect, error) {
	e.head.last = e.at
	e.set([]byte{rowHead}, e.head.append(nil))
	c.Left = e.head.count
	return services.Effect{Ops: e.ops}, nil
}

// unchanged is finish for a command that does nothing.
func (c *Command) unchanged(e *evaluation) (services.Effect, error) {
	c.Left = e.head.count
	return services.Effect{}, nil
}

func (e *evaluation) set(row, value []byte) { e.ops = append(e.ops, change.Op{Row: row, Value: value}) }

func (e *evaluation) remove(row []byte) { e.ops = append(e.ops, change.Op{Delete: true, Row: row}) }

// insert writes the row of a message, and keeps the head below it: the step that makes guarantee H (protocol/queue.md
// 19). The head is never above now.
func (e *evaluation) insert(p place, m *message) {
	e.set(p.append(nil), m.append(nil))
	e.head.first = min(e.head.first, p.visible)
}

// drop deletes a message with its text.
func (e *evaluation) drop(p place, m *message) {
	e.remove(p.append(nil))
	if m.apart {
		e.remove(textRow(p.id))
	}
	e.head.count--
}

// move gives a message another time from which it is visible.
func (e *evaluation) move(from, to place, m *message) {
	if from != to {
		e.remove(from.append(nil))
	}
	e.insert(to, m)
}

// errDamaged: a row of a subqueue is not as this package writes it.
var errDamaged = errors.New("queues: damaged subqueue")

// textOf reads the text of a message.
func textOf(get kv.Getter, prefix []byte, p place, m *message) ([]byte, error) {
	if !m.apart {
		return m.text, nil
	}
	text, ok, err := get.Get(append(prefix[:len(prefix):len(prefix)], textRow(p.id)...))
	if err == nil && !ok {
		err = fmt.Errorf("%w: message %s at %x has no text", errDamaged, p.id, prefix)
	}
	return text, err
}

// parseRow decodes a message with its key.
func parseRow(prefix, key, value []byte) (p place, m message, err error) {
	if p, err = parsePlace(key[len(prefix):]); err == nil {
		m, err = parseMessage(value)
	}
	if err != nil {
		err = fmt.Errorf("%w: row %x: %w", errDamaged, key, err)
	}
	return p, m, err
}

// find reads the message that a receipt names; MessageNotFound if it is not there any more, or has expired.
func (e *evaluation) find(p place) (message, error) {
	v, ok, err := e.get.Get(p.append(e.prefix[:len(e.prefix):len(e.prefix)]))
	if err != nil {
		return message{}, err
	}
	if !ok {
		return message{}, storageerr.MessageNotFound
	}
	m, err := parseMessage(v)
	switch {
	case err != nil:
		return m, fmt.Errorf("%w: message %s at %x: %w", errDamaged, p.id, e.prefix, err)
	case m.expired(e.at):
		return m, storageerr.MessageNotFound
	}
	return m, nil
}

// result is a message as a call returns it, without its text.
func (c *Command) result(e *evaluation, p place, m *message) Message {
	r := receipt{schema: e.head.schema, subqueue: c.At.ID, visible: p.visible}
	return Message{
		ID: p.id, Inserted: m.inserted, Expires: m.expires, Visible: p.visible, DequeueCount: m.dequeues,
		Receipt: r.encode(c.At.Queue, p.id),
	}
}
