package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/test/faults/rig"
	"antipode/test/load"
)

const (
	// resolveWait bounds all reads after the faults, at both locations.
	resolveWait = 4 * time.Minute
	// lateWait is longer than anything that was under way when the last fault ended takes
	// to be done or dropped: what has no answer by then is resolved by a read.
	lateWait = 5 * time.Second
)

// Nodes of both locations killed, paused, cut off, deaf, mute and slow, the link between the
// locations cut and slow, the gateway killed, at random and several at a time under
// clients of inserts, merges, deletes, transactions, blobs, blocks, appends, snapshots and copies: an oracle outside
// the processes finds every acknowledged value at the primary and then at -secondary, each record of an append blob
// where its answer placed it, each snapshot as its blob was, and each copy whole, as its source was; at no
// moment does an answer contradict one before it, or the statistics' Last Sync Time claim
// what cannot be read there; and no process ends by itself.
//
// Capability: Blobs: Under faults of processes.
// Capability: The primary location: Two of three nodes killed.
// Capability: Proofs: Faults against processes.
func TestFaults(t *testing.T) {
	r := rig.StartTest(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), *duration+resolveWait)
	defer cancel()
	l := load.New(r.Client(rig.Gateway, false), r.Client(rig.Gateway, true), load.Options{
		Clients: 16, EntitiesEach: 12, BigClients: 2, BigWritesMax: 4 + int(*duration/(5*time.Second)), Logs: 2, Taken: 2, Long: 2, Seed: *seed,
	})
	require.NoError(t, r.Finalize(ctx))
	require.NoError(t, l.Setup(ctx))
	sampler := load.NewSampler(l, l.Secondary)
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	watched := make(chan error, 1)
	go func() { watched <- sampler.Run(watching) }()

	players := []*player{
		newPlayer(r, random(1), within(rig.North)), newPlayer(r, random(2), within(rig.South)), newPlayer(r, random(3), between()),
	}
	running, halt := context.WithTimeout(ctx, *duration)
	defer halt()
	g, running := errgroup.WithContext(running)
	for _, p := range players {
		g.Go(func() error { return p.run(running) })
	}
	g.Go(func() error { return l.Run(running) })
	require.NoError(t, g.Wait())
	logPlayed(t, players...)
	acked, _ := l.Oracle.Acks()
	t.Logf("%d writes acknowledged over %v of faults: %v", acked, *duration, l.Done())

	healed := time.Now()
	ready(ctx, t, r)
	t.Logf("healthy %v after the last fault", time.Since(healed).Round(time.Millisecond))
	rig.Pause(ctx, lateWait-time.Since(healed))
	require.NoError(t, l.Resolve(ctx), "at the primary")
	require.NoError(t, l.Final(ctx), "at -secondary")
	unwatch()
	require.NoError(t, <-watched)
	samples, reads := sampler.Counts()
	require.Positive(t, samples, "the sampler read no Last Sync Time")
	require.Positive(t, reads, "no Last Sync Time demanded anything")
	kinds := []load.Kind{load.Appends, load.LogReads, load.SnapshotsTaken, load.SnapshotsRead, load.Copies, load.CopiesRead}
	if *rounds > 0 {
		kinds = append(kinds, load.CopiesInSteps) // In a short run there may be no long list to copy.
	}
	for _, kind := range kinds {
		require.Positive(t, l.Done()[kind], "no %s", kind)
	}
	t.Logf("%d keys as they were acknowledged, at both locations; %d values of Last Sync Time demanded %d reads",
		len(l.Oracle.Keys()), samples, reads)
}
