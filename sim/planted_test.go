//go:build plantedbugs

package sim

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
)

// plantedSeeds is within how many seeds each planted bug must be caught.
const plantedSeeds = 100

// ofPromotions are the planted bugs of unplanned failovers, which their runs have.
var ofPromotions = []plantedbugs.Bug{ //nolint:gochecknoglobals // A table.
	plantedbugs.PromotedUnfrozen, plantedbugs.ForkLaneLost, plantedbugs.DivergedFollows, plantedbugs.RewoundUnsent, plantedbugs.GenerationsStayClosed,
	plantedbugs.SweptUnsent,
}

// Each planted bug is caught, by the check that holds the promise it breaks: proof
// that the checks can fail, and that the faults reach what they are meant to reach.
//
// Capability: Blobs: In the simulator.
// Capability: Proofs: Planted bugs.
func TestPlantedBugsAreCaught(t *testing.T) {
	seeds := readPlantedSeeds(t)
	for _, c := range []struct {
		bug plantedbugs.Bug
		by  error
		// stall is the kind of run that shows it, empty for one of faults.
		stall Stall
	}{
		{plantedbugs.SkipStream, ErrMissing, ""},
		{plantedbugs.ApplyOutOfOrder, ErrReceivedOrder, ""},
		{plantedbugs.AckAtQuorum, ErrNotDurable, ""},
		{plantedbugs.CursorOutsideBatch, ErrReplicaState, ""},
		{plantedbugs.SplitTransaction, ErrMixed, ""},
		{plantedbugs.MatchWithoutPayload, ErrPayload, ""},
		{plantedbugs.CollectLogged, ErrCollected, ""},
		{plantedbugs.SnapshotListEnded, ErrContent, ""},
		{plantedbugs.SnapshotListUnread, ErrContent, ""},
		{plantedbugs.SnapshotUnnamed, ErrPayload, ""},
		{plantedbugs.SnapshotsRevived, ErrContent, ""},
		{plantedbugs.SnapshotsPassed, ErrContent, ""},
		{plantedbugs.LeaseOverwritten, ErrLease, ""},
		{plantedbugs.LeaseTaken, ErrLease, ""},
		{plantedbugs.AppendedUnread, ErrContent, ""},
		{plantedbugs.PositionIgnored, ErrAppended, ""},
		{plantedbugs.SealForgotten, ErrContent, ""},
		{plantedbugs.CopyUnnamed, ErrPayload, ""},
		{plantedbugs.CopyOvertaken, ErrContent, ""},
		{plantedbugs.ApplyWithoutPayload, ErrPayload, ""},
		{plantedbugs.LongLease, ErrStaleRead, ""},
		{plantedbugs.VoteBeforeSync, ErrVote, ""},
		{plantedbugs.VoidLease, ErrStaleRead, ""},
		{plantedbugs.ReadsNeedRoom, ErrReadsNeedRoom, ""},
		{plantedbugs.WallClock, ErrCommitTime, ""},
		{plantedbugs.SnapshotWithoutCursor, ErrReplicaState, ""},
		{plantedbugs.SnapshotOverOldRows, ErrReplicaState, ""},
		{plantedbugs.TrimUnacknowledged, ErrConserved, ""},
		{plantedbugs.EmptyUnderOldID, ErrForgot, ""},
		{plantedbugs.ReadUnverified, ErrContent, ""},
		{plantedbugs.PutUnverified, ErrContent, ""},
		{plantedbugs.ScrubBlind, ErrUnrepaired, ""},
		{plantedbugs.LeaseWithoutQuorum, ErrStaleRead, ""},
		{plantedbugs.OverlayOutlivesTerm, ErrStale, ""},
		{plantedbugs.LeaseOfPassBegin, ErrStaleRead, ""},
		{plantedbugs.HeldUnnamed, ErrClosed, ""},
		{plantedbugs.ClosedAheadOfFrame, ErrClosed, ""},
		{plantedbugs.ClockUnchecked, ErrFuture, ""},
		{plantedbugs.LeapUnchecked, ErrFuture, ""},
		{plantedbugs.FolderUnclaimed, ErrReplicaState, ""},
		{plantedbugs.FolderByNumber, ErrReplicaState, ""},
		{plantedbugs.WallOfReceiver, ErrMissing, ""},
		{plantedbugs.TrimUncompared, ErrConserved, ""},
		{plantedbugs.WhyOneClock, ErrWhy, "clock stepped"},
		{plantedbugs.VerifyMoved, ErrVerify, "link cut"},
		{plantedbugs.CopyUnwiped, ErrDrain, ""},
		{plantedbugs.LiveBeforeApplied, ErrMissing, ""},
		{plantedbugs.GateStaysLost, ErrGateLost, ""},
		{plantedbugs.CopyRevived, ErrGateLost, ""},
		{plantedbugs.EpochsUnconfirmed, ErrUnconfirmed, ""},
		{plantedbugs.TakenUndrained, ErrTakenEarly, ""},
		{plantedbugs.OfferedOpen, ErrTwoPrimaries, ""},
		{plantedbugs.WithdrawnUnrefused, ErrTwoPrimaries, ""},
		{plantedbugs.PromotedUnfrozen, ErrFork, ""},
		{plantedbugs.ForkLaneLost, ErrFork, ""},
		{plantedbugs.DivergedFollows, ErrRevived, ""},
		{plantedbugs.RewoundUnsent, ErrRevived, ""},
		{plantedbugs.SweptUnsent, ErrMissing, ""},
		{plantedbugs.GenerationsStayClosed, ErrSkipped, ""},
		{plantedbugs.ReceiverOutlivesTerm, ErrReceiver, ""},
		{plantedbugs.ReceiverFromMemory, ErrReceiver, ""},
	} {
		t.Run(c.bug.String(), func(t *testing.T) {
			plantedbugs.Plant(c.bug)
			defer plantedbugs.Plant(0)
			caught, played := Result{}, 0
			run := func(seed uint64) Result {
				loses := c.bug == plantedbugs.GateStaysLost || c.bug == plantedbugs.CopyRevived
				promotes := slices.Contains(ofPromotions, c.bug)
				return Run(Options{Seed: seed, Recovers: loses, Doubts: c.bug == plantedbugs.WithdrawnUnrefused, Promotes: promotes})
			}
			if c.stall != "" {
				run = func(seed uint64) Result { return RunStall(Options{Seed: seed}, c.stall) }
			}
			each := func(res Result) bool {
				caught = res
				played++
				return !errors.Is(res.Err, c.by) // It may break other promises on the way.
			}
			if seed, ok := seeds[c.bug.String()]; !ok || *reseed || each(run(seed)) {
				playEach(plantedSeeds, run, each)
			}
			seeds[c.bug.String()] = caught.Seed
			first, _, _ := strings.Cut(fmt.Sprint(caught.Err), "\n")
			fmt.Printf("planted %s: caught by seed %d, %d of %d played: %s\n", c.bug, caught.Seed, played, plantedSeeds, first)
			require.ErrorIs(t, caught.Err, c.by)
		})
	}
	res := Run(Options{Seed: 1})
	require.NoError(t, res.Err, "nothing planted")
	if *reseed && !t.Failed() {
		writePlantedSeeds(t, seeds)
	}
}

// reseed has the seeds of all bugs looked for again.
var reseed = flag.Bool("reseed", false, "write planted_seeds.txt: of each planted bug the first seed that catches it")

const plantedSeedsFile = "planted_seeds.txt"

// readPlantedSeeds reads a seed for each bug, with which the search for one begins. A change of the simulator or of what it
// plays may make it one that catches nothing: then the search goes on as without it, and costs minutes.
func readPlantedSeeds(t *testing.T) map[string]uint64 {
	t.Helper()
	b, err := os.ReadFile(plantedSeedsFile)
	require.NoError(t, err)
	seeds := map[string]uint64{}
	for line := range strings.Lines(string(b)) {
		var bug string
		var seed uint64
		_, err := fmt.Sscan(line, &bug, &seed)
		require.NoError(t, err, line)
		seeds[bug] = seed
	}
	return seeds
}

func writePlantedSeeds(t *testing.T, seeds map[string]uint64) {
	t.Helper()
	var b strings.Builder
	for _, bug := range slices.Sorted(maps.Keys(seeds)) {
		fmt.Fprintln(&b, bug, seeds[bug])
	}
	require.NoError(t, os.WriteFile(plantedSeedsFile, []byte(b.String()), 0o644))
}

// A former primary learns of a promotion in many ways. Stories in which only the witness informs it, or its lease has to end,
// show the bugs of claims.
func TestPlantedBugsOfClaimsAreCaught(t *testing.T) {
	alone := failoverStories["witnessed, primary alone"]
	alone.lease = 2 * time.Second
	for bug, story := range map[plantedbugs.Bug]failoverStory{
		plantedbugs.ClaimUnawaited: alone,
		plantedbugs.ClaimsUnlisted: failoverStories["witnessed, primary apart"],
		plantedbugs.FormerUnfenced: failoverStories["witnessed, primary apart"],
	} {
		t.Run(bug.String(), func(t *testing.T) {
			plantedbugs.Plant(bug)
			defer plantedbugs.Plant(0)
			var caught error
			for _, befalls := range append([]string{""}, story.befallings()...) { // Each is another course of the story.
				c, _, _ := story.run(t, promotionPrefix+string(catalog.PromotionClaiming), befalls)
				if caught = c.err; errors.Is(caught, ErrFormer) {
					break
				}
			}
			require.ErrorIs(t, caught, ErrFormer)
		})
	}
}

// setBackSeeds is within how many worlds each planted bug of disks that were set back must be caught.
const setBackSeeds = 20

// Disks that are set back show bugs that no run of faults does: there all that a node has synced stays.
func TestPlantedBugsOfSetBacksAreCaught(t *testing.T) {
	seeds := readPlantedSeeds(t)
	for bug, by := range map[plantedbugs.Bug]error{
		plantedbugs.ProofIgnored:      errForgotten,
		plantedbugs.DuplicateByNumber: errSyncLies,
	} {
		t.Run(bug.String(), func(t *testing.T) {
			plantedbugs.Plant(bug)
			defer plantedbugs.Plant(0)
			var caught error
			play := func(seed uint64) bool {
				w := newSetBackWorld(t, seed)
				defer w.end()
				w.play()
				caught = w.err
				return errors.Is(caught, by)
			}
			seed, known := seeds[bug.String()]
			if !known || *reseed || !play(seed) {
				for seed = 1; seed <= setBackSeeds && !play(seed); seed++ {
				}
			}
			fmt.Printf("planted %s: caught by world %d: %v\n", bug, seed, caught)
			require.ErrorIs(t, caught, by)
		})
	}
}
