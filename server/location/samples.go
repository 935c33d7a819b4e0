package location

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/metrics"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// samples implements metrics.Source for the locations of a process. Everything is read at
// the scrape; ranges led by other processes are left to those.
type samples struct{ set Set }

// leaders calls f for each range of the set that has its leader in this process.
func (s samples) leaders(f func(*Location, geo.Service, *ranges.Range)) {
	for _, l := range s.set {
		for _, d := range l.o.Route.Ranges() {
			if r := l.Leader(d.ID); r != nil {
				f(l, d.Service, r)
			}
		}
	}
}

// Ranges implements metrics.Source.
func (s samples) Ranges() []metrics.RangeSample {
	var out []metrics.RangeSample
	s.leaders(func(l *Location, svc geo.Service, r *ranges.Range) {
		b, err := r.Machine.Backlog()
		if err != nil {
			l.o.Logger.Error("cannot read the backlog", "location", l.o.Name, "service", svc, "error", err)
			return
		}
		uncompared := 0
		if r.Machine.Uncompared() {
			uncompared = 1
		}
		out = append(out, metrics.RangeSample{
			Location: l.o.Name, Service: svc, InSyncReplicas: r.InSync(), Uncompared: uncompared,
			BacklogRecords: b.Records, BacklogBytes: b.Bytes, BacklogPayload: b.Payload, BacklogAge: l.age(b), FellOut: fellOut(r.Machine),
		})
	})
	return out
}

// fellOut counts the accounts that fell out of the outbox's budget.
func fellOut(m *ranges.Machine) (n int) {
	for _, h := range m.Holdings() {
		if h.FellOut {
			n++
		}
	}
	return n
}

// Budgets implements metrics.Source.
func (s samples) Budgets() []metrics.BudgetSample {
	var out []metrics.BudgetSample
	for _, l := range s.set {
		stamp, err := l.Stamp()
		if err != nil {
			continue
		}
		for _, id := range l.o.Local {
			if n := stamp.Node(id); n != nil {
				out = append(out, metrics.BudgetSample{Location: l.o.Name, Node: id, Bytes: l.budget(n).Bytes})
			}
		}
	}
	return out
}

// Replicas implements metrics.Source.
func (s samples) Replicas() []metrics.ReplicaSample {
	var out []metrics.ReplicaSample
	s.leaders(func(l *Location, _ geo.Service, r *ranges.Range) {
		for _, replica := range r.View().Standings {
			out = append(out, metrics.ReplicaSample{Location: l.o.Name, Range: r.ID(), Node: replica.Node, InSync: replica.InSync})
		}
	})
	return out
}

// scrapeWait bounds how long a scrape waits for the catalog.
const scrapeWait = 2 * time.Second

// accounts calls f for each account.
func (s samples) accounts(f func(*catalog.Account)) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	accounts, err := s.set.Accounts(ctx)
	if err != nil {
		return // Unknown series are absent, never guessed.
	}
	for _, a := range accounts {
		f(a)
	}
}

// secondaries calls f for each account whose secondary location is in the set.
func (s samples) secondaries(f func(*Location, *catalog.Account)) {
	s.accounts(func(a *catalog.Account) {
		if l := s.set.Find(a.Secondary); l != nil {
			f(l, a)
		}
	})
}

// SyncTimes implements metrics.Source.
func (s samples) SyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	s.secondaries(func(l *Location, a *catalog.Account) {
		for _, d := range l.o.Route.Ranges() {
			r := l.Leader(d.ID)
			if r == nil {
				continue
			}
			for _, src := range l.sourcesOf(d, a.Primary) {
				if t, ok := stats.SyncTimesOf(r.Machine.Progress(src, a.Name), a.Name); ok {
					out = append(out, metrics.SyncSample{Location: l.o.Name, Account: a.Name, Service: d.Service, Time: t.Least})
				}
			}
		}
	})
	return out
}

// LastSyncTimes implements metrics.Source.
func (s samples) LastSyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	s.secondaries(func(l *Location, a *catalog.Account) {
		for _, svc := range geo.Services {
			if r := l.ReplicationNow(a, svc); r.Known() {
				out = append(out, metrics.SyncSample{Location: l.o.Name, Account: a.Name, Service: svc, Time: r.LastSync})
			}
		}
	})
	return out
}

// Unavailable implements metrics.Source. A process that neither runs the whole location nor receives
// leaves it to the one that does.
func (s samples) Unavailable() []metrics.UnavailableSample {
	var out []metrics.UnavailableSample
	s.secondaries(func(l *Location, a *catalog.Account) {
		if !l.Whole() && !l.Receives() {
			return
		}
		for _, svc := range geo.Services {
			if r := l.ReplicationNow(a, svc); r.Reason != "" {
				out = append(out, metrics.UnavailableSample{Location: l.o.Name, Account: a.Name, Service: svc, Reason: string(r.Reason)})
			}
		}
	})
	return out
}
