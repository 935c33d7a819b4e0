package faults

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/linear"
	"antipode/test/rest"
)

// leads draws a range with objects and returns the node that leads it, if one is found soon.
func leads(r *rig.Rig, rng *rand.Rand) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	name, err := r.Leader(ctx, rig.North, []geo.Service{geo.Table, geo.Blob}[rng.IntN(2)])
	return name, err == nil
}

// onLeader is a fault that finds its node when it is played.
func onLeader(name string, do func(r *rig.Rig, leader string) (func() error, error)) fault {
	return fault{name, func(r *rig.Rig, rng *rand.Rand) (func() error, error) {
		leader, ok := leads(r, rng)
		if !ok {
			return func() error { return nil }, nil
		}
		return do(r, leader)
	}}
}

// Entities, blobs and leases of blobs are linearizable at the primary while the node that leads their range
// is killed, paused, cut off, deaf or mute, requests under way at every node and at the
// gateway: reads and failed conditions included (R1, R5). What has no answer is kept
// open. No two clients hold a lease at a time, and nobody else writes meanwhile.
//
// Capability: Blobs: Under faults of processes.
// Capability: The primary location: Linearizable.
func TestLinearizable(t *testing.T) {
	// answersMin and leasesMin are waited for when the faults are over, if there were fewer.
	const clients, answersMin, holders, leasesMin = 8, 400, 4, 150
	r := rig.StartTest(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), *duration+readyWait)
	defer cancel()
	gateway := r.Client(rig.Gateway, false)
	require.NoError(t, linear.Setup(ctx, gateway))
	require.NoError(t, r.Finalize(ctx))
	endpoints := []*rest.Client{gateway}
	for _, name := range rig.NodesOf(rig.North) {
		endpoints = append(endpoints, r.Client(name, false))
	}
	from := func(leader string) []string { return rig.Others([]string{leader}, rig.NodesOf(rig.North)) }
	apart := func(what string, f proxy.Fault) fault {
		return onLeader(what, func(r *rig.Rig, leader string) (func() error, error) {
			return cut(r, f, []string{leader}, from(leader))
		})
	}
	p := newPlayer(r, random(1), []fault{
		onLeader("kill -9 of a leader", func(r *rig.Rig, leader string) (func() error, error) { return killed(r, leader) }),
		onLeader("SIGSTOP of a leader", func(r *rig.Rig, leader string) (func() error, error) {
			return func() error { return r.Resume(leader) }, r.Pause(leader)
		}),
		apart("silent links of a leader", proxy.Fault{HoldForth: true, HoldBack: true}),
		apart("a leader whose messages are held", proxy.Fault{HoldForth: true}),
		apart("a leader that receives nothing", proxy.Fault{HoldBack: true}),
	})
	// Long enough for another leader to be elected, and to take writes.
	p.shortest, p.longest = 2*time.Second, 5*time.Second
	running, halt := context.WithTimeout(ctx, *duration)
	defer halt()
	h, leases := linear.New(clock.System{}), linear.NewOfLeases(clock.System{})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.run(running) })
	until := func(h *linear.History, atLeast int) func(int) bool {
		return func(int) bool {
			ops, unknown, _ := h.Counts()
			return ctx.Err() == nil && (running.Err() == nil || ops-unknown < atLeast)
		}
	}
	for id := range clients {
		rng := random(uint64(10 + id))
		g.Go(func() error { return h.Client(ctx, id, rng, endpoints, until(h, answersMin)) })
	}
	for id := range holders {
		rng := random(uint64(50 + id))
		g.Go(func() error { return leases.Holder(ctx, id, rng, endpoints, until(leases, leasesMin)) })
	}
	require.NoError(t, g.Wait())
	logPlayed(t, p)
	ops, unknown, refused := h.Counts()
	t.Logf("%d operations, %d of them without an answer; %d others refused", ops, unknown, refused)
	require.GreaterOrEqual(t, ops-unknown, answersMin, "operations with an answer")
	ops, unknown, refused = leases.Counts()
	t.Logf("leases: %d operations, %d of them without an answer; %d others refused; %v", ops, unknown, refused, leases.Leases())
	require.GreaterOrEqual(t, ops-unknown, leasesMin, "operations with an answer")
	require.NoError(t, h.Check(filepath.Join(t.TempDir(), "history.html")))
	require.NoError(t, leases.Check(filepath.Join(t.TempDir(), "leases.html")))
}
