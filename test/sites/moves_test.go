package sites

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/test/faults/proxy"
	"antipode/test/faults/rig"
	"antipode/test/ledger"
	"antipode/test/rest"
)

const (
	// cutFor is how long the link stays cut, and gapMax how long no write may be acknowledged meanwhile: writes that stop
	// with the link would stand for cutFor. Gates open again after two seconds.
	cutFor, gapMax = 20 * time.Second, 10 * time.Second
	// moveRounds are tried until the link was cut before the primary had offered the account.
	moveRounds = 4
)

// R19: a planned failover that is asked for while the link is cut is refused, and changes nothing. One whose link is cut
// 0.1 s after it began does not stop writes for as long as the link is cut: the healthy primary takes them again. Nothing
// that was acknowledged is missing.
func TestR19PlannedFailoverOnACutLink(t *testing.T) {
	s := startWhole(t, nil)
	ctx := t.Context()
	var writes ledger.Ledger
	end := s.writing(ctx, &writes)
	s.more(ctx, &writes, 60)
	s.cut()
	s.eventually(ctx, "the cut is noticed", func(ctx context.Context) bool { return s.planned(ctx, true) != nil })
	require.Error(t, s.planned(ctx, false), "a planned failover was admitted on a cut link")
	a, err := s.r.Admin(rig.NodesOf(rig.North)[0]).Account(ctx, rest.DevAccount)
	require.NoError(t, err)
	require.Empty(t, a.Operation)
	s.more(ctx, &writes, 30)
	s.heal()
	s.rejoined(ctx)
	require.Equal(t, rig.North, s.account(ctx).Primary)

	shown := false
	for range moveRounds {
		if shown = shown || s.cutAfterBegin(ctx, &writes); shown {
			break
		}
	}
	require.True(t, shown, "the account was offered before the link was cut, each time: the test shows nothing")
	end()
	s.kept(ctx, &writes)
	s.arrived(ctx, &writes)
	s.agrees(ctx)
}

// cutAfterBegin begins a planned failover and cuts the link 0.1 s later. It reports whether the primary had not offered the
// account by then, which ends that nothing is served there: then it requires that writes went on.
func (s *site) cutAfterBegin(ctx context.Context, writes *ledger.Ledger) (shown bool) {
	s.t.Helper()
	from := s.account(ctx).Primary
	s.eventually(ctx, "the failover begins", func(ctx context.Context) bool { return s.planned(ctx, false) == nil })
	rig.Pause(ctx, 100*time.Millisecond)
	began := time.Now()
	s.cut()
	var phase string
	s.eventually(ctx, "the phase at the primary", func(ctx context.Context) bool {
		a, err := s.r.Admin(rig.NodesOf(from)[0]).Account(ctx, rest.DevAccount)
		phase = a.FailoverPhase
		return err == nil
	})
	rig.Pause(ctx, cutFor-time.Since(began))
	longest := gap(writes, began, time.Now())
	s.heal()
	s.t.Logf("cut in the phase %q: writes stood for %v at the most", phase, longest)
	s.rejoined(ctx)
	if phase != wire.FailoverDraining && phase != wire.FailoverClosing && phase != wire.FailoverEnding {
		return false
	}
	require.Less(s.t, longest, gapMax, "writes stood")
	return true
}

// planned asks for a planned failover of the account to its secondary, or only whether it would be admitted.
func (s *site) planned(ctx context.Context, dry bool) error {
	now := s.account(ctx)
	_, err := s.r.Admin(rig.NodesOf(now.Primary)[0]).UpdateAccount(ctx, rest.DevAccount, wire.UpdateAccount{
		Failover: &wire.Failover{Type: wire.FailoverPlanned, DryRun: dry},
	})
	return err
}

// cut refuses every connection between the locations.
func (s *site) cut() {
	s.t.Helper()
	require.NoError(s.t, s.r.Cut(proxy.Fault{Refuse: true}, rig.NodesOf(rig.North), rig.NodesOf(rig.South)))
}

// gap is the longest time between two acknowledged writes from a moment to another one.
func gap(l *ledger.Ledger, from, to time.Time) (longest time.Duration) {
	ends := []time.Time{from, to}
	for _, e := range l.Entries() {
		if e.Fate == ledger.Acked && e.Ended.After(from) && e.Ended.Before(to) {
			ends = append(ends, e.Ended)
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	for i := range ends[1:] {
		longest = max(longest, ends[i+1].Sub(ends[i]))
	}
	return longest
}

// promoteAlone makes a location the primary whose other location does not run.
func (s *site) promoteAlone(ctx context.Context, to geo.Location) {
	s.t.Helper()
	s.eventually(ctx, "the promotion begins", func(ctx context.Context) bool {
		_, err := s.r.Admin(rig.Gateway).UpdateAccount(ctx, rest.DevAccount, wire.UpdateAccount{
			Failover: &wire.Failover{Type: wire.FailoverUnplanned, To: to},
		})
		return err == nil
	})
	s.eventually(ctx, "the account is promoted", func(ctx context.Context) bool {
		a, err := s.r.Admin(rig.NodesOf(to)[0]).Account(ctx, rest.DevAccount)
		return err == nil && a.Primary == to
	})
}
