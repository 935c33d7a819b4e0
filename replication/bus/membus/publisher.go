package membus

import (
	"fmt"

	"antipode/replication/bus"
)

// Publisher is a bus.Publisher of a Bus. Every done is called inside a Step
// or inside Close.
type Publisher struct {
	c *Bus
	// inFlight counts publishes that no Step has decided. Guarded by c.mu.
	inFlight int
	// closed is guarded by c.mu.
	closed bool
}

var _ bus.Publisher = (*Publisher)(nil)

// OpenPublisher returns a new publisher. Any number may be open.
func (c *Bus) OpenPublisher() *Publisher { return &Publisher{c: c} }

// Publish queues the message for a later Step.
func (p *Publisher) Publish(subject string, data []byte, done func(error)) error {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.closed:
		return bus.ErrClosed
	case len(data) > c.bounds.PayloadMax:
		return fmt.Errorf("%w: %d bytes, at most %d", bus.ErrTooLarge, len(data), c.bounds.PayloadMax)
	case p.inFlight >= c.bounds.WindowMax:
		return fmt.Errorf("%w: %d publishes in flight", bus.ErrFull, p.inFlight)
	}
	p.inFlight++
	// The consumer will own its Data, while the publisher gets this one back.
	own := append([]byte(nil), data...)
	c.queue = append(c.queue, &message{
		msg:       bus.Message{Subject: subject, Data: own},
		publisher: p,
		done:      done,
	})
	return nil
}

// MaxPayload is the bound given to New.
func (p *Publisher) MaxPayload() int { return p.c.bounds.PayloadMax }

// Close ends the publisher's queued publishes with bus.ErrClosed, in order.
// They are not stored.
func (p *Publisher) Close() error {
	c := p.c
	c.mu.Lock()
	p.closed = true
	var mine, others []*message
	for _, m := range c.queue {
		if m.publisher == p {
			mine = append(mine, m)
		} else {
			others = append(others, m)
		}
	}
	c.queue = others
	p.inFlight = 0
	c.mu.Unlock()
	for _, m := range mine {
		m.done(bus.ErrClosed)
	}
	return nil
}
