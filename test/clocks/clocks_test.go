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
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

const (
	table = "clocks"
	// keys is how many entities are written, one writer each.
	keys = 4
	// writePause and samplePause lie between two writes of a key, and between two samples of a sampler.
	writePause, samplePause = 20 * time.Millisecond, 10 * time.Millisecond
	// slack is by how much clocks of a stamp may differ (R6).
	slack = geo.ClockOffMax
	// calmWait bounds what is waited for: a slow machine is no broken promise.
	calmWait = 2 * time.Minute
)

// R6, R13: the clock of the node that leads the range of tables, first at the primary, then at the secondary,
// is set ten minutes ahead and ten minutes back under load, until another node leads. Samplers with the machine's clock
// check, together some 100 times a second and at each node of the secondary, that what clients saw acknowledged 1 s before
// Last Sync Time can be read there, and that Last Sync Time is no more than 1 s ahead of now. Afterwards writes go on and
// Last Sync Time passes them.
//
// Capability: Two locations: One node's clock stepped by ten minutes, either way, at the primary and at the
// secondary, under load, with processes.
func TestR6SteppedClocks(t *testing.T) {
	r := rig.StartTest(t, nil)
	primary := r.Client(rig.Gateway, false)
	require.NoError(t, primary.CreateTable(t.Context(), table))
	ctx, stop := context.WithCancel(t.Context())
	var written acks
	var wg sync.WaitGroup
	for key := range keys {
		wg.Go(func() { write(ctx, primary, key, &written) })
	}
	all := make([]*sampler, *samplers)
	for i := range all {
		node := rig.NodesOf(rig.South)[i%rig.Nodes]
		all[i] = &sampler{secondary: r.Client(node, true), written: &written, node: node, turn: i}
		wg.Go(func() { all[i].run(ctx) })
	}
	t.Cleanup(func() { stop(); wg.Wait() })
	passes(t, all)
	before, began := sum(all), time.Now()
	for _, l := range []geo.Location{rig.North, rig.South} {
		for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			stepped(ctx, t, r, l, geo.Table, ahead)
		}
	}
	after, took := sum(all), time.Since(began)
	passes(t, all)
	stop()
	wg.Wait()
	for _, s := range all {
		require.Empty(t, s.broken, "at %s", s.node)
	}
	rate := float64(after.reads-before.reads) / took.Seconds()
	t.Logf("SUMMARY four steps of a clock by 10 minutes in %.1f s: %.0f samples/s with a read at the secondary (at least %.0f); of %d samples "+
		"%d had a time and %d a read; none wrong", took.Seconds(), rate, *rateMin, after.samples-before.samples, after.known-before.known, after.reads-before.reads)
	require.Greater(t, after.reads-before.reads, 4*keys)
	require.GreaterOrEqual(t, rate, *rateMin)
}

// stepped sets the clock of a leader wrong, until another node leads and for -step at the least, and then right again.
func stepped(ctx context.Context, t *testing.T, r *rig.Rig, l geo.Location, of geo.Service, ahead time.Duration) {
	t.Helper()
	wait, cancel := context.WithTimeout(ctx, calmWait)
	defer cancel()
	wrong, err := r.Leader(wait, l, of)
	require.NoError(t, err)
	require.NoError(t, r.SetClock(wrong, ahead))
	began := time.Now()
	_, err = r.Leader(wait, l, of, rig.Others([]string{wrong}, rig.NodesOf(l))...)
	require.NoError(t, err, "%s leads with a clock that is %v ahead", wrong, ahead)
	t.Logf("%s: a clock that is %v ahead; another node leads after %.1f s", wrong, ahead, time.Since(began).Seconds())
	rig.Pause(ctx, *step-time.Since(began))
	require.NoError(t, r.SetClock(wrong, 0))
	rig.Pause(ctx, *step)
}

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

// write sets a key to 1, 2, 3 and so on until ctx ends. A value that was not acknowledged is not repeated.
func write(ctx context.Context, primary *rest.Client, key int, written *acks) {
	for i := 1; ctx.Err() == nil; i++ {
		a, err := primary.Replace(ctx, table, "", rest.Entity{"PartitionKey": strconv.Itoa(key), "RowKey": "r", "v": i})
		at := time.Now()
		if err != nil || !a.OK() {
			at = time.Time{}
		}
		written.mu.Lock()
		written.at[key] = append(written.at[key], at)
		written.mu.Unlock()
		rig.Pause(ctx, writePause)
	}
}

// counts are what a sampler has done: samples are the statistics that were answered, known those of them with a Last Sync
// Time, and reads those whose value was read then.
type counts struct{ samples, known, reads int }

// sampler checks Last Sync Time at one node of the secondary until its context ends.
type sampler struct {
	secondary *rest.Client
	written   *acks
	node      string
	// turn is the key that the next sample reads.
	turn int

	mu     sync.Mutex
	last   time.Time // Last Sync Time
	broken []string
	counts
}

func (s *sampler) run(ctx context.Context) {
	for ctx.Err() == nil {
		stats, err := s.secondary.Stats(ctx, geo.Table)
		if err == nil {
			s.sample(stats, time.Now())
		}
		if err == nil && stats.Known {
			s.readNewest(ctx, stats.LastSyncTime)
		}
		rig.Pause(ctx, samplePause)
	}
}

func (s *sampler) sample(stats rest.Stats, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples++
	if !stats.Known {
		return
	}
	s.known++
	t := stats.LastSyncTime
	if t.After(now.Add(slack)) {
		s.broken = append(s.broken, fmt.Sprintf("Last Sync Time %s at %s", t, now))
	}
	if t.Before(s.last) {
		s.broken = append(s.broken, fmt.Sprintf("Last Sync Time %s after %s", t, s.last))
	}
	s.last = t
}

// readNewest reads the next key at the secondary, and requires the newest value that a Last Sync Time demands of it.
func (s *sampler) readNewest(ctx context.Context, t time.Time) {
	key := s.turn % keys
	s.turn++
	floor := s.written.floor(key, t.Add(-slack))
	if floor == 0 {
		return
	}
	e, a, err := s.secondary.GetEntity(ctx, table, strconv.Itoa(key), "r")
	if err != nil || a.Status != 200 && a.Status != 404 {
		return
	}
	v, _ := e["v"].(float64)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if int(v) < floor {
		s.broken = append(s.broken, fmt.Sprintf("Last Sync Time %s, key %d is %d, %d was acknowledged by then", t, key, int(v), floor))
	}
}

func sum(all []*sampler) (out counts) {
	for _, s := range all {
		s.mu.Lock()
		out.samples, out.known, out.reads = out.samples+s.samples, out.known+s.known, out.reads+s.reads
		s.mu.Unlock()
	}
	return out
}

// passes waits until each sampler has seen a Last Sync Time that passes what is acknowledged after the call.
func passes(t *testing.T, all []*sampler) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), calmWait)
	defer cancel()
	for _, s := range all {
		newest := func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			ok := s.last.After(began.Add(slack))
			for key := range keys {
				ok = ok && s.written.floor(key, time.Now()) > s.written.floor(key, began)
			}
			return ok
		}
		for !newest() {
			require.NoError(t, ctx.Err(), "Last Sync Time at %s passes a write", s.node)
			rig.Pause(ctx, samplePause)
		}
	}
}
