package location

import (
	"context"
	"slices"
	"sync"
	"time"

	"antipode/geo"
	"antipode/metrics"
	"antipode/services/catalog"
	"antipode/stats"
)

// scrapeWait bounds how long a scrape waits for the catalog.
const scrapeWait = 2 * time.Second

// Accounts implements metrics.Source.
func (s samples) Accounts() (out metrics.AccountSamples) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	lists := make([][]*catalog.Account, len(s.set))
	var asked sync.WaitGroup
	for i, l := range s.set {
		asked.Go(func() { lists[i], _ = l.Records(ctx) }) // Unknown series are absent, never guessed.
	}
	asked.Wait()
	s.set.Look(ctx)
	for i, l := range s.set {
		if lists[i] == nil { // Its catalog does not answer: what it is the secondary of, the other one knows.
			for _, a := range slices.Concat(lists...) {
				if a.Secondary == l.o.Name {
					l.sampleSecondary(a, &out)
					l.samplePromotion(a, &out)
				}
			}
		}
		for _, a := range lists[i] {
			switch {
			case a.Secondary == l.o.Name:
				l.sampleSecondary(a, &out)
				l.samplePromotion(a, &out)
			case a.Primary == l.o.Name && l.Leader(l.o.Route.Catalog()) != nil:
				l.samplePrimary(a, &out)
			}
		}
	}
	return out
}

// sampleSecondary adds what is known here of an account whose secondary this location is.
func (l *Location) sampleSecondary(a *catalog.Account, out *metrics.AccountSamples) {
	for _, d := range l.o.Route.Ranges() {
		r := l.Leader(d.ID)
		if r == nil {
			continue
		}
		for _, src := range l.sourcesOf(d, a.Primary) {
			if t, ok := stats.SyncTimesOf(r.Machine.Progress(src, a.Name), a.Name); ok {
				out.SyncTimes = append(out.SyncTimes, metrics.SyncSample{Location: l.o.Name, Account: a.Name, Service: d.Service, Time: t.Least})
			}
		}
	}
	// A process that neither runs the whole location nor receives leaves what is unavailable to the one that does.
	lacks := l.Whole() || l.Receives()
	for _, svc := range geo.Services {
		r := l.ReplicationNow(a, svc)
		if r.Known() {
			out.LastSyncTimes = append(out.LastSyncTimes, metrics.SyncSample{Location: l.o.Name, Account: a.Name, Service: svc, Time: r.LastSync})
		}
		if lacks && r.Reason != "" {
			out.Unavailable = append(out.Unavailable,
				metrics.UnavailableSample{Location: l.o.Name, Account: a.Name, Service: svc, Reason: string(r.Reason)})
		}
	}
}

// samplePrimary adds what the leader of the catalog here knows of an account whose primary this location is.
func (l *Location) samplePrimary(a *catalog.Account, out *metrics.AccountSamples) {
	sample := metrics.AccountSample{Location: l.o.Name, Redundancy: string(a.Redundancy), LastFailover: a.FailedOver()}
	out.Accounts = append(out.Accounts, sample)
	if op := a.Operation; op != nil {
		out.Operations = append(out.Operations, metrics.OperationSample{Location: l.o.Name, Kind: string(op.Kind), Phase: string(op.Move.Phase)})
	}
	c := l.Copied(a)
	if c == nil {
		return
	}
	one := metrics.CopySample{
		Location: l.o.Name, Account: a.Name, Rows: c.Rows, Bytes: c.Bytes + c.PayloadBytes, Waiting: c.WaitingBytes,
		BytesPerSecond: c.BytesPerSecond, SecondsLeft: c.SecondsLeft,
	}
	if c.Total != nil {
		all := c.Total.Bytes + c.Total.PayloadBytes
		one.TotalRows, one.TotalBytes = &c.Total.Rows, &all
	}
	out.Copies = append(out.Copies, one)
}

// samplePromotion adds the promotion of an account to this location, its secondary, as the leader of the catalog here
// knows it.
func (l *Location) samplePromotion(a *catalog.Account, out *metrics.AccountSamples) {
	lead := l.Leader(l.o.Route.Catalog())
	if lead == nil {
		return
	}
	if p, err := catalog.GetPromotion(lead.State(), a.Name); err == nil && p != nil {
		out.Operations = append(out.Operations, metrics.OperationSample{Location: l.o.Name, Kind: operationPromotion, Phase: string(p.Phase)})
	}
}

// operationPromotion is the kind of a promotion in metrics: it is no operation of the account's record.
const operationPromotion = "promotion"
