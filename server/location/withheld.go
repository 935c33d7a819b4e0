package location

import (
	"errors"
	"sync"
	"time"

	"antipode/failover/confirm"
	"antipode/failover/rejoin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/services/catalog"
	"antipode/stamp/kv"
)

// What the other location would refuse does not cross the link (R22). A location that was the primary of accounts, and that
// could not reach the other one for a while, asks it first which of them it has in a higher epoch (R21). Nothing rests on
// that: a gate refuses what comes all the same (R7).

// probeEvery is how often one frame is sent all the same while the question is not answered: the bus may take it where
// calls fail.
const probeEvery = 5 * time.Second

// askingPublisher sends nothing after a failure until the other location has been asked for higher epochs.
type askingPublisher struct {
	bus.Publisher
	c *confirming
}

// Publish implements bus.Publisher.
func (p askingPublisher) Publish(subject string, data []byte, done func(error)) error {
	if p.c.parted.Load() && !p.c.probes() {
		return bus.ErrUnavailable
	}
	err := p.Publisher.Publish(subject, data, func(err error) {
		p.c.published(err)
		done(err)
	})
	if err != nil {
		p.c.published(err)
	}
	return err
}

// probes reports whether one frame may be sent though the other location has not answered.
func (c *confirming) probes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.l.o.Clock.Mono()
	if now < c.probeAt {
		return false
	}
	c.probeAt = now + probeEvery
	return true
}

// published takes the answer of the bus to a frame.
func (c *confirming) published(err error) {
	parted := c.parted.Load()
	switch {
	case err == nil && parted:
		c.note(confirm.Reached{})
	case err == nil, errors.Is(err, bus.ErrFull), errors.Is(err, bus.ErrTooLarge), errors.Is(err, bus.ErrClosed):
	default:
		c.note(confirm.Parted{})
	}
}

// note gives the machine an event after which nothing has to be done.
func (c *confirming) note(e confirm.Event) {
	c.mu.Lock()
	if c.machine == nil {
		c.mu.Unlock()
		return
	}
	now := c.l.o.Clock.Mono()
	effects := c.machine.Step(now, e)
	c.fence.Set(c.machine.Held())
	if is := c.machine.State().Parted; is && !c.parted.Swap(is) {
		c.probeAt = now + probeEvery
	}
	c.mu.Unlock()
	for _, e := range effects {
		if e, ok := e.(confirm.Changed); ok {
			c.report(e)
		}
	}
}

// withholding decides which streams are withheld from the other location.
type withholding struct {
	l *Location

	mu sync.Mutex
	// of are the newest epochs of the accounts that were asked for.
	of map[geo.Account]lookup
}

// lookup is what the catalog had of an account's epoch. One that is not withheld stays so.
type lookup struct {
	epoch    geo.Epoch
	withheld bool
	at       time.Duration
}

// withheldFor is how long an epoch counts as withheld before it is looked up again.
const withheldFor = 10 * time.Millisecond

// withheld implements ship.Options.Withheld, by what a replica of the catalog has applied; nil for none. It takes no lock of
// the stamp, which waits for shippers with its own.
func (w *withholding) withheld(replica kv.Getter, st geo.Stream) bool {
	if w.l.confirming.passedBy(st.Account).Compare(st.Epoch) > 0 {
		return true
	}
	now := w.l.o.Clock.Mono()
	w.mu.Lock()
	v, known := w.of[st.Account]
	w.mu.Unlock()
	if known && v.epoch == st.Epoch && (!v.withheld || now < v.at+withheldFor) {
		return v.withheld
	}
	cat := w.l.o.Route.Catalog()
	if replica == nil || st.Range == cat {
		return false
	}
	a, err := catalog.GetAccount(replica, st.Account)
	if err != nil {
		return false // The account is gone, or nothing is known of it.
	}
	is := rejoin.Withheld(a, st, cat, w.l.o.Name)
	if v.epoch.Compare(st.Epoch) <= 0 {
		w.mu.Lock()
		w.of[st.Account] = lookup{st.Epoch, is, now}
		w.mu.Unlock()
	}
	return is
}

// passedBy is the epoch above this location's that the other one was found to have of an account.
func (c *confirming) passedBy(a geo.Account) geo.Epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed[a]
}
