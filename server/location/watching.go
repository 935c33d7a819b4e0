package location

import (
	"context"
	"sync"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

const (
	// watchEvery is how often the replication of the accounts is sampled for events, where they are not so many that the samples
	// would take more than a watchPart of the time; then it is more seldom, down to watchMost. An episode shows from its
	// second sample on.
	watchEvery = 500 * time.Millisecond
	watchPart  = 10
	watchMost  = 3 * time.Second
	// syncSamples is how many samples of a Last Sync Time are kept to measure its speed: 5 s of them.
	syncSamples = 11
	// watchAccountsEvery is how often the list of accounts is read for that.
	watchAccountsEvery = 5 * time.Second
)

// watching samples the replication of the accounts and reports in the event log what changes. The
// process that receives samples the accounts whose secondary is here; a process that leads a range, what is late
// of those whose primary is here. A process that begins to
// receive reports the episodes that last, since event logs are not shared.
type watching struct {
	l *Location
	// unavailable, late, fellOut, lateAt, lately, accounts and readAt belong to the goroutine of start.
	unavailable *episodes
	late        *episodes
	fellOut     *episodes
	lateAt      time.Duration // not before, on the monotonic clock
	lately      lately
	accounts    []*catalog.Account
	readAt      time.Time
	speeds      speeds[serviceKey] // of Last Sync Times, in ticks
	copies      speeds[copyKey]    // of bootstraps, in bytes

	cancel context.CancelFunc // guarded by Location.mu
	wg     sync.WaitGroup
}

// start samples until stop.
func (w *watching) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.lateAt, w.lately = 0, lately{}
	w.l.Primary.SetLate(nil, w.l.o.OnHeld) // What was late before a stop may have arrived.
	w.wg.Go(func() {
		for pause := watchEvery; clock.Wait(ctx, pause) == nil; {
			pause = watchPause(w.sample(ctx))
		}
	})
}

// watchPause returns the pause after a sample that took a time.
func watchPause(took time.Duration) time.Duration {
	return min(max(watchEvery, watchPart*took), watchMost)
}

// stop ends the goroutine of start and waits for it.
func (w *watching) stop() {
	if w.cancel != nil {
		w.cancel()
		w.wg.Wait()
		w.cancel = nil
	}
}

// sample looks at every account once, and returns how long that took.
func (w *watching) sample(ctx context.Context) time.Duration {
	w.readAccounts(ctx)
	if ctx.Err() != nil {
		return 0 // The location stops, which is no state of an account.
	}
	begun := w.l.o.Clock.Mono()
	w.sampleSecondaries()
	w.sampleCopies()
	w.sampleFellOut()
	if now := w.l.o.Clock.Mono(); now >= w.lateAt {
		w.lateAt = now + w.l.o.lateEvery()
		w.sampleLate()
	}
	return w.l.o.Clock.Mono() - begun
}

// readAccounts reads the list of accounts now and then. While the catalog does not answer the old
// list serves.
func (w *watching) readAccounts(ctx context.Context) {
	now := w.l.o.Clock.Now()
	if !w.readAt.IsZero() && now.Sub(w.readAt).Abs() < watchAccountsEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, scrapeWait)
	defer cancel()
	if list, err := w.l.Directory.Accounts(ctx); err == nil {
		w.accounts, w.readAt = list, now
		w.l.confirming.setOwn(list)
	}
}

// sampleSecondaries looks at the accounts whose secondary is here.
func (w *watching) sampleSecondaries() {
	found, times := map[serviceKey]string{}, map[serviceKey]int64{}
	if w.l.Whole() || w.l.Receives() {
		for _, a := range w.accounts {
			if a.Secondary != w.l.o.Name {
				continue
			}
			for _, s := range geo.Services {
				k, r := serviceKey{a.Name, s}, w.l.ReplicationNow(a, s)
				if found[k] = string(r.NoTime()); r.Known() {
					times[k] = int64(r.LastSync)
				}
			}
		}
	}
	w.speeds.add(w.l.o.Clock.Mono(), times)
	for _, e := range w.unavailable.step(found) {
		w.l.report(e)
	}
}
