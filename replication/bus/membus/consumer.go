package membus

import (
	"context"

	"antipode/replication/bus"
)

// Consumer is the bus.Consumer of a Bus.
type Consumer struct {
	c *Bus
	// wake holds a token when something changed since Wait last looked.
	wake chan struct{}
	// closed is guarded by c.mu.
	closed bool
	// cutSeen means that Wait has reported the cut that is on. Guarded by c.mu.
	cutSeen bool
}

var _ bus.Consumer = (*Consumer)(nil)

// OpenConsumer returns the stream's consumer. A consumer that is still open is closed, as the
// durable consumer has one user at a time.
func (c *Bus) OpenConsumer() *Consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.consumer != nil {
		c.consumer.close()
	}
	q := &Consumer{c: c, wake: make(chan struct{}, 1)}
	c.consumer = q
	return q
}

// Poll returns messages whose ack wait is over, then new ones.
func (q *Consumer) Poll(limit int) ([]bus.Message, error) {
	c := q.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.closed {
		return nil, bus.ErrClosed
	}
	if c.cutConsumer {
		return nil, bus.ErrUnavailable
	}
	var out []bus.Message
	now := c.clk.Mono()
	for _, m := range c.stored {
		if len(out) >= limit {
			break
		}
		switch {
		case m.out && now < m.deadline:
			continue
		case !m.out && c.pending >= c.bounds.AckPendingMax:
			continue
		case !m.out:
			c.pending++
		}
		m.out, m.deadline = true, now+c.bounds.AckWait
		m.delivered++
		msg := m.msg
		msg.Redelivered = m.delivered > 1
		msg.Data = append([]byte(nil), m.msg.Data...)
		out = append(out, msg)
	}
	return out, nil
}

// Wait blocks until Poll may return something or ctx ends. The bus has no
// timer: a message whose ack wait ended is noticed with the next event. A cut is
// reported once.
func (q *Consumer) Wait(ctx context.Context) error {
	for {
		if found, err := q.look(); found || err != nil {
			return err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look reports whether Poll would return something.
func (q *Consumer) look() (bool, error) {
	c := q.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.closed {
		return false, bus.ErrClosed
	}
	if c.cutConsumer {
		if q.cutSeen {
			return false, nil
		}
		q.cutSeen = true
		return false, bus.ErrUnavailable
	}
	q.cutSeen = false
	now := c.clk.Mono()
	for _, m := range c.stored {
		if m.out && now >= m.deadline || !m.out && c.pending < c.bounds.AckPendingMax {
			return true, nil
		}
	}
	return false, nil
}

// Ack drops m and all before it from the stream. A message of a former
// incarnation is not in the stream any more: nothing happens.
func (q *Consumer) Ack(m bus.Message) error {
	c := q.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case q.closed:
		return bus.ErrClosed
	case c.cutConsumer:
		return bus.ErrUnavailable
	case !m.Incarnation.Equal(c.incarnation):
		return nil
	}
	n := 0
	for n < len(c.stored) && c.stored[n].msg.Seq <= m.Seq {
		if c.stored[n].out {
			c.pending--
		}
		c.storedBytes -= c.stored[n].size()
		c.stored[n] = nil
		n++
	}
	c.stored = c.stored[n:]
	c.wake()
	return nil
}

// Close gives unacknowledged messages back to the stream, for the next consumer.
func (q *Consumer) Close() error {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	q.close()
	return nil
}

// close is Close with c.mu held.
func (q *Consumer) close() {
	if q.closed {
		return
	}
	c := q.c
	q.closed = true
	for _, m := range c.stored {
		m.out = false
	}
	c.pending = 0
	c.wake()
	c.consumer = nil
}
