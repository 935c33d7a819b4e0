package dev

import (
	"context"
	"time"

	"antipode/metrics"
	"antipode/services/catalog"
)

// samples implements metrics.Source: everything is read at the scrape.
type samples struct{ c *Cluster }

// Ranges implements metrics.Source.
func (s samples) Ranges() []metrics.RangeSample {
	var out []metrics.RangeSample
	for _, name := range order() {
		out = append(out, s.c.locations[name].RangeSamples()...)
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
		out = append(out, s.c.locations[a.Secondary].SyncSamples(a)...)
	}
	return out
}

// LastSyncTimes implements metrics.Source.
func (s samples) LastSyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	for _, a := range s.accounts() {
		out = append(out, s.c.locations[a.Secondary].LastSyncSamples(a)...)
	}
	return out
}

// Replicas are the voters of the ranges that have a leader.
func (s samples) Replicas() []metrics.ReplicaSample {
	var out []metrics.ReplicaSample
	for _, name := range order() {
		out = append(out, s.c.locations[name].ReplicaSamples()...)
	}
	return out
}
