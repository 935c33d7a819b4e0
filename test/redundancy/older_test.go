package redundancy

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// How much: `make redundancy` sets it.
var (
	older       = flag.Duration("older", 3*time.Second, "how long there is load between the copy of the primary's disks and its loss")
	olderRounds = flag.Int("older-rounds", 0, "how often the former primary returns with such a copy; with 0 the test is left out")
)

// The primary is lost by kill -9 of all its nodes under load, and returns with a copy of its disks that is -older. The
// link was cut a second before, so that acknowledged writes are gone, and the copy lacks them too. It takes no write. Of its
// lost-change report each acknowledged write that is gone is in it, or committed after the time since when
// it says to be incomplete. What the new primary had is there when both copies agree, after `account rebuild` where that
// is asked for: nothing of it follows the older disks (R20, R22).
//
// Capability: Failover: A former primary with older disks (R22).
func TestR22OlderDisks(t *testing.T) {
	if *olderRounds == 0 {
		t.Skip("make redundancy plays it: -older-rounds is 0")
	}
	r := rig.StartTest(t, nil)
	ctx := t.Context()
	a := pairedAccount(t, r)
	from, to := rig.North, rig.South
	lost, rebuilt := 0, 0
	for round := range *olderRounds {
		a.live(ctx)
		gone, again := a.olderRound(ctx, from, to, round)
		lost += gone
		if again {
			rebuilt++
		}
		from, to = to, from
	}
	summary(t, "%d returns with disks that were %v older: %d acknowledged writes gone, each reported or left open by the report; %d copies made again",
		*olderRounds, *older, lost, rebuilt)
}

// olderRound plays one round. It returns how many acknowledged writes are gone, and whether the copy was made again.
func (a *account) olderRound(ctx context.Context, from, to geo.Location, round int) (gone int, rebuilt bool) {
	a.t.Helper()
	writes := &ledger.Ledger{Prefix: fmt.Sprintf("o%d-", round)}
	stop := a.ledgering(ctx, writes, rig.Gateway)
	a.eventually(ctx, "writes are acknowledged", func(context.Context) bool { return writes.Acked() > 100 })
	stop()
	copies := a.copyDisks(ctx, from)
	stop = a.ledgering(ctx, writes, rig.Gateway)
	defer stop()
	reported := a.reporting(ctx, to)
	copied := writes.Acked()
	rig.Pause(ctx, *older)
	a.eventually(ctx, "writes are acknowledged and reported as arrived", func(context.Context) bool {
		all := acked(writes)[copied:]
		return len(all) > 100 && len(ledger.Through(all, reported.now()["table"])) > 50
	})
	require.NoError(a.t, a.r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(from), rig.NodesOf(to)))
	cut := writes.Acked()
	rig.Pause(ctx, contactAge)
	a.eventually(ctx, "writes go on", func(context.Context) bool { return writes.Acked() > cut+20 })
	p := a.lose(ctx, from, to, reported)
	before := writes.Acked()
	a.eventually(ctx, "the new primary takes writes", func(context.Context) bool { return writes.Acked() > before+20 })
	stop()
	had, err := writes.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	require.NotEmpty(a.t, had.Lost, "nothing was lost: the round has shown nothing of that")
	bounds := a.requireStated(p, writes, had, true)

	for _, name := range rig.NodesOf(from) {
		require.NoError(a.t, a.r.SwapDisks(name, copies[name]))
	}
	forwarded, stopForwarded := a.relaunched(ctx, from, to)
	defer stopForwarded()
	rebuilt = a.rejoined(ctx, from, to)
	a.passesOn(ctx, forwarded, stopForwarded)
	report := a.reported(ctx, from, writes.Prefix, had, true)
	a.live(ctx)
	a.agrees(ctx)
	has, err := writes.Find(ctx, a.Primary)
	require.NoError(a.t, err)
	require.Equal(a.t, had.Kept, has.Kept, "what the new primary had before the former one returned")
	a.t.Logf("round %d: %d writes acknowledged, %d of them after the copy; %d gone; %d reported, incomplete: %+v; copy made again: %v; %s",
		round, writes.Acked(), writes.Acked()-copied, len(had.Lost), report.listed, report.incomplete, rebuilt, bounds)
	require.NoError(a.t, a.r.Ready(ctx))
	return len(had.Lost), rebuilt
}

// copyDisks copies the disks of a location while its nodes are stopped, and starts them again.
func (a *account) copyDisks(ctx context.Context, of geo.Location) (copies map[string]string) {
	a.t.Helper()
	copies = map[string]string{}
	for _, name := range rig.NodesOf(of) {
		require.NoError(a.t, a.r.Stop(ctx, name))
	}
	for _, name := range rig.NodesOf(of) {
		copies[name] = filepath.Join(a.t.TempDir(), name)
		require.NoError(a.t, a.r.CopyDisks(name, copies[name]))
	}
	for _, name := range rig.NodesOf(of) {
		require.NoError(a.t, a.r.Launch(name))
	}
	ready, cancel := context.WithTimeout(ctx, *calmWait)
	defer cancel()
	require.NoError(a.t, a.r.Ready(ready))
	return copies
}
