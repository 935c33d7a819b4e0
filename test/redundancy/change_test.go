package redundancy

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/faults/rig"
	"antipode/test/load"
)

// beside is how long clients write before and after a change.
const beside = 300 * time.Millisecond

// Every change of a redundancy, under load: no write fails, all that was acknowledged is at the primary, and both copies
// agree. RA-GRS shows it at -secondary, with a Last Sync Time that is true at each sample; GRS and LRS refuse reads
// there; and after a change to LRS no node of the secondary stores a row of the account (R10, R13, R17, R19).
//
// Capability: Blobs: Under faults of processes.
// Capability: Two locations: Redundancy changes and a bootstrap with processes.
// Capability: Failover: Kill -9 of all three primary nodes under load, and a promotion, with processes (R20).
// Capability: Failover: The bound of the loss that a promotion states (R20).
// Capability: Failover: A former primary with older disks (R22).
// Capability: Failover: From A to B and back, five times under load, with processes (R19).
// Capability: Failover: SIGSTOP of the old primary across a promotion, with processes (R21).
func TestR19EveryChangeUnderLoad(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := create(ctx, t, r, "changes", load.Options{Clients: 8, EntitiesEach: 12, BigClients: 1, BigWritesMax: 2, Seed: 1, Pause: 60 * time.Millisecond})
	for _, to := range []catalog.Redundancy{
		catalog.GRS, catalog.LRS, catalog.RAGRS, catalog.GRS, catalog.LRS, catalog.GRS, catalog.RAGRS,
	} {
		a.change(ctx, to)
	}
	acked, _ := a.Oracle.Acks()
	t.Logf("%d writes acknowledged: %v", acked, a.Done())
}

// change changes the redundancy while clients write, and then looks at what it came to.
func (a *account) change(ctx context.Context, to catalog.Redundancy) {
	a.t.Helper()
	sampled := a.sampling(ctx)
	defer sampled.end()
	end := a.writing(ctx)
	defer end()
	rig.Pause(ctx, beside)
	asked := time.Now()
	_, err := a.r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{Redundancy: string(to)})
	require.NoError(a.t, err)
	a.comesTo(ctx, to)
	took := time.Since(asked)
	rig.Pause(ctx, beside)
	end()
	require.Empty(a.t, a.failed)
	require.NoError(a.t, a.Resolve(ctx), "at the primary")
	if to == catalog.RAGRS {
		a.live(ctx)
		require.NoError(a.t, a.Final(ctx), "at -secondary")
		a.eventually(ctx, "a Last Sync Time demands a value", func(context.Context) bool { _, reads := sampled.Counts(); return reads > 0 })
	} else {
		a.refused(ctx)
	}
	sampled.end()
	if to.Geo() {
		a.agrees(ctx)
	} else {
		a.requireNothingLeft(ctx)
	}
	a.t.Logf("%s: holds at both locations after %v", to, took.Round(time.Millisecond))
}

// sampling is a sampler of Last Sync Time that runs.
type sampling struct {
	*load.Sampler
	end func()
}

// sampling begins to sample Last Sync Time at -secondary, until its end, which requires that each was true.
func (a *account) sampling(ctx context.Context) sampling {
	s := load.NewSampler(a.Load, a.Secondary)
	ctx, halt := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return sampling{s, sync.OnceFunc(func() {
		halt()
		require.NoError(a.t, <-done)
	})}
}

// requireNothingLeft ends the nodes of the secondary in order, so that they store all they hold, and looks for rows of
// the account in each: there are the closed gates of its ranges and its record alone. Payload goes later, by the
// collector.
func (a *account) requireNothingLeft(ctx context.Context) {
	a.t.Helper()
	for _, name := range rig.NodesOf(rig.South) {
		require.NoError(a.t, a.r.Stop(ctx, name))
		found := map[string]int{}
		for _, row := range a.rowsOf(ctx, name) {
			if row.Kind != "account" || row.Key != "catalog "+string(a.name)+"/account" {
				require.Equal(a.t, "gate", row.Kind, "%s: %+v", name, row)
			}
			found[row.Kind]++
		}
		require.Equal(a.t, len(geo.Services)+1, found["gate"], "%s", name)
		require.NotZero(a.t, found["account"], "%s", name)
		require.NoError(a.t, a.r.Launch(name))
	}
	ready, cancel := context.WithTimeout(ctx, *calmWait)
	defer cancel()
	require.NoError(a.t, a.r.Ready(ready))
}
