package membus

import (
	"math/rand/v2"

	"antipode/replication/bus"
)

// Rates are the chances of each fault, from 0 to 1, drawn once in every Step.
// The zero value draws nothing.
type Rates struct {
	// Lose: the message is confirmed to its publisher and stored nowhere.
	Lose float64
	// Double: the message is stored twice.
	Double float64
	// Swap: the message trades places with the one queued behind it. It does not
	// fire when nothing is queued behind.
	Swap float64
	// Delay: the message is confirmed, and stored only when it is released.
	Delay float64
	// Release: one delayed message, the oldest, is stored now.
	Release float64
	// Refuse: the publish ends with bus.ErrFull.
	Refuse float64
	// Cut: publishers and consumer lose the bus, until healed.
	Cut float64
	// Heal: a cut ends.
	Heal float64
	// Wipe: the stream is deleted with all it holds and made again.
	Wipe float64
}

// Counts says how often each fault fired since New.
type Counts struct {
	Lost, Doubled, Swapped, Delayed, Released, Refused, Cut, Healed, Wiped uint64
	// CutEnded counts publishes that ended with bus.ErrUnavailable, and
	// CutStored those among them that were stored all the same.
	CutEnded, CutStored uint64
}

// Predicate picks messages for a fault by hand. It sees the message as the
// publisher gave it: Subject and Data are set, Seq and Redelivered are not. It
// is called with the bus locked and must not call back.
type Predicate func(bus.Message) bool

// chance draws one fault. A rate of zero draws nothing, so that turning one fault
// on does not shift the draws of those that are off.
func chance(rng *rand.Rand, rate float64) bool {
	return rng != nil && rate > 0 && rng.Float64() < rate
}

// SetFaults makes every following Step draw its faults from rng. A nil rng stops
// it. The generator is used under the bus's lock only, and belongs to the
// bus until another is set.
func (c *Bus) SetFaults(rng *rand.Rand, rates Rates) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rng, c.rates = rng, rates
}

// LoseIf loses every message that pick accepts, until set to nil.
func (c *Bus) LoseIf(pick Predicate) { c.set(&c.loseIf, pick) }

// DoubleIf doubles every message that pick accepts, until set to nil.
func (c *Bus) DoubleIf(pick Predicate) { c.set(&c.doubleIf, pick) }

// HoldIf delays every message that pick accepts, until set to nil: its publisher is
// answered that it is stored, and the consumer gets it after a Release, behind whatever was
// stored in the meantime. Setting nil releases nothing.
func (c *Bus) HoldIf(pick Predicate) { c.set(&c.holdIf, pick) }

// RefuseIf ends the publish of every message that pick accepts with
// bus.ErrFull, until set to nil.
func (c *Bus) RefuseIf(pick Predicate) { c.set(&c.refuseIf, pick) }

func (c *Bus) set(field *Predicate, pick Predicate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field = pick
}

// SwapNext makes the next Step that has two queued messages take the second first.
func (c *Bus) SwapNext() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swapNext = true
}

// Held returns how many messages are delayed.
func (c *Bus) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// Release stores up to n delayed messages, the oldest first, and returns how many
// it stored. A negative n means all. It works through a cut.
func (c *Bus) Release(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 0 || n > len(c.held) {
		n = len(c.held)
	}
	for range n {
		c.releaseOne()
	}
	return n
}

// Cut takes the bus away from the publishers, the consumer, or both, or gives
// it back. While cut off, a publish ends with bus.ErrUnavailable and Poll and
// Ack return it.
func (c *Bus) Cut(publishers, consumer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut(publishers, consumer)
}

// Wipe deletes the stream with all it holds and makes it again, under a new
// incarnation. Queued publishes meet the new stream; delayed messages stay so.
func (c *Bus) Wipe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wipe()
}

// Counts returns how often each fault fired.
func (c *Bus) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// releaseOne stores the oldest delayed message. The caller holds mu and has
// checked that there is one.
func (c *Bus) releaseOne() {
	m := c.held[0]
	c.held[0] = nil
	c.held = c.held[1:]
	c.heldBytes -= m.size()
	c.counts.Released++
	c.store(m)
}

// cut changes what is cut off and counts the change. The caller holds mu.
func (c *Bus) cut(publishers, consumer bool) {
	was, is := c.cutPublishers || c.cutConsumer, publishers || consumer
	if is && (publishers && !c.cutPublishers || consumer && !c.cutConsumer) {
		c.counts.Cut++
	}
	if was && !is {
		c.counts.Healed++
	}
	c.cutPublishers, c.cutConsumer = publishers, consumer
	c.wake()
}

// wipe is Wipe with mu held.
func (c *Bus) wipe() {
	c.stored, c.storedBytes, c.pending, c.seq = nil, 0, 0, 0
	next := c.clk.Now()
	if !next.After(c.incarnation) {
		next = c.incarnation.Add(1)
	}
	c.incarnation = next
	c.counts.Wiped++
	c.wake()
}
