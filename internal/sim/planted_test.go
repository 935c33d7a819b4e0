//go:build plantedbugs

package sim

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/internal/invariants"
)

// plantedSeeds is within how many seeds each planted bug must be caught.
const plantedSeeds = 100

// Each planted bug is caught, by the check that holds the promise it breaks: proof
// that the checks can fail, and that the faults reach what they are meant to reach.
func TestPlantedBugsAreCaught(t *testing.T) {
	for _, c := range []struct {
		bug invariants.Bug
		by  error
	}{
		{invariants.SkipStream, ErrMissing},
		{invariants.ApplyOutOfOrder, ErrReceivedOrder},
		{invariants.AckAtQuorum, ErrNotDurable},
		{invariants.CursorOutsideBatch, ErrReplicaState},
		{invariants.SplitTransaction, ErrMixed},
		{invariants.MatchWithoutPayload, ErrPayload},
		{invariants.ApplyWithoutPayload, ErrPayload},
		{invariants.LongLease, ErrStaleRead},
		{invariants.VoteBeforeSync, ErrVote},
		{invariants.VoidLease, ErrStaleRead},
		{invariants.WallClock, ErrCommitTime},
		{invariants.SnapshotWithoutCursor, ErrReplicaState},
		{invariants.SnapshotOverOldRows, ErrReplicaState},
		{invariants.TrimUnacknowledged, ErrDrain},
		{invariants.EmptyUnderOldID, ErrForgot},
		{invariants.ReadUnverified, ErrContent},
		{invariants.PutUnverified, ErrContent},
		{invariants.ScrubBlind, ErrRotten},
		{invariants.LeaseWithoutQuorum, ErrStaleRead},
		{invariants.OverlayOutlivesTerm, ErrStale},
		{invariants.LeaseOfPassBegin, ErrStaleRead},
	} {
		t.Run(c.bug.String(), func(t *testing.T) {
			invariants.Plant(c.bug)
			defer invariants.Plant(0)
			caught := Result{}
			play(plantedSeeds, func(res Result) bool {
				caught = res
				return !errors.Is(res.Err, c.by) // It may break other promises on the way.
			})
			first, _, _ := strings.Cut(fmt.Sprint(caught.Err), "\n")
			fmt.Printf("planted %s: caught by seed %d of %d: %s\n", c.bug, caught.Seed, plantedSeeds, first)
			require.ErrorIs(t, caught.Err, c.by)
		})
	}
	res := Run(Options{Seed: 1})
	require.NoError(t, res.Err, "nothing planted")
}
