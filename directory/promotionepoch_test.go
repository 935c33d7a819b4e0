package directory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
)

// R20: a promotion whose account has become LRS at a primary that lives, as the stream shows, ends at once, whatever its
// phase, and not once its time is over: if the clock was ahead when it began, that is long after. The clock of the test
// stands still meanwhile. The witness forgets the claim, and the primary goes on: the copy is deleted.
func TestR20PromotionEndsWithItsEpoch(t *testing.T) {
	t.Parallel()
	for _, phase := range []catalog.PromotionPhase{catalog.PromotionClaiming, catalog.PromotionApplying, catalog.PromotionFreezing} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			a, p := newWitnessed(t)
			var ended []string
			a.pair.south.OnMove(func(m record.Moved) {
				if m.Step == record.MoveEnded {
					ended = append(ended, m.Reason)
				}
			})
			left, behind := update(t, a.north, a.name, catalog.LRS)
			require.ErrorIs(t, behind, errLink)
			_, err := a.pair.south.Promoter().Promote(t.Context(), a.name)
			require.NoError(t, err)
			require.NoError(t, a.resumed(t, 1))
			if phase != catalog.PromotionClaiming {
				for a.clock.Mono() < p.over {
					require.NoError(t, a.resumed(t, 1))
				}
				require.NoError(t, a.resumed(t, 1))
			}
			for a.phase(t) != phase {
				require.NoError(t, a.resumed(t, 1))
			}
			if phase == catalog.PromotionFreezing {
				a.south.in = len(every) // The commit fails.
				require.Error(t, a.resumed(t, 1))
				a.requireGates(t, "south", a.name, frozenGate(1))
			}
			require.Len(t, p.claims, 1)

			a.arriveAt(t, "south", left)
			for range 3 {
				_, err = a.pair.south.Resume(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, []string{"its primary has changed the account to LRS meanwhile, in epoch 2@north"}, ended)
			require.Empty(t, a.phase(t))
			require.Empty(t, p.claims)

			a.cut = false
			requireResumed(t, a.north)
			there, err := a.north.Account(t.Context(), a.name)
			require.NoError(t, err)
			require.Nil(t, there.Operation)
			epoch := geo.Epoch{Number: 2, Location: "north"}
			a.requireGates(t, "north", a.name, change.Gate{Epoch: epoch, Role: change.RolePrimary, Open: true})
			a.requireGates(t, "south", a.name, change.Gate{Epoch: epoch})
		})
	}
}
