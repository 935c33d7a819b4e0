package sites

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
)

// R6, R13: all clocks of the primary leap ahead, by ten minutes for 6 s and by twenty years for 3 s, and are right again,
// under load. Last Sync Time is never ahead of an acknowledged write that -secondary lacks. Afterwards writes and replication
// go on long before the leap would have passed, and nothing is missing.
//
// Capability: Two locations: Whole sites that are wrong (R4, R6, R16, R17, R19, R20), as processes.
func TestR6ThePrimaryLeaps(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	var writes ledger.Ledger
	end := s.writing(ctx, &writes)
	sampled := s.sampling(ctx, rig.South, geo.ClockOffMax, &writes)
	s.more(ctx, &writes, 60)
	for _, leap := range []struct{ by, lasts time.Duration }{{10 * time.Minute, 6 * time.Second}, {20 * 365 * 24 * time.Hour, 3 * time.Second}} {
		s.setClocks(leap.by, rig.NodesOf(rig.North)...)
		rig.Pause(ctx, leap.lasts)
		s.setClocks(0, rig.NodesOf(rig.North)...)
		began := time.Now()
		s.more(ctx, &writes, 30)
		wrote := time.Since(began)
		s.passes(ctx)
		t.Logf("a leap by %v: 30 writes %v after the clocks were right, Last Sync Time passes the present after %v", leap.by, wrote, time.Since(began))
	}
	end()
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	_, reads := sampled.counts()
	require.Positive(t, reads)
	sampled.end()
	for _, e := range writes.Entries() {
		require.False(t, e.Fate == ledger.Acked && e.At.Time().After(e.Ended.Add(geo.ClockOffMax)), "stamped in the future: %s", e)
	}
	s.agrees(ctx)
}

// R6, R13, R20: the clocks of both locations are two hours ahead, and times are given so; they are right again after
// a restart of everything. Writes and replication go on, long before these two hours have passed, with honest times.
// In that state the primary is lost, and the secondary takes the account: nothing is dropped that had arrived.
//
// Capability: Two locations: Whole sites that are wrong (R4, R6, R16, R17, R19, R20), as processes.
func TestR6BothLocationsLeap(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	all := append(rig.NodesOf(rig.North), rig.NodesOf(rig.South)...)
	var writes ledger.Ledger
	s.write(ctx, &writes, 60)
	s.setClocks(2*time.Hour, all...)
	// The requests of clients whose clocks are right are refused as too old: closed records alone are stamped so.
	s.eventually(ctx, "times are two hours ahead at the secondary", func(ctx context.Context) bool {
		status, err := s.r.Admin(rig.NodesOf(rig.South)[0]).Status(ctx)
		n := 0
		for _, a := range status.Accounts {
			for _, of := range a.Services {
				if of.LastSyncTime.After(time.Now().Add(time.Hour)) {
					n++
				}
			}
		}
		return err == nil && n == len(geo.Services)
	})
	for _, name := range all {
		require.NoError(t, s.r.Kill(name))
	}
	s.setClocks(0, all...)
	require.NoError(t, s.r.LaunchAll(all...))
	began := time.Now()
	sampled := s.sampling(ctx, rig.South, geo.ClockOffMax, &writes)
	end := s.writing(ctx, &writes)
	s.more(ctx, &writes, 60)
	s.passes(ctx)
	t.Logf("Last Sync Time passes the present %v after the restart", time.Since(began))
	end()
	newest := lastAcked(&writes)
	require.True(t, newest.At.Time().After(newest.Ended.Add(time.Hour)), "times are not ahead: the test shows nothing: %s", newest)
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	sampled.end()

	for _, name := range rig.NodesOf(rig.North) {
		require.NoError(t, s.r.Kill(name))
	}
	s.promoteAlone(ctx, rig.South)
	later := ledger.Ledger{Prefix: "later"}
	s.write(ctx, &later, 60)
	s.kept(ctx, &writes)
	require.NoError(t, s.r.LaunchAll(rig.NodesOf(rig.North)...))
	s.rejoined(ctx)
	s.kept(ctx, &writes)
	s.kept(ctx, &later)
	s.arrived(ctx, &later)
	s.passes(ctx)
	s.agrees(ctx)
}

// setClocks sets how far the clocks of nodes are ahead.
func (s *site) setClocks(ahead time.Duration, nodes ...string) {
	s.t.Helper()
	for _, name := range nodes {
		require.NoError(s.t, s.r.SetClock(name, ahead))
	}
}

// lastAcked is the acknowledged write that ended last.
func lastAcked(l *ledger.Ledger) (last ledger.Entry) {
	for _, e := range l.Entries() {
		if e.Fate == ledger.Acked {
			last = e
		}
	}
	return last
}
