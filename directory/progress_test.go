package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/failover/planned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/stamptest"
)

// streaming is a pair of locations whose catalogs answer, whatever their streams do.
type streaming struct {
	*both
	now *clock.Manual
	// stuck are the services of which the south receives no range.
	stuck map[geo.Service]bool
}

func newStreaming(t *testing.T) *streaming {
	t.Helper()
	s := &streaming{both: newBoth(t), now: clock.NewManual(time.Now()), stuck: map[geo.Service]bool{}}
	s.north.SetPace(s.now, 0)
	s.north.Mover().SetReceived(func(_ context.Context, id geo.RangeID) (geo.Timestamp, error) {
		for _, svc := range every {
			if s.stuck[svc] && id == geo.FirstRange(svc) {
				return 1, nil
			}
		}
		_, closed := s.stamps["north"].Leader(id).Machine.Heads()
		return closed, nil
	})
	_, err := s.north.Create(t.Context(), "acct", nil, nil)
	require.NoError(t, err)
	s.ship(t, "acct")
	return s
}

// phase goes on with the move once and returns its phase, empty without one.
func (s *streaming) phase(t *testing.T) catalog.MovePhase {
	t.Helper()
	_, _ = s.north.Resume(t.Context())
	a, err := s.north.Account(t.Context(), "acct")
	require.NoError(t, err)
	if a.Operation == nil {
		return ""
	}
	return a.Operation.Move.Phase
}

// requireNeverClosed checks that no gate has closed since the account was made: one that did is of a later turn.
func (s *streaming) requireNeverClosed(t *testing.T) {
	t.Helper()
	for _, svc := range every {
		gate := s.stamps["north"].Leader(geo.FirstRange(svc)).Machine.Gate("acct")
		require.True(t, gate.Open, "%s", svc)
		require.Zero(t, gate.Turn, "%s", svc)
	}
}

// R19: the other location answers and little is on its way, but a stream stands. The gates never close, the move ends
// when its time is over, and its reason names what did not move.
//
// Capability: Two locations: Nor over a stream that stands while the other location answers (R19).
func TestR19StandingStreamClosesNoGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stuck geo.Service
		ships bool
		want  string
	}{
		"no acknowledgement": {0, false, "its time was over while south did not acknowledge what the catalog range had committed"},
		"an idle range":      {geo.Table, true, "its time was over while south did not receive what the table range had sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStreaming(t)
			s.stuck[c.stuck] = true
			_, err := s.north.Mover().Move(t.Context(), "acct", 10*time.Second)
			require.NoError(t, err)
			for range 9 {
				require.Equal(t, catalog.MoveDraining, s.phase(t))
				s.requireNeverClosed(t)
				if c.ships {
					s.ship(t, "acct")
				}
				s.now.Advance(time.Second)
			}
			a, err := s.north.Account(t.Context(), "acct")
			require.NoError(t, err)
			require.Equal(t, catalog.MoveDraining, s.phase(t))
			require.Equal(t, c.want, "its time was over while "+s.north.Waits(a))
			s.now.Advance(10 * time.Second)
			require.Equal(t, catalog.MoveEnding, s.phase(t))
			a, err = s.north.Account(t.Context(), "acct")
			require.NoError(t, err)
			require.Equal(t, c.want, a.Operation.Move.Reason)
			s.requireNeverClosed(t)
			require.Empty(t, s.phase(t))
			s.requireNeverClosed(t)
		})
	}
}

// R19: a move goes on once what was committed when it looked is acknowledged, though more is on its way by then. What
// took longer than a few seconds shows no more than how slow the stream is: the move looks again.
//
// Capability: Two locations: Nor over a stream that stands while the other location answers (R19).
func TestR19MovingStreamClosesTheGates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late time.Duration
		want catalog.MovePhase
	}{
		"at once":       {0, catalog.MoveClosing},
		"within 5 s":    {5 * time.Second, catalog.MoveClosing},
		"later than so": {5*time.Second + 1, catalog.MoveDraining},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStreaming(t)
			_, err := s.north.Mover().Move(t.Context(), "acct", planned.MoveWithinMax)
			require.NoError(t, err)
			require.Equal(t, catalog.MoveDraining, s.phase(t))
			s.ship(t, "acct")
			s.now.Advance(c.late)
			stamptest.Submit(t, s.stamps["north"], table, insert{"acct"})
			require.Equal(t, c.want, s.phase(t))
			if c.want == catalog.MoveClosing {
				return
			}
			s.requireNeverClosed(t)
			require.Equal(t, catalog.MoveDraining, s.phase(t), "the insert is of the second look")
			s.acknowledged(t)
			s.now.Advance(time.Second) // The south is asked again.
			require.Equal(t, catalog.MoveClosing, s.phase(t))
		})
	}
}

// R19: a dry run refuses while the other location answers and receives nothing of a range, and changes nothing.
//
// Capability: Two locations: Nor over a stream that stands while the other location answers (R19).
func TestR19DryRunNamesAStandingStream(t *testing.T) {
	t.Parallel()
	s := newStreaming(t)
	s.north.NeverWait()
	require.NoError(t, s.north.Mover().CheckFlow(t.Context(), "acct"))
	s.stuck[geo.Queue] = true
	require.NoError(t, s.north.Mover().CheckMove(t.Context(), "acct"), "its catalog answers")
	err := s.north.Mover().CheckFlow(t.Context(), "acct")
	requireCode(t, storageerr.ServerBusy, err)
	require.ErrorContains(t, err, "south did not receive what the queue range had sent; nothing was changed")
	require.Empty(t, s.phase(t))
	s.requireNeverClosed(t)
}
