package membus

import (
	"math/rand/v2"
	"sync"
	"time"

	"antipode/internal/clock"
	"antipode/replication/bus"
)

// Bus is one stream of one source location and its durable consumer, which
// exists from the start: what is published before a consumer is opened waits for
// it. All methods may be called concurrently.
type Bus struct {
	clk    clock.Clock
	bounds bus.Bounds

	// mu guards everything below. No done runs while it is held, and of the caller's code only a
	// Predicate.
	mu sync.Mutex
	// queue holds the publishes that no Step has decided yet, in Publish order.
	queue []*message
	// stored is ordered by seq: what the consumer has not acknowledged.
	stored      []*message
	storedBytes int64
	// held are confirmed messages that wait for a release; they count as stored
	// against BytesMax.
	held      []*message
	heldBytes int64
	// pending counts stored messages that are delivered and unacknowledged.
	pending     int
	seq         uint64
	incarnation time.Time
	// consumer is the one open consumer, nil when none is.
	consumer *Consumer

	// rng draws the random faults; nil draws none.
	rng                                *rand.Rand
	rates                              Rates
	loseIf, doubleIf, holdIf, refuseIf Predicate
	swapNext                           bool
	cutPublishers, cutConsumer         bool
	counts                             Counts
}

// message is one message on its way: queued, then held or stored.
type message struct {
	msg       bus.Message
	publisher *Publisher
	done      func(error)
	// delivered counts deliveries in all.
	delivered int
	// out means that a consumer has it. deadline, a reading of Clock.Mono, is when it is
	// delivered again.
	out      bool
	deadline time.Duration
}

func (m *message) size() int64 { return int64(len(m.msg.Subject) + len(m.msg.Data)) }

// New makes an empty stream whose incarnation is the clock's wall time now.
func New(clk clock.Clock, bounds bus.Bounds) *Bus {
	return &Bus{clk: clk, bounds: bounds.WithDefaults(), incarnation: clk.Now()}
}

// Incarnation returns when the stream was made or last wiped.
func (c *Bus) Incarnation() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.incarnation
}

// Queued returns how many publishes wait for a Step.
func (c *Bus) Queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// Stored returns how many messages the stream holds, delivered ones that are not
// acknowledged included.
func (c *Bus) Stored() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stored)
}

// Deliver steps until every publish that was queued when it was called has been
// decided, and returns how many Steps it took.
func (c *Bus) Deliver() int {
	n := c.Queued()
	for i := range n {
		if !c.Step() {
			return i
		}
	}
	return n
}

// Step draws the faults and decides one queued publish, the oldest unless a swap fires, calling
// its done before it returns. It reports whether there was one. Cuts, heals, wipes and releases
// are drawn even if there was none.
func (c *Bus) Step() bool {
	c.mu.Lock()
	c.ambient()
	m := c.next()
	if m == nil {
		c.mu.Unlock()
		return false
	}
	err := c.decide(m)
	m.publisher.inFlight--
	c.mu.Unlock()
	m.done(err)
	return true
}

// ambient draws the faults that concern no single message. The caller holds mu.
func (c *Bus) ambient() {
	if c.cutPublishers || c.cutConsumer {
		if chance(c.rng, c.rates.Heal) {
			c.cut(false, false)
		}
	} else if chance(c.rng, c.rates.Cut) {
		c.cut(true, true)
	}
	if chance(c.rng, c.rates.Wipe) {
		c.wipe()
	}
	if chance(c.rng, c.rates.Release) && len(c.held) > 0 {
		c.releaseOne()
	}
}

// next takes the publish to decide from the queue. The caller holds mu.
func (c *Bus) next() *message {
	swap := chance(c.rng, c.rates.Swap) || c.swapNext
	if len(c.queue) == 0 {
		return nil
	}
	if swap && len(c.queue) > 1 {
		c.queue[0], c.queue[1] = c.queue[1], c.queue[0]
		c.swapNext = false
		c.counts.Swapped++
	}
	m := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	return m
}

// decide handles m as the faults require and returns the answer to its publisher. The caller
// holds mu.
func (c *Bus) decide(m *message) error {
	lose := chance(c.rng, c.rates.Lose) || picked(c.loseIf, m)
	double := chance(c.rng, c.rates.Double) || picked(c.doubleIf, m)
	hold := chance(c.rng, c.rates.Delay) || picked(c.holdIf, m)
	refuse := chance(c.rng, c.rates.Refuse) || picked(c.refuseIf, m)
	full := c.storedBytes+c.heldBytes+m.size() > c.bounds.BytesMax
	switch {
	case c.cutPublishers:
		c.counts.CutEnded++
		// The answer was lost; the message itself may have arrived before.
		if !full && c.rng != nil && c.rng.IntN(2) == 0 {
			c.counts.CutStored++
			c.store(m)
		}
		return bus.ErrUnavailable
	case refuse:
		c.counts.Refused++
		return bus.ErrFull
	case full:
		return bus.ErrFull
	case lose:
		c.counts.Lost++
		return nil
	case hold:
		c.counts.Delayed++
		c.held = append(c.held, m)
		c.heldBytes += m.size()
		return nil
	}
	c.store(m)
	if double {
		c.counts.Doubled++
		again := *m
		again.msg.Data = append([]byte(nil), m.msg.Data...)
		c.store(&again)
	}
	return nil
}

func picked(pick Predicate, m *message) bool { return pick != nil && pick(m.msg) }

// store appends m to the stream under the next number. The caller holds mu.
func (c *Bus) store(m *message) {
	c.seq++
	m.msg.Seq, m.msg.Incarnation = c.seq, c.incarnation
	c.stored = append(c.stored, m)
	c.storedBytes += m.size()
	c.wake()
}

// wake lets the consumer's Wait look again. The caller holds mu.
func (c *Bus) wake() {
	if c.consumer == nil {
		return
	}
	select {
	case c.consumer.wake <- struct{}{}:
	default:
	}
}
