package node

import (
	"context"
	"time"

	"antipode/metrics"
	"antipode/services/catalog"
)

// samples implements metrics.Source: what this node leads, read at the scrape.
type samples struct{ n *Node }

// Ranges implements metrics.Source.
func (s samples) Ranges() []metrics.RangeSample { return s.n.location.RangeSamples() }

// scrapeWait bounds how long a scrape waits for the catalog.
const scrapeWait = 2 * time.Second

// accounts are those whose secondary is here.
func (s samples) accounts() []*catalog.Account {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWait)
	defer cancel()
	list, err := s.n.location.Directory.Accounts(ctx)
	if err != nil {
		return nil // Unknown series are absent, never guessed.
	}
	var out []*catalog.Account
	for _, a := range list {
		if a.Secondary == s.n.o.Config.Location {
			out = append(out, a)
		}
	}
	return out
}

// SyncTimes implements metrics.Source.
func (s samples) SyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	for _, a := range s.accounts() {
		out = append(out, s.n.location.SyncSamples(a)...)
	}
	return out
}

// LastSyncTimes implements metrics.Source.
func (s samples) LastSyncTimes() []metrics.SyncSample {
	var out []metrics.SyncSample
	for _, a := range s.accounts() {
		out = append(out, s.n.location.LastSyncSamples(a)...)
	}
	return out
}

// Replicas implements location.Source.
func (s samples) Replicas() []metrics.ReplicaSample { return s.n.location.ReplicaSamples() }
