package dev

import (
	"context"
	"time"

	"antipode/geo"
	"antipode/metrics"
	"antipode/services/catalog"
	"antipode/stamp/ranges"
)

// samples implements metrics.Source: everything is read at the scrape.
type samples struct{ c *Cluster }

// Ranges implements metrics.Source.
func (s samples) Ranges() []metrics.RangeSample {
	var out []metrics.RangeSample
	for _, name := range order() {
		for _, svc := range allServices() {
			r := s.c.locations[name].Leader(geo.FirstRange(svc))
			if r == nil {
				continue
			}
			b, err := r.Machine.Backlog()
			if err != nil {
				s.c.o.Logger.Error("cannot read the backlog", "location", name, "service", svc, "error", err)
				continue
			}
			out = append(out, metrics.RangeSample{
				Location: name, Service: svc, InSyncReplicas: r.InSync(),
				BacklogRecords: b.Records, BacklogBytes: b.Bytes, BacklogAge: s.c.age(b),
			})
		}
	}
	return out
}

// scrapeWait bounds how long a scrape waits for the catalog.
const scrapeWait = 2 * time.Second

func (s samples) accounts() []*catalog.Account {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	list, err := control(s).known(ctx)
	if err != nil {
		return nil // Unknown series are absent, never guessed.
	}
	return list
}

// SyncTimes implements metrics.Source.
func (s samples) SyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	for _, a := range s.accounts() {
		for _, svc := range allServices() {
			r := s.c.locations[a.Secondary].Leader(geo.FirstRange(svc))
			if r == nil {
				continue
			}
			if t, ok := r.Machine.SyncTimes(ranges.Source{Origin: a.Primary, Range: geo.FirstRange(svc)}, a.Name); ok {
				out = append(out, metrics.SyncSample{Location: a.Secondary, Account: a.Name, Service: svc, Time: t.Least})
			}
		}
	}
	return out
}

// LastSyncTimes implements metrics.Source.
func (s samples) LastSyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	for _, a := range s.accounts() {
		for _, svc := range geo.Services {
			if rep := s.c.locations[a.Secondary].replication(a, svc); rep.Known() {
				out = append(out, metrics.SyncSample{Location: a.Secondary, Account: a.Name, Service: svc, Time: rep.LastSync})
			}
		}
	}
	return out
}
