package link

import (
	"context"

	"antipode/replication/bus"
)

// Publisher passes publishes through the link to p.
func (l *Link) Publisher(p bus.Publisher) bus.Publisher { return &publisher{p, l} }

type publisher struct {
	bus.Publisher
	l *Link
}

// Publish implements bus.Publisher. With a delay the publishes of one caller
// stay in order, because each waits for as long as the one before it.
func (p *publisher) Publish(subject string, data []byte, done func(error)) error {
	cut, delay := p.l.State()
	if cut {
		return bus.ErrUnavailable
	}
	if delay == 0 {
		return p.Publisher.Publish(subject, data, done)
	}
	started := p.l.Go(func(ctx context.Context) {
		if p.l.Pass(ctx) != nil {
			done(bus.ErrUnavailable)
			return
		}
		if err := p.Publisher.Publish(subject, data, done); err != nil {
			done(err)
		}
	})
	if !started {
		return bus.ErrClosed
	}
	return nil
}
