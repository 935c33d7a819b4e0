package slowlink

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/test/faults/rig"
	"antipode/test/load"
	"antipode/test/rest"
)

const (
	// fillTable has what only makes traffic: fillRows entities of fillBytes, by fillers that write one
	// each fillEvery.
	fillTable = "fill"
	fillRows  = 64
	fillBytes = 6 << 10
	fillers   = 8
	fillEvery = 100 * time.Millisecond
	// clients are those of the oracle, each of which rests for clientPause after a write.
	clients     = 8
	clientPause = 150 * time.Millisecond
)

// traffic is writers at a steady rate, with an oracle and a sampler of Last Sync Time, until its test
// ends.
type traffic struct {
	*load.Load
	rig     *rig.Rig
	sampler *load.Sampler
	halt    context.CancelFunc
	writing sync.WaitGroup

	mu     sync.Mutex
	writes []time.Duration // since cutWrites
	failed []string
	broken error
}

// begin starts traffic at the gateway.
func begin(t *testing.T, r *rig.Rig) *traffic {
	t.Helper()
	ctx, halt := context.WithCancel(t.Context())
	w := &traffic{rig: r, halt: halt}
	w.Load = load.New(r.Client(rig.Gateway, false), r.Client(rig.NodesOf(rig.South)[0], true), load.Options{
		Clients: clients, EntitiesEach: 12, BigClients: 1, BigWritesMax: -1, Seed: 1, Pause: clientPause, OnWrite: w.wrote,
	})
	require.NoError(t, w.Setup(ctx))
	require.NoError(t, w.Primary.CreateTable(ctx, fillTable))
	w.sampler = load.NewSampler(w.Load, w.Secondary)
	w.writing.Go(func() { w.fail(w.Run(ctx)) })
	for i := range fillers {
		w.writing.Go(func() { w.fill(ctx, i) })
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watched sync.WaitGroup
	watched.Go(func() { w.fail(w.sampler.Run(watching)) })
	t.Cleanup(func() {
		halt()
		w.writing.Wait()
		unwatch()
		watched.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		require.NoError(t, w.broken)
		samples, reads := w.sampler.Counts()
		t.Logf("%d samples of Last Sync Time, %d reads at the secondary", samples, reads)
		require.Positive(t, reads, "no Last Sync Time demanded anything")
	})
	return w
}

func (w *traffic) fail(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.broken = err
	}
}

// fill writes values that cannot be compressed.
func (w *traffic) fill(ctx context.Context, id int) {
	rng := rand.New(rand.NewPCG(uint64(id), 2))
	value := make([]byte, fillBytes*3/4)
	tick := time.NewTicker(fillEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		row := rest.Entity{
			"PartitionKey": fmt.Sprint(id, "-", n%8), "RowKey": fmt.Sprint(n % fillRows), "V": base64.StdEncoding.EncodeToString(value),
		}
		began := time.Now()
		a, err := w.Primary.Replace(ctx, fillTable, "", row)
		if ctx.Err() == nil {
			w.wrote(time.Since(began), a, err)
		}
	}
}

// wrote takes how a write ended.
func (w *traffic) wrote(took time.Duration, a rest.Answer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, took)
	if err != nil || a.Status >= 500 {
		w.failed = append(w.failed, fmt.Sprintf("%v after %v: %v", a, took, err))
	}
}

// cutWrites returns how long each write took since the last call, sorted, and those that failed.
func (w *traffic) cutWrites() (took []time.Duration, failed []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took, failed = w.writes, w.failed
	w.writes, w.failed = nil, nil
	slices.Sort(took)
	return took, failed
}

// stop ends the writers and requires that all that was acknowledged is at the primary, and then at the
// secondary.
func (w *traffic) stop(ctx context.Context, t *testing.T) {
	t.Helper()
	rig.Pause(ctx, time.Second)
	w.halt()
	w.writing.Wait()
	require.NoError(t, w.Resolve(ctx), "at the primary")
	began := time.Now()
	require.NoError(t, w.Final(ctx), "at -secondary")
	t.Logf("all of it is at the secondary %v after the last write", time.Since(began).Round(100*time.Millisecond))
}

// quantile of sorted times, rounded.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Round(time.Millisecond)
}
