package slowlink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

// lagEvery is how often the lag is measured, memoryEvery how often memory.
const (
	lagEvery    = 200 * time.Millisecond
	memoryEvery = time.Second
)

// lags are, by service, those of the account as the secondary shows them, to the microsecond.
type lags struct {
	of map[string][]time.Duration
	// excess is how much older than the oldest commit that the secondary has not acknowledged they are.
	excess []time.Duration
	// unknown counts samples without a Last Sync Time.
	unknown int
}

// watchLag measures the lag until ctx ends.
func watchLag(ctx context.Context, r *rig.Rig) lags {
	out := lags{of: map[string][]time.Duration{}}
	for ctx.Err() == nil {
		out.sample(ctx, r)
		rig.Pause(ctx, lagEvery)
	}
	slices.Sort(out.excess)
	for _, v := range out.of {
		slices.Sort(v)
	}
	return out
}

// lagNow measures the lag once, however long that takes on a slow machine.
func lagNow(ctx context.Context, r *rig.Rig) lags {
	l := lags{of: map[string][]time.Duration{}}
	l.sample(ctx, r)
	return l
}

// sample measures the lag once, if the secondary answers.
func (l *lags) sample(ctx context.Context, r *rig.Rig) {
	oldest := oldestCommit(ctx, r)
	now, err := r.Admin(rig.NodesOf(rig.South)[0]).Lag(ctx, rest.DevAccount, wire.LagQuery{})
	if err != nil {
		return
	}
	for _, s := range now.Services {
		if s.Service == geo.Queue.String() {
			continue
		}
		if s.LagSeconds == nil {
			l.unknown++
			continue
		}
		lag := time.Duration(*s.LagSeconds * float64(time.Second))
		l.of[s.Service] = append(l.of[s.Service], lag)
		l.excess = append(l.excess, lag-oldest)
	}
}

// oldestCommit is the age of the oldest commit that the secondary has not acknowledged.
func oldestCommit(ctx context.Context, r *rig.Rig) (oldest time.Duration) {
	views, err := r.Views(ctx, rig.North)
	if err != nil {
		return 0
	}
	for _, v := range views {
		if v.LeaderView != nil {
			oldest = max(oldest, time.Duration(v.BacklogAgeSeconds*float64(time.Second)))
		}
	}
	return oldest
}

func (l lags) String() string {
	text := fmt.Sprintf("%d unknown", l.unknown)
	for _, s := range slices.Sorted(maps.Keys(l.of)) {
		v := l.of[s]
		text += fmt.Sprintf(", %s p50 %v p99 %v most %v of %d", s, quantile(v, .5), quantile(v, .99), quantile(v, 1), len(v))
	}
	return text + fmt.Sprintf(", above the oldest commit p99 %v most %v", quantile(l.excess, .99), quantile(l.excess, 1))
}

// memory is what each process has in use beside its block cache, which may fill up to its bound at any time: at first,
// and the most since.
type memory struct {
	first, most map[string]int64
}

// cacheMetric is what a node has in its block cache.
const cacheMetric = "antipode_state_cache_bytes"

// watchMemory measures until ctx ends.
func watchMemory(ctx context.Context, r *rig.Rig) memory {
	m := memory{map[string]int64{}, map[string]int64{}}
	for ctx.Err() == nil {
		for _, name := range rig.All() {
			n, err := r.Resident(name)
			if err == nil && name != rig.Gateway {
				var cached float64
				cached, err = r.Metric(ctx, name, cacheMetric)
				n -= int64(cached)
			}
			if err != nil {
				continue
			}
			if m.first[name] == 0 {
				m.first[name] = n
			}
			m.most[name] = max(m.most[name], n)
		}
		rig.Pause(ctx, memoryEvery)
	}
	return m
}

// grown is the growth of the process that grew most, in bytes.
func (m memory) grown() (most int64) {
	for name, n := range m.most {
		most = max(most, n-m.first[name])
	}
	return most
}

func (m memory) String() (text string) {
	for _, name := range slices.Sorted(maps.Keys(m.most)) {
		text += fmt.Sprintf("  %s %d MiB + %d", name, m.first[name]>>20, (m.most[name]-m.first[name])>>20)
	}
	return text
}

// watch runs f for the duration of the faults beside a measurement of lag and memory.
func watch(ctx context.Context, t *testing.T, r *rig.Rig, d time.Duration) (lags, memory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var l lags
	var m memory
	var g sync.WaitGroup
	g.Go(func() { l = watchLag(ctx, r) })
	g.Go(func() { m = watchMemory(ctx, r) })
	g.Wait()
	return l, m
}

// waitLag waits until the lag of each service is at most d.
func waitLag(ctx context.Context, t *testing.T, r *rig.Rig, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		l := lagNow(ctx, r)
		if len(l.of) == 2 && l.unknown == 0 && max(quantile(l.of[geo.Table.String()], 1), quantile(l.of[geo.Blob.String()], 1)) <= d {
			return
		}
		require.NoError(t, ctx.Err(), "the lag is still %v", l)
		rig.Pause(ctx, lagEvery)
	}
}
