package directory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
)

// third is a witness for the south.
type third struct {
	clock *clock.Manual
	// away has every call fail; passed has it refuse claims.
	away, passed bool
	claims       map[geo.Account]geo.EpochNumber
	over         time.Duration // when the leases are over
	asked        int
}

var errPlace = errors.New("the witness does not answer")

// Claim implements directory.Claims.
func (p *third) Claim(_ context.Context, epochs map[geo.Account]geo.EpochNumber, here geo.Location) (time.Duration, error) {
	p.asked++
	switch {
	case p.away:
		return 0, errPlace
	case p.passed:
		return 0, unplanned.ErrClaimed
	case here != "south":
		return 0, errors.New("not its own location")
	}
	for name, n := range epochs {
		p.claims[name] = n
	}
	return max(p.over, p.clock.Mono()), nil
}

// Withdraw implements directory.Claims.
func (p *third) Withdraw(_ context.Context, name geo.Account, n geo.EpochNumber) error {
	if p.away {
		return errPlace
	}
	if p.claims[name] == n {
		delete(p.claims, name)
	}
	return nil
}

// newWitnessed is newApart with a witness, at which the north has a lease of ten seconds.
func newWitnessed(t *testing.T) (*apart, *third) {
	a := newApart(t)
	p := &third{clock: a.clock, claims: map[geo.Account]geo.EpochNumber{}, over: a.clock.Mono() + 10*time.Second}
	a.pair.south.Promoter().SetClaims(p)
	a.cut = true
	return a, p
}

// back sets the wall clock of the test back to that of the stamps.
func (a *apart) back() { a.clock.Step(time.Since(a.clock.Now())) }

func (a *apart) phase(t *testing.T) catalog.PromotionPhase {
	t.Helper()
	p, err := a.pair.south.Promoter().Promotion(t.Context(), a.name)
	require.NoError(t, err)
	all, err := a.pair.south.Promotions(t.Context())
	require.NoError(t, err)
	require.Equal(t, p, all[a.name])
	if p == nil {
		return ""
	}
	return p.Phase
}

// R21: a promotion first registers its claim, and then waits until no lease from before the claim holds any more. The
// commit is in the claimed epoch, and the witness keeps the claim. A new process asks again.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
func TestR21PromotionWaitsForLeases(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		a, p := newWitnessed(t)
		_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
		require.NoError(t, err)
		require.Empty(t, p.claims)
		for range 10 {
			require.NoError(t, a.resumed(t, 1))
			require.Equal(t, geo.EpochNumber(2), p.claims[a.name])
			require.Equal(t, catalog.PromotionClaiming, a.phase(t))
			a.requireGates(t, "south", a.name, frozenGate(0))
			if restarts {
				a.restart()
				a.pair.south.Promoter().SetClaims(p)
			}
		}
		require.GreaterOrEqual(t, a.clock.Mono(), p.over)
		if !restarts {
			require.Equal(t, 1, p.asked, "it knows when to go on")
		}
		require.ErrorIs(t, a.resumed(t, 6), errLink)
		require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.at(t).GeoEpoch())
		require.Len(t, p.claims, 1)
	}
}

// R21: a witness that is restored while a claim waits, from a file without it, has granted a lease to the primary that holds for
// the account. It gets the claim again before the promotion goes on, which then waits for that lease, too. While it is away the
// promotion waits.
//
// Capability: Two locations: A location that starts asks before it takes writes of accounts with a copy (R21).
func TestR21RestoredWitnessGetsTheClaimAgain(t *testing.T) {
	t.Parallel()
	a, p := newWitnessed(t)
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 1))
	require.Len(t, p.claims, 1)
	clear(p.claims)
	p.away = true
	for a.clock.Mono() < p.over {
		require.NoError(t, a.resumed(t, 1), "it does not ask before")
	}
	require.ErrorIs(t, a.resumed(t, 2), errPlace)
	require.Equal(t, catalog.PromotionClaiming, a.phase(t))

	p.away, p.over = false, a.clock.Mono()+10*time.Second
	for a.clock.Mono() < p.over {
		require.NoError(t, a.resumed(t, 1))
		require.Equal(t, geo.EpochNumber(2), p.claims[a.name])
		require.Equal(t, catalog.PromotionClaiming, a.phase(t))
		a.requireGates(t, "south", a.name, frozenGate(0))
	}
	require.ErrorIs(t, a.resumed(t, 6), errLink)
	require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.at(t).GeoEpoch())

	// Of a claim that is passed meanwhile the promotion ends.
	a, p = newWitnessed(t)
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 1))
	p.passed = true
	for a.clock.Mono() < p.over {
		require.NoError(t, a.resumed(t, 1))
	}
	require.NoError(t, a.resumed(t, 4))
	require.Empty(t, a.phase(t))
	require.Equal(t, geo.Location("north"), a.at(t).Primary)
}

// R21: while the witness is away a promotion waits, and ends with a reason that names it. Its claim may be registered, so
// it is no more only once the witness has forgotten it; the account is the primary's meanwhile, and no later promotion
// claims the same epoch.
func TestR21PromotionWithoutItsWitnessThaws(t *testing.T) {
	t.Parallel()
	a, p := newWitnessed(t)
	var ended []string
	a.pair.south.OnMove(func(m record.Moved) {
		if m.Step == record.MoveEnded {
			ended = append(ended, m.Reason)
		}
	})
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	p.away, p.claims[a.name] = true, 2 // As by a call whose answer was lost.
	require.ErrorIs(t, a.resumed(t, 3), errPlace)
	require.Contains(t, a.pair.south.Waits(a.at(t)), errPlace.Error())
	a.clock.Advance(2 * time.Minute)
	require.ErrorIs(t, a.resumed(t, 4), errPlace)
	require.Equal(t, []string{"the witness had not let it go on within 2m0s: " + errPlace.Error()}, ended)
	require.Equal(t, catalog.PromotionWithdrawing, a.phase(t))
	require.Equal(t, geo.Location("north"), a.at(t).Primary)
	a.requireGates(t, "south", a.name, frozenGate(2))
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	requireCode(t, storageerr.OperationInProgress, err)
	require.ErrorContains(t, err, "the witness is to forget")
	ok, err := a.pair.south.Promoter().EndPromotion(t.Context(), a.name)
	require.NoError(t, err)
	require.False(t, ok)

	p.away = false
	require.NoError(t, a.resumed(t, 1))
	require.Empty(t, p.claims)
	require.Empty(t, a.phase(t))
	a.back()
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	_ = a.resumed(t, 1)
	require.Equal(t, geo.EpochNumber(3), p.claims[a.name], "a late withdrawal of epoch 2 takes nothing from it")
	_ = a.resumed(t, 6)
	require.Equal(t, geo.Epoch{Number: 3, Location: "south"}, a.at(t).GeoEpoch())
}

// R21: an operator has a promotion not ask the witness, or go on where it waits for that, at its begin or at its end.
func TestR21PromotionByOverride(t *testing.T) {
	t.Parallel()
	promoted := func(t *testing.T, a *apart) {
		t.Helper()
		_, err := a.pair.south.Promoter().PromoteWithoutWitness(t.Context(), a.name)
		require.NoError(t, err)
		_, err = a.pair.south.Promoter().PromoteWithoutWitness(t.Context(), a.name)
		requireCode(t, storageerr.OperationInProgress, err)
		_ = a.resumed(t, 6)
		require.Equal(t, geo.Location("south"), a.at(t).Primary)
	}
	for name, before := range map[string]func(t *testing.T, a *apart, p *third){
		"at once": func(*testing.T, *apart, *third) {},
		"while it waits": func(t *testing.T, a *apart, _ *third) {
			_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
			require.NoError(t, err)
			_ = a.resumed(t, 2)
			a.clock.Advance(time.Minute)
		},
		"after it ended": func(t *testing.T, a *apart, _ *third) {
			_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
			require.NoError(t, err)
			a.clock.Advance(2 * time.Minute)
			_ = a.resumed(t, 3)
			require.Equal(t, catalog.PromotionWithdrawing, a.phase(t))
			a.back()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, p := newWitnessed(t)
			p.away = true
			before(t, a, p)
			why := ""
			a.pair.south.OnMove(func(m record.Moved) {
				if m.Step == record.MoveBegun {
					why = m.Reason
				}
			})
			promoted(t, a)
			require.Equal(t, "without the witness, by an operator's word", why)
		})
	}
	// One that goes on without the witness and then ends has the witness forget what may be registered.
	a, p := newWitnessed(t)
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 1))
	require.Len(t, p.claims, 1)
	_, err = a.pair.south.Promoter().PromoteWithoutWitness(t.Context(), a.name)
	require.NoError(t, err)
	ok, err := a.pair.south.Promoter().EndPromotion(t.Context(), a.name)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, a.resumed(t, 2))
	require.Empty(t, p.claims)
	require.Empty(t, a.phase(t))
}

// R21: a claim that the witness refuses for ever ends the promotion, and so does an epoch that was seen after it was
// claimed: the commit is in the claimed epoch, or there is none.
func TestR21PromotionCommitsItsClaim(t *testing.T) {
	t.Parallel()
	a, p := newWitnessed(t)
	p.passed = true
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 4))
	require.Empty(t, a.phase(t))
	require.Equal(t, geo.Location("north"), a.at(t).Primary)

	p.passed = false
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	require.NoError(t, a.resumed(t, 1))
	require.Equal(t, geo.EpochNumber(3), p.claims[a.name])
	of := *a.at(t)
	of.Operation = &catalog.Operation{Kind: catalog.OperationMove, Move: catalog.Move{Claim: 5}}
	_, err = a.pair.south.Refuse(t.Context(), of)
	require.NoError(t, err)
	a.clock.Advance(10 * time.Second)
	require.NoError(t, a.resumed(t, 7))
	require.Equal(t, geo.Location("north"), a.at(t).Primary)
	require.Empty(t, a.phase(t))
	require.Empty(t, p.claims)
	_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	_ = a.resumed(t, 6)
	require.Equal(t, geo.EpochNumber(6), a.at(t).Epoch)
}

// R21: where a lease outlives the time of a promotion, that waits for the lease.
func TestR21PromotionOutwaitsALongLease(t *testing.T) {
	t.Parallel()
	a, p := newWitnessed(t)
	p.over = a.clock.Mono() + 5*time.Minute
	_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, a.resumed(t, 1))
		require.Equal(t, catalog.PromotionClaiming, a.phase(t))
		a.clock.Advance(time.Minute - time.Second)
	}
	_ = a.resumed(t, 6)
	require.Equal(t, geo.Location("south"), a.at(t).Primary)
}

// R21: a promotion that a commit of the south fails at with a witness, or whose process ends there, goes on where it was.
func TestR21ClaimGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	b := newBoth(t)
	for _, done := range []bool{false, true} {
		for steps := range 9 {
			a := newApartOf(t, b, geo.Account(fmt.Sprintf("acct%d%t", steps, done)))
			a.cut = true
			p := &third{clock: a.clock, claims: map[geo.Account]geo.EpochNumber{}}
			a.pair.south.Promoter().SetClaims(p)
			_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
			require.NoError(t, err)
			a.south.in, a.south.done = steps, done
			for range 8 {
				if _, err := a.pair.south.Resume(t.Context()); err != nil && !errors.Is(err, errLink) {
					a.restart()
					a.pair.south.Promoter().SetClaims(p)
				}
				a.clock.Advance(time.Second)
			}
			require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.at(t).GeoEpoch(), "step %d", steps)
			require.Equal(t, geo.EpochNumber(2), p.claims[a.name])
			require.Negative(t, a.south.in, "no commit has failed")
			endPromoted(t, a)
		}
	}
}

// R20, R21: what a primary has begun that the other location does not know of does not free its writes from the word that
// they need while there is a copy there: neither a change to LRS nor a rebuild, however often it begins again. The word is
// about the last epoch that both know of, so a claim of the next one counts, whatever numbers the primary has used since.
// Once the other location knows, an account that is LRS needs none.
func TestR21EpochIsAgreedOn(t *testing.T) {
	t.Parallel()
	begun := func(e geo.EpochNumber) change.Gate {
		return change.Gate{Epoch: geo.Epoch{Number: e, Location: "north"}, Role: change.RolePrimary, Open: true, Agreed: 1}
	}
	requireBegun := func(t *testing.T, a *apart, e geo.EpochNumber) {
		t.Helper()
		a.requireGates(t, "north", a.name, begun(e))
		own, err := a.north.Own(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[geo.Account]geo.Epoch{a.name: {Number: 1, Location: "north"}}, own)
	}
	begin := func(t *testing.T) *apart {
		a := newApart(t)
		a.cut = true
		for e := range geo.EpochNumber(2) {
			_, behind, err := a.north.Rebuild(t.Context(), a.name, nil)
			require.NoError(t, err)
			require.ErrorIs(t, behind, errLink)
			requireBegun(t, a, e+2)
		}
		_, behind := update(t, a.north, a.name, catalog.LRS)
		require.ErrorIs(t, behind, errLink)
		requireBegun(t, a, 4)
		require.True(t, begun(4).PassedBy(geo.Epoch{Number: 2, Location: "south"}))
		return a
	}
	t.Run("agreed", func(t *testing.T) {
		a := begin(t)
		a.cut = false
		of, err := a.north.Account(t.Context(), a.name)
		require.NoError(t, err)
		require.NoError(t, a.pair.south.Announce(t.Context(), *of)) // Its answer is lost.
		requireBegun(t, a, 4)
		above, err := a.pair.south.Higher(t.Context(), map[geo.Account]geo.Epoch{a.name: {Number: 1, Location: "north"}})
		require.NoError(t, err)
		require.Equal(t, map[geo.Account]geo.Epoch{a.name: {Number: 4, Location: "north"}}, above)
		require.Empty(t, a.north.Passing(t.Context(), above), "it is the own one")
		for _, e := range []geo.Epoch{{Number: 2, Location: "south"}, {Number: 5, Location: "north"}} {
			above := map[geo.Account]geo.Epoch{a.name: e}
			require.Equal(t, above, a.north.Passing(t.Context(), above))
		}
		_, err = a.north.Resume(t.Context())
		require.NoError(t, err)
		lrs := begun(4)
		lrs.Agreed = 0
		a.requireGates(t, "north", a.name, lrs)
		own, err := a.north.Own(t.Context())
		require.NoError(t, err)
		require.Empty(t, own)
		_, err = a.pair.south.Promoter().Promote(t.Context(), a.name)
		require.Error(t, err)
	})
	t.Run("promoted", func(t *testing.T) {
		a := begin(t)
		_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
		require.NoError(t, err)
		require.ErrorIs(t, a.resumed(t, 6), errLink)
		require.Equal(t, geo.Epoch{Number: 2, Location: "south"}, a.at(t).GeoEpoch())
		requireBegun(t, a, 4)
		above, err := a.pair.south.Higher(t.Context(), map[geo.Account]geo.Epoch{a.name: {Number: 1, Location: "north"}})
		require.NoError(t, err)
		require.True(t, begun(4).PassedBy(above[a.name]), "an exchange says so, too")
		a.cut = false
		_ = a.resumed(t, 3)
		of, err := a.north.Account(t.Context(), a.name)
		require.NoError(t, err)
		require.Equal(t, geo.Epoch{Number: 5, Location: "south"}, of.GeoEpoch(), "the promotion wins")
	})
}

// R21: a promotion without the witness has the witness know of it afterwards, as soon as that can be reached, in whichever
// process, and once; unless the former primary knows before.
func TestR21OverrideIsClaimedAfterwards(t *testing.T) {
	t.Parallel()
	promoted := func(t *testing.T) (*apart, *third) {
		a, p := newWitnessed(t)
		_, err := a.pair.south.Promoter().PromoteWithoutWitness(t.Context(), a.name)
		require.NoError(t, err)
		for a.at(t).Primary != "south" {
			require.Zero(t, p.asked, "it does not wait for the witness")
			require.NoError(t, a.resumed(t, 1))
		}
		return a, p
	}
	a, p := promoted(t)
	p.away = true
	require.ErrorIs(t, a.resumed(t, 3), errPlace)
	require.Contains(t, a.pair.south.Waits(a.at(t)), errPlace.Error())
	require.True(t, a.at(t).Operation.Unclaimed)
	a.restart()
	a.pair.south.Promoter().SetClaims(p)
	p.away = false
	require.ErrorIs(t, a.resumed(t, 1), errLink)
	require.Equal(t, map[geo.Account]geo.EpochNumber{a.name: 2}, p.claims)
	asked := p.asked
	require.ErrorIs(t, a.resumed(t, 3), errLink)
	require.Equal(t, asked, p.asked)
	require.False(t, a.at(t).Operation.Unclaimed)

	a, p = promoted(t)
	p.passed = true // By a claim of a later epoch.
	require.ErrorIs(t, a.resumed(t, 1), errLink)
	require.False(t, a.at(t).Operation.Unclaimed)

	a, p = promoted(t)
	a.cut = false
	require.NoError(t, a.resumed(t, 1))
	require.Zero(t, p.asked)
	require.Nil(t, a.at(t).Operation)
}
