package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/test/oracle"
	"antipode/test/rest"
)

// The ways in which a Last Sync Time is wrong by itself.
var (
	errBackwards = errors.New("last sync time went back")
	errFuture    = errors.New("last sync time is in the future")
)

// Sampler reads the statistics at the secondary again and again, and after each
// reading checks that every acknowledged write at or below the value can be read
// there. It runs beside a Load, through kills and cuts.
type Sampler struct {
	load *Load
	// secondary is where the statistics and the values are read.
	secondary *rest.Client
	// checked holds, per key, the greatest version already demanded and found.
	checked map[string]oracle.Version
	// checkedLogs holds, by name, the length of an append blob already demanded and found.
	checkedLogs map[string]int64
	// checkedSnapshots holds, by key and id, what was demanded of a snapshot and found.
	checkedSnapshots map[snapshotDemand]bool
	// checkedCopies holds, by name, the commit time already demanded of a copy and found.
	checkedCopies map[string]geo.Timestamp
	// last is the newest value seen per service.
	last map[geo.Service]time.Time

	mu sync.Mutex
	// samples counts the values read, and reads the demands made of them.
	samples, reads int
}

// NewSampler returns a sampler of the writes of l at one secondary endpoint.
func NewSampler(l *Load, secondary *rest.Client) *Sampler {
	return &Sampler{
		load: l, secondary: secondary,
		checked: map[string]oracle.Version{}, checkedLogs: map[string]int64{},
		checkedSnapshots: map[snapshotDemand]bool{}, checkedCopies: map[string]geo.Timestamp{}, last: map[geo.Service]time.Time{},
	}
}

// Counts returns how many values were sampled and how many demands they made. A
// test whose sampler demanded nothing has shown nothing.
func (s *Sampler) Counts() (samples, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples, s.reads
}

// Run samples until ctx ends or a promise is found broken, which it returns. A
// server that does not answer breaks none.
func (s *Sampler) Run(ctx context.Context) error {
	for {
		for _, service := range []geo.Service{geo.Table, geo.Blob} {
			if err := s.sample(ctx, service); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollInterval):
		}
	}
}

func (s *Sampler) sample(ctx context.Context, service geo.Service) error {
	stats, err := s.secondary.Stats(ctx, service)
	if err != nil || !stats.Known {
		return nil //nolint:nilerr // a server that is down or bootstrapping promises nothing
	}
	if stats.LastSyncTime.Before(s.last[service]) {
		return fmt.Errorf("%w: %v: %v after %v", errBackwards, service, stats.LastSyncTime, s.last[service])
	}
	if now := s.load.Clock.Now(); stats.LastSyncTime.After(now) {
		return fmt.Errorf("%w: %v: %v at %v", errFuture, service, stats.LastSyncTime, now)
	}
	s.last[service] = stats.LastSyncTime
	due := s.due(service, geo.TimestampOf(stats.LastSyncTime))
	s.counted(1, len(due))
	if err := s.check(ctx, stats.LastSyncTime, due); err != nil || service != geo.Blob {
		return err
	}
	return s.checkMore(ctx, geo.TimestampOf(stats.LastSyncTime))
}

// checkMore reads the append blobs, snapshots and copies that a sync time demands.
func (s *Sampler) checkMore(ctx context.Context, lastSync geo.Timestamp) error {
	logs, snapshots, copies := s.dueLogs(lastSync), s.dueSnapshots(lastSync), s.dueCopies(lastSync)
	s.counted(0, len(logs)+len(snapshots)+len(copies))
	for _, d := range logs {
		if err := s.checkLog(ctx, d); err != nil {
			return fmt.Errorf("last sync time %v: %w", lastSync, err)
		}
	}
	for _, d := range snapshots {
		if err := s.checkSnapshot(ctx, d, lastSync); err != nil {
			return fmt.Errorf("last sync time %v: %w", lastSync, err)
		}
	}
	return s.checkCopies(ctx, copies, lastSync)
}

func (s *Sampler) counted(samples, reads int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples += samples
	s.reads += reads
}

// demand is one key and the version it must show at least.
type demand struct {
	key   string
	floor oracle.Version
}

// due returns the demands of a sync time that were not met before.
func (s *Sampler) due(service geo.Service, lastSync geo.Timestamp) []demand {
	var out []demand
	for _, key := range s.load.Oracle.Keys() {
		if serviceOf(key) != service {
			continue
		}
		if floor := s.load.Oracle.Floor(key, lastSync); floor > s.checked[key] {
			out = append(out, demand{key, floor})
		}
	}
	return out
}

// check reads the demanded keys. Those the server does not answer stay due.
func (s *Sampler) check(ctx context.Context, lastSync time.Time, due []demand) error {
	var g errgroup.Group
	g.SetLimit(4)
	var mu sync.Mutex
	for _, d := range due {
		g.Go(func() error {
			r, err := read(ctx, s.secondary, d.key)
			if isNoAnswer(err) {
				return nil
			}
			if err == nil {
				err = s.load.Oracle.AtLeast(d.key, d.floor, r)
			}
			if err != nil {
				return fmt.Errorf("last sync time %v: %w", lastSync.Format(time.RFC3339), err)
			}
			mu.Lock()
			defer mu.Unlock()
			s.checked[d.key] = d.floor
			return nil
		})
	}
	return g.Wait()
}
