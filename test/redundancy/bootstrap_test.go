package redundancy

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/faults/rig"
	"antipode/test/load"
)

const (
	filled = "filled" // the container of the blobs
	// fillers write them, and sampledBlobs are read at the end, beside the comparison of all.
	fillers      = 16
	sampledBlobs = 200
)

// killed are the ranges whose leaders are killed, one after the other: what leads the catalog makes the copy.
var killed = []geo.Service{geo.Blob, geo.Catalog, geo.Table}

// The copy of an account is made while clients write, and the processes that lead ranges at either side are killed
// meanwhile. It goes on where it was, in the same epoch, keeps to its rate until that is lifted, and ends live; every
// acknowledged write and every blob of before is at the secondary, and both copies agree (R17).
//
// Capability: Two locations: Redundancy changes and a bootstrap with processes.
// Capability: Failover: A former primary is rewound (R22).
// Capability: Failover: Kill -9 of all three primary nodes under load, and a promotion, with processes (R20).
// Capability: Failover: The bound of the loss that a promotion states (R20).
// Capability: Failover: A former primary with older disks (R22).
// Capability: Failover: From A to B and back, five times under load, with processes (R19).
// Capability: Failover: SIGSTOP of the old primary across a promotion, with processes (R21).
func TestR17BootstrapGoesOnUnderKills(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := create(ctx, t, r, "boots", load.Options{Clients: *writers, EntitiesEach: 12, BigClients: 1, BigWritesMax: -1, Seed: 1, Pause: 60 * time.Millisecond})
	a.fill(ctx)
	end := a.writing(ctx)
	defer end()
	rig.Pause(ctx, beside)

	p := a.progress(ctx)
	defer p.end()
	asked := time.Now()
	begun, err := r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{Redundancy: string(catalog.RAGRS), BytesPerSecond: rate})
	require.NoError(t, err)
	a.bootstraps(ctx)
	for i := range *kills {
		for _, side := range []geo.Location{rig.North, rig.South} {
			if most, total := p.now(); most.Rows > total.Rows/2 {
				a.setRate(ctx, *rate/10) // It must not be complete before the last kill.
			}
			a.kill(ctx, p, side, killed[i%len(killed)])
		}
	}
	most, total := p.now()
	under := time.Since(asked)
	t.Logf("after %v and %d kills: %+v of %+v", under.Round(100*time.Millisecond), 2**kills, most, total)
	require.Less(t, most.Rows, total.Rows, "the copy was complete before the last kill: give a lower -rate")
	require.LessOrEqual(t, float64(most.Bytes+most.PayloadBytes), float64(*rate)*(under.Seconds()+1+float64(2**kills)/10), "its rate, and a step for each new leader")
	a.setRate(ctx, 0)
	lifted := time.Now()
	a.comesTo(ctx, catalog.RAGRS)
	t.Logf("complete %v after the rate was lifted, %v after it was begun", time.Since(lifted).Round(100*time.Millisecond), time.Since(asked).Round(100*time.Millisecond))
	p.end()
	a.live(ctx)
	end()

	now, err := a.shown(ctx)
	require.NoError(t, err)
	require.Equal(t, begun.Epoch, now.Epoch, "it began again")
	require.NoError(t, a.Resolve(ctx), "at the primary")
	require.NoError(t, a.Final(ctx), "at -secondary")
	a.requireFilled(ctx)
	a.agrees(ctx)
	a.logWrites(time.Since(asked))
}

// fill writes the blobs.
func (a *account) fill(ctx context.Context) {
	a.t.Helper()
	began := time.Now()
	require.NoError(a.t, a.Primary.CreateContainer(ctx, filled))
	g, one := errgroup.WithContext(ctx)
	for f := range fillers {
		g.Go(func() error {
			for n := f; n < *objects; n += fillers {
				got, err := a.Primary.PutBlob(one, filled, fmt.Sprint(n), content(n))
				if err != nil || !got.OK() {
					return fmt.Errorf("blob %d: %v, %w", n, got, err)
				}
			}
			return nil
		})
	}
	require.NoError(a.t, g.Wait())
	a.t.Logf("%d blobs of %d bytes are written after %v", *objects, *objectSize, time.Since(began).Round(100*time.Millisecond))
}

// content is what the n-th blob holds: nothing that can be compressed.
func content(n int) []byte {
	out := make([]byte, *objectSize+8)
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for i := 0; i < *objectSize; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], rng.Uint64())
	}
	return out[:*objectSize]
}

// requireFilled reads some of the blobs at the secondary.
func (a *account) requireFilled(ctx context.Context) {
	a.t.Helper()
	for n := 0; n < *objects; n += max(1, *objects/sampledBlobs) {
		a.eventually(ctx, fmt.Sprintf("blob %d at -secondary", n), func(ctx context.Context) bool {
			got, err := a.Secondary.GetBlob(ctx, filled, fmt.Sprint(n))
			if err != nil || !got.OK() {
				return false
			}
			require.Equal(a.t, content(n), got.Body, "blob %d", n)
			return true
		})
	}
}

// bootstraps waits until the statistics name the copy that is being made, without a Last Sync Time.
func (a *account) bootstraps(ctx context.Context) {
	a.t.Helper()
	a.eventually(ctx, "the statistics say bootstrap", func(ctx context.Context) bool {
		got, err := a.Secondary.Stats(ctx, geo.Blob)
		return err == nil && got.Status == string(wire.Bootstrap) && !got.Known
	})
}

// setRate changes the rate of the copy.
func (a *account) setRate(ctx context.Context, bytes uint64) {
	a.t.Helper()
	a.eventually(ctx, "the rate is changed", func(ctx context.Context) bool {
		_, err := a.r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{BytesPerSecond: &bytes})
		return err == nil
	})
}

// kill kills the process that leads a range at a location, starts it again, and waits until the copy goes on and the
// location has all its replicas.
func (a *account) kill(ctx context.Context, p *progress, side geo.Location, s geo.Service) {
	a.t.Helper()
	wait, cancel := context.WithTimeout(ctx, *calmWait)
	defer cancel()
	name, err := a.r.Leader(wait, side, s)
	require.NoError(a.t, err)
	require.NoError(a.t, a.r.Kill(name))
	p.ended(name)
	before, total := p.now()
	at := time.Now()
	require.NoError(a.t, a.r.Launch(name))
	a.eventually(wait, "the copy goes on", func(context.Context) bool { now, _ := p.now(); return now.Rows > before.Rows+total.Rows/(*apart) })
	went := time.Since(at)
	require.NoError(a.t, a.r.Ready(wait))
	now, _ := p.now()
	a.t.Logf("%s (leader of %s) killed at %d rows: 1/%d more after %v; all replicas after %v, at %d rows", name, s, before.Rows, *apart,
		went.Round(10*time.Millisecond), time.Since(at).Round(10*time.Millisecond), now.Rows)
}

// logWrites logs how the writes went.
func (a *account) logWrites(over time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.took)
	at := func(q float64) time.Duration { return a.took[int(q*float64(len(a.took)-1))].Round(time.Millisecond) }
	acked, _ := a.Oracle.Acks()
	a.t.Logf("%d writes in %v, p50 %v p99 %v most %v; %d of them had no answer, or one of the 500s; %d acknowledged: %v", len(a.took),
		over.Round(time.Second), at(.5), at(.99), at(1), len(a.failed), acked, a.Done())
}
