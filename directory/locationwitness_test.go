package directory_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
)

// newWitnessedHouse is newHouse whose south has a clock of the test, and a witness that is away. The north answers nothing.
func newWitnessedHouse(t *testing.T, many int) (*house, *third) {
	h := newHouse(t, many)
	now := clock.NewManual(time.Now())
	h.south.directory.SetPace(now, 0)
	p := &third{clock: now, claims: map[geo.Account]geo.EpochNumber{}, away: true}
	h.south.directory.Promoter().SetClaims(p)
	return h, p
}

// resume goes on with the operations of the south alone, steps times, a second apart.
func (h *house) resume(t *testing.T, p *third, steps int) {
	t.Helper()
	for range steps {
		_, _ = h.south.directory.Resume(t.Context()) // The witness and the north do not answer.
		p.clock.Advance(time.Second)
	}
}

// phases counts the unplanned failovers of accounts by their phase.
func (h *house) phases(t *testing.T) map[catalog.PromotionPhase]int {
	t.Helper()
	list, err := h.south.directory.Promotions(t.Context())
	require.NoError(t, err)
	out := map[catalog.PromotionPhase]int{}
	for _, p := range list {
		out[p.Phase]++
	}
	return out
}

// R21: while the witness is away an operator has the unplanned failover of a location go on without it, whether its accounts
// still wait for the witness, have given up, or were ended with the location's failover.
func TestR21LocationGoesOnWithoutTheWitness(t *testing.T) {
	t.Parallel()
	const many = 3
	without := unplanned.Insisted{WithoutWitness: true}
	for name, c := range map[string]struct {
		before func(t *testing.T, h *house, p *third)
		phase  catalog.PromotionPhase
	}{
		"while they wait": {func(*testing.T, *house, *third) {}, catalog.PromotionClaiming},
		"after their time": {func(t *testing.T, h *house, p *third) {
			p.clock.Advance(2 * time.Minute)
			h.resume(t, p, 3)
			p.clock.Step(time.Since(p.clock.Now()))
		}, catalog.PromotionWithdrawing},
		"after an end": {func(t *testing.T, h *house, p *third) {
			_, err := h.south.directory.EndLocation(t.Context())
			require.NoError(t, err)
			_, err = h.south.directory.PromoteLocation(t.Context(), without)
			requireCode(t, storageerr.OperationInProgress, err)
			h.resume(t, p, 5)
			require.True(t, h.over(t, h.south), "the claims are the witness's business alone")
			m, progress := h.progress(t, h.south)
			require.Equal(t, "an operator ended it", m.Reason)
			require.Equal(t, directory.LocationProgress{Waiting: many, Alone: 1, Moving: map[string]int{}}, progress)
		}, catalog.PromotionWithdrawing},
	} {
		t.Run(name, func(t *testing.T) {
			h, p := newWitnessedHouse(t, many)
			_, err := h.south.directory.PromoteLocation(t.Context(), unplanned.Insisted{})
			require.NoError(t, err)
			h.resume(t, p, 2)
			c.before(t, h, p)
			require.Equal(t, map[catalog.PromotionPhase]int{c.phase: many}, h.phases(t))
			check, err := h.south.directory.CheckLocation(t.Context(), without)
			require.NoError(t, err)
			require.Equal(t, directory.LocationProgress{Waiting: many, Alone: 1, Moving: map[string]int{}}, check.LocationProgress)
			require.Zero(t, check.Move.RefusedCount, "%v", check.Move.Refused)

			_, err = h.south.directory.PromoteLocation(t.Context(), without)
			require.NoError(t, err)
			_, err = h.south.directory.PromoteLocation(t.Context(), without)
			requireCode(t, storageerr.OperationInProgress, err)
			require.ErrorContains(t, err, "a failover of location north is under way: antipodectl failover show --location north")
			h.resume(t, p, 20)
			require.True(t, h.over(t, h.south))
			_, progress := h.progress(t, h.south)
			require.Equal(t, directory.LocationProgress{Moved: many, Alone: 1, Moving: map[string]int{}}, progress)
		})
	}
}

// R21: the end of the failover of a location leaves alone the account that an operator has let go on without the witness.
func TestR21EndOfALocationSparesAnOverride(t *testing.T) {
	t.Parallel()
	const many = 3
	h, p := newWitnessedHouse(t, many)
	_, err := h.south.directory.PromoteLocation(t.Context(), unplanned.Insisted{})
	require.NoError(t, err)
	h.resume(t, p, 2)
	_, err = h.south.directory.Promoter().PromoteWithoutWitness(t.Context(), h.name(1))
	require.NoError(t, err)
	_, err = h.south.directory.EndLocation(t.Context())
	require.NoError(t, err)
	h.resume(t, p, 20)
	require.True(t, h.over(t, h.south))
	_, progress := h.progress(t, h.south)
	require.Equal(t, many-1, progress.Waiting)
	for i, want := range []geo.Location{"north", "south", "north"} {
		a, err := h.south.directory.Account(t.Context(), h.name(i))
		require.NoError(t, err)
		require.Equal(t, want, a.Primary)
	}

	// One that was begun for all without the witness is ended for all.
	h, p = newWitnessedHouse(t, many)
	_, err = h.south.directory.PromoteLocation(t.Context(), unplanned.Insisted{WithoutWitness: true})
	require.NoError(t, err)
	h.resume(t, p, 1)
	require.Equal(t, map[catalog.PromotionPhase]int{catalog.PromotionApplying: many}, h.phases(t))
	_, err = h.south.directory.EndLocation(t.Context())
	require.NoError(t, err)
	h.resume(t, p, 5)
	require.True(t, h.over(t, h.south))
	_, progress = h.progress(t, h.south)
	require.Equal(t, many, progress.Waiting)
	require.Empty(t, h.phases(t))
}
