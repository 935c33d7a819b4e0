package redundancy

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/load"
	"antipode/test/rest"
)

// pauses is how many rounds of each kind; `make redundancy` sets it.
var pauses = flag.Int("pauses", 1, "how often the primary is paused across a promotion, with a witness and without")

const (
	// holds is for how long a process goes on without steps before it has to have its epochs confirmed again, with a
	// margin: see confirm.Options.Hold.
	holds = 6 * time.Second
	// afterwards is how long clients write at a former primary that goes on and has not met the new one.
	afterwards = 2 * time.Second
	// lease is that of the witness.
	lease = "3s"
)

// The old primary stands still across a promotion at the other location, SIGSTOP to SIGCONT, with writes between their
// commit and their answer; and it cannot reach the other location when it goes on. With a witness all of its nodes stand
// still, or the leader alone while the others go on, for any time. Without one all of them, and for longer than a process
// holds what confirms its epochs. None of its acknowledgements comes after the commit of the new primary for a write that
// this one lacks (R21).
//
// Capability: Failover: SIGSTOP of the old primary across a promotion, with processes (R21).
func TestR21PauseAcrossPromotion(t *testing.T) {
	t.Run("witness", func(t *testing.T) {
		a := pairedAccount(t, rig.StartWitnessed(t, lease))
		from, to := rig.North, rig.South
		var acked int
		for round := range 2 * *pauses {
			acked += a.pausedAcross(t.Context(), from, to, round, round%2 == 0, 0)
			from, to = to, from
		}
		summary(t, "%d pauses across a promotion with a witness, every second one of the leader alone: 0 stale acknowledgements of %d", 2**pauses, acked)
	})
	t.Run("alone", func(t *testing.T) {
		a := pairedAccount(t, rig.StartTest(t, nil))
		a.rebooted(t.Context(), rig.North, rig.South)
		from, to := rig.North, rig.South
		var acked int
		for round := range *pauses {
			acked += a.pausedAcross(t.Context(), from, to, round, true, holds)
			from, to = to, from
		}
		summary(t, "%d pauses of %v and more across a promotion without a witness: 0 stale acknowledgements of %d", *pauses, holds, acked)
	})
}

// pairedAccount creates an account with a live copy, and what ledgers write.
func pairedAccount(t *testing.T, r *rig.Rig) *account {
	t.Helper()
	ctx := t.Context()
	a := create(ctx, t, r, "paired", load.Options{Clients: 1})
	_, err := r.Admin(rig.Gateway).UpdateAccount(ctx, a.name, wire.UpdateAccount{Redundancy: string(catalog.RAGRS)})
	require.NoError(t, err)
	a.comesTo(ctx, catalog.RAGRS)
	a.Secondary = r.ClientOf(rig.Gateway, a.name, true)
	require.NoError(t, ledger.Setup(ctx, a.Primary))
	return a
}

// pausedAcross plays one round, in which the old primary stands still for least at the least. It returns how many writes
// were acknowledged; a stale one, after the commit of the new primary which lacks it, fails the test.
func (a *account) pausedAcross(ctx context.Context, from, to geo.Location, round int, all bool, least time.Duration) (acked int) {
	a.t.Helper()
	a.live(ctx)
	writes := &ledger.Ledger{Prefix: fmt.Sprintf("p%d", round)}
	stop := a.ledgering(ctx, writes, rig.NodesOf(from)...)
	defer stop()
	a.eventually(ctx, "writes are acknowledged", func(context.Context) bool { return writes.Acked() > 200 })
	paused := rig.NodesOf(from)
	if !all {
		leader, err := a.r.Leader(ctx, from, geo.Table)
		require.NoError(a.t, err)
		paused = []string{leader}
	}
	for _, name := range paused {
		require.NoError(a.t, a.r.Pause(name))
	}
	began := time.Now()
	a.promote(ctx, to)
	promoted, err := a.r.Admin(rig.NodesOf(to)[0]).Account(ctx, a.name)
	require.NoError(a.t, err)
	require.Equal(a.t, to, promoted.Primary)
	require.NoError(a.t, a.r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(from), rig.NodesOf(to)))
	rig.Pause(ctx, least-time.Since(began))
	for _, name := range paused {
		require.NoError(a.t, a.r.Resume(name))
	}
	rig.Pause(ctx, afterwards)
	stop()
	require.NoError(a.t, a.r.Cut(proxy.Fault{}, rig.NodesOf(from), rig.NodesOf(to)))
	a.rejoined(ctx, from, to)
	found, err := writes.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	open := 0
	for _, e := range writes.Entries() {
		if e.Fate == ledger.Unknown && e.Began.Before(began) {
			open++
		}
	}
	for _, e := range found.Lost {
		require.False(a.t, e.Ended.After(promoted.LastFailover.Time), "acknowledged after the commit at %s, and gone: %s", promoted.LastFailover, e)
	}
	a.live(ctx)
	a.agrees(ctx)
	a.t.Logf("round %d (%d paused for %.1f s): %d acknowledged, %d gone; %d of those under way at the pause have no answer that says how they ended",
		round, len(paused), time.Since(began).Seconds(), writes.Acked(), len(found.Lost), open)
	require.NoError(a.t, a.r.Ready(ctx))
	return writes.Acked()
}

// rebooted has a location lose its power while the other one cannot be reached. When it is back it refuses every write of
// an account with a copy, and takes them once the other location answers (R21).
func (a *account) rebooted(ctx context.Context, at, other geo.Location) {
	a.t.Helper()
	a.live(ctx)
	require.NoError(a.t, a.r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(at), rig.NodesOf(other)))
	for _, name := range rig.NodesOf(at) {
		require.NoError(a.t, a.r.Kill(name))
	}
	for _, name := range rig.NodesOf(at) {
		require.NoError(a.t, a.r.Launch(name))
	}
	c := a.r.ClientOf(rig.NodesOf(at)[0], a.name, false)
	a.eventually(ctx, "reads are served", func(ctx context.Context) bool {
		_, got, err := c.GetEntity(ctx, ledger.Name, "none", "none")
		return err == nil && got.Status == http.StatusNotFound
	})
	for i := range 20 {
		got, err := c.Insert(ctx, ledger.Name, rest.Entity{"PartitionKey": "rebooted", "RowKey": fmt.Sprint(i)})
		require.NoError(a.t, err)
		require.Equal(a.t, http.StatusServiceUnavailable, got.Status, "%s", got)
	}
	require.NoError(a.t, a.r.Cut(proxy.Fault{}, rig.NodesOf(at), rig.NodesOf(other)))
	a.eventually(ctx, "writes are taken", func(ctx context.Context) bool {
		got, err := c.Insert(ctx, ledger.Name, rest.Entity{"PartitionKey": "rebooted", "RowKey": "again"})
		return err == nil && (got.OK() || got.Status == http.StatusConflict)
	})
	require.NoError(a.t, a.r.Ready(ctx))
}
