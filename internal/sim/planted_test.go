//go:build plantedbugs

package sim

import (
	"errors"
	"fmt"
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
	} {
		invariants.Plant(c.bug)
		caught := Result{}
		play(plantedSeeds, func(res Result) bool {
			caught = res
			return !errors.Is(res.Err, c.by) // It may break other promises on the way.
		})
		fmt.Printf("planted %s: caught by seed %d of %d: %v\n", c.bug, caught.Seed, plantedSeeds, caught.Err)
		require.ErrorIs(t, caught.Err, c.by, "planted %s", c.bug)
	}
	invariants.Plant(0)
	res := Run(Options{Seed: 1})
	require.NoError(t, res.Err, "nothing planted")
}
