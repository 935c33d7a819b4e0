package epochs

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/failover/dns"
	"antipode/geo"
	"antipode/internal/clock"
)

// askedMax bounds how long requests wait until a new Follower has asked all locations: a location that is away costs
// the first requests of a gateway this much, and no later one.
const askedMax = 2 * time.Second

// Options configures a Follower. Every may be zero.
type Options struct {
	Sources []dns.Source
	// Every: see dns.PollerOptions.
	Every  time.Duration
	Clock  clock.Clock
	Logger *slog.Logger
}

// Follower knows the highest epoch of each account that a location has reported. It implements routing.Epochs. Its
// methods may be called concurrently.
type Follower struct {
	view *dns.View
	// asked is closed when all locations were asked once, or askedMax is over.
	asked  chan struct{}
	cancel context.CancelFunc
	done   errgroup.Group
}

// Follow begins to ask the locations. Close must follow.
func Follow(o Options) *Follower {
	f := &Follower{view: dns.NewView(), asked: make(chan struct{})}
	poller := dns.NewPoller(dns.PollerOptions{Sources: o.Sources, View: f.view, Clock: o.Clock, Every: o.Every, Logger: o.Logger})
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(context.Background())
	f.done.Go(func() error { return poller.Run(ctx) })
	f.done.Go(func() error {
		defer close(f.asked)
		within, cancel := context.WithTimeout(ctx, askedMax)
		defer cancel()
		select {
		case <-poller.Asked():
		case <-within.Done():
		}
		return nil
	})
	return f
}

// Newest implements routing.Epochs.
func (f *Follower) Newest(ctx context.Context, a geo.Account) (e geo.Epoch, secondary geo.Location) {
	select {
	case <-f.asked:
	case <-ctx.Done():
	}
	entry, _ := f.view.Lookup(a)
	return entry.Epoch, entry.Secondary
}

// Close ends the questions. Newest answers what was known then.
func (f *Follower) Close() error {
	f.cancel()
	return f.done.Wait()
}
