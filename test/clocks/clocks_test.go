package clocks

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/server/dev"
	"antipode/test/rest"
)

const (
	table = "clocks"
	// keys is how many entities are written, one writer each.
	keys = 4
	// writePause and samplePause lie between two writes of a key, and between two samples.
	writePause, samplePause = 20 * time.Millisecond, 10 * time.Millisecond
	// stepLength is how long a clock stays wrong, and how long it is right again.
	stepLength = 2 * time.Second
	// slack is by how much clocks of a stamp may differ (R6).
	slack = geo.ClockOffMax
)

// acks are what writers have seen acknowledged, by the machine's clock.
type acks struct {
	mu sync.Mutex
	// at holds, for each key, when each value was acknowledged, the values from 1 on; zero for one whose
	// outcome is unknown.
	at [keys][]time.Time
}

// floor returns the newest value of a key that was acknowledged at or before t, 0 for none.
func (a *acks) floor(key int, t time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.at[key]); i > 0; i-- {
		if at := a.at[key][i-1]; !at.IsZero() && !at.After(t) {
			return i
		}
	}
	return 0
}

// R6, R13: the clock of the node that leads the range of tables, first at the primary, then at the secondary,
// is set ten minutes ahead and ten minutes back under load. A sampler with the machine's clock checks, some 100
// times a second, that what clients saw acknowledged 1 s before Last Sync Time can be read at the secondary, and
// that Last Sync Time is no more than 1 s ahead of now. Afterwards writes go on and Last Sync Time passes them.
func TestR6SteppedClocks(t *testing.T) {
	d := start(t)
	require.NoError(t, d.primary.CreateTable(t.Context(), table))
	ctx, stop := context.WithCancel(t.Context())
	var written acks
	var wg sync.WaitGroup
	for key := range keys {
		wg.Go(func() { d.write(ctx, key, &written) })
	}
	s := &sampler{d: d, written: &written}
	wg.Go(func() { s.run(ctx) })
	t.Cleanup(func() { stop(); wg.Wait() })
	s.passes()
	for _, l := range []geo.Location{dev.North, dev.South} {
		for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			wrong := d.leader(l)
			d.clocks[wrong].Shift(off)
			require.NoError(t, clock.Wait(ctx, stepLength))
			d.clocks[wrong].Shift(0)
			require.NoError(t, clock.Wait(ctx, stepLength))
		}
	}
	s.passes()
	stop()
	wg.Wait()
	fmt.Printf("%d samples, %d reads at the secondary\n", s.samples, s.reads)
	require.Empty(t, s.broken)
	require.Greater(t, s.reads, 4*keys)
}

// write sets a key to 1, 2, 3 and so on until ctx ends. A value that was not acknowledged is not repeated.
func (d *deployment) write(ctx context.Context, key int, written *acks) {
	for i := 1; ctx.Err() == nil; i++ {
		a, err := d.primary.Replace(ctx, table, "", rest.Entity{"PartitionKey": strconv.Itoa(key), "RowKey": "r", "v": i})
		at := time.Now()
		if err != nil || !a.OK() {
			at = time.Time{}
		}
		written.mu.Lock()
		written.at[key] = append(written.at[key], at)
		written.mu.Unlock()
		_ = clock.Wait(ctx, writePause)
	}
}

// sampler checks Last Sync Time until its context ends.
type sampler struct {
	d       *deployment
	written *acks

	mu     sync.Mutex
	last   time.Time // Last Sync Time
	broken []string
	// samples counts the times that were read, reads the reads they demanded.
	samples, reads int
}

func (s *sampler) run(ctx context.Context) {
	var checked [keys]int
	for ctx.Err() == nil {
		stats, err := s.d.secondary.Stats(ctx, geo.Table)
		now := time.Now()
		if err == nil && stats.Known {
			s.sample(stats.LastSyncTime, now)
			for key := range keys {
				floor := s.written.floor(key, stats.LastSyncTime.Add(-slack))
				if floor > checked[key] && s.demand(ctx, key, floor, stats.LastSyncTime) {
					checked[key] = floor
				}
			}
		}
		_ = clock.Wait(ctx, samplePause)
	}
}

func (s *sampler) sample(t, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples++
	if t.After(now.Add(slack)) {
		s.broken = append(s.broken, fmt.Sprintf("Last Sync Time %s at %s", t, now))
	}
	if t.Before(s.last) {
		s.broken = append(s.broken, fmt.Sprintf("Last Sync Time %s after %s", t, s.last))
	}
	s.last = t
}

// demand reads a key at the secondary, and reports whether that answered.
func (s *sampler) demand(ctx context.Context, key, floor int, t time.Time) bool {
	e, a, err := s.d.secondary.GetEntity(ctx, table, strconv.Itoa(key), "r")
	if err != nil || a.Status != 200 && a.Status != 404 {
		return false
	}
	v, _ := e["v"].(float64)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if int(v) < floor {
		s.broken = append(s.broken, fmt.Sprintf("Last Sync Time %s, key %d is %d, %d was acknowledged by then", t, key, int(v), floor))
	}
	return true
}

// passes waits until Last Sync Time has passed what is acknowledged after the call.
func (s *sampler) passes() {
	s.d.t.Helper()
	at := time.Now()
	s.d.eventually("Last Sync Time passes a write", startWait, func(context.Context) bool {
		newest := true
		for key := range keys {
			newest = newest && s.written.floor(key, time.Now()) > s.written.floor(key, at)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return newest && s.last.After(at.Add(slack))
	})
}
