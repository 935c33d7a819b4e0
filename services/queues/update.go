package queues

import (
	"strconv"
	"time"

	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// named is a command on the message that a receipt names.
type named struct {
	Command
	place place
}

// newNamed returns the command on the message that a receipt names, in the subqueue that the receipt names.
func newNamed(q Queue, id MessageID, text string) (n named, err error) {
	r, err := parseReceipt(text, q, id)
	if err != nil {
		return n, err
	}
	if r.schema != schemaCurrent {
		return n, ErrReceipt(text)
	}
	return named{Command{At: Subqueue{q, r.subqueue}}, place{r.visible, id}}, nil
}

// MessageID is the id of the message.
func (n *named) MessageID() MessageID { return n.place.id }

// find reads the message. A subqueue that is to be deleted, or was never opened, has none (protocol/queue.md 22).
func (n *named) find(get kv.Getter, at geo.Timestamp) (*evaluation, message, error) {
	e, exists, err := n.begin(get, at)
	switch {
	case err != nil:
		return nil, message{}, err
	case !exists || e.head.state == StateToBeDeleted:
		return nil, message{}, storageerr.MessageNotFound
	case e.head.state == StateDisabled:
		return nil, message{}, ErrStale
	}
	m, err := e.find(n.place)
	return e, m, err
}

// Update is the command that changes when a message is visible, and its text (protocol/queue.md 22).
type Update struct {
	named
	Timeout time.Duration
	// Text is the new one; nil leaves it as it is.
	Text []byte

	// Message is the result, with the new receipt.
	Message Message
}

// NewUpdate returns the command for the message that a receipt names.
func NewUpdate(q Queue, id MessageID, receipt string, timeout time.Duration, text []byte) (*Update, error) {
	n, err := newNamed(q, id, receipt)
	return &Update{named: n, Timeout: timeout, Text: text}, err
}

// Evaluate implements services.Write.
func (c *Update) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	e, m, err := c.find(get, at)
	if err != nil {
		return services.Effect{}, err
	}
	to := place{ticksAfter(at, c.Timeout), c.place.id}
	if m.expires != 0 && to.visible > m.expires {
		seconds := strconv.FormatInt(int64(c.Timeout/time.Second), 10)
		return services.Effect{}, invalidParameter("visibilitytimeout", seconds, "visibilitytimeout must not pass the expiry time of the message")
	}
	if c.Text != nil {
		e.setText(c.place.id, &m, c.Text)
	}
	e.move(c.place, to, &m)
	c.Message = c.result(e, to, &m)
	return c.finish(e)
}

// Delete is the command that deletes a message (protocol/queue.md 22).
type Delete struct{ named }

// NewDelete returns the command for the message that a receipt names.
func NewDelete(q Queue, id MessageID, receipt string) (*Delete, error) {
	n, err := newNamed(q, id, receipt)
	return &Delete{n}, err
}

// Deletes implements services.Deletion.
func (c *Delete) Deletes() bool { return true }

// Evaluate implements services.Write.
func (c *Delete) Evaluate(get kv.Getter, at geo.Timestamp) (services.Effect, error) {
	e, m, err := c.find(get, at)
	if err != nil {
		return services.Effect{}, err
	}
	e.drop(c.place, &m)
	return c.finish(e)
}
