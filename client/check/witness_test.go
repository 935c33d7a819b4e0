package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// R21: a dead witness is critical where writes are refused: not at a location all accounts of which were promoted at the other one.
// That one is not to be confirmed with --not-promoted, nor is one of which some were promoted.
func TestR21DeadWitnessAfterAPromotion(t *testing.T) {
	s := well()
	for i := range s.Locations {
		s.Locations[i].Epochs = &admin.Epochs{Witness: true, Waiting: "refused"}
	}
	s.Locations[0].Epochs.Confirmed, s.Locations[0].Epochs.By = true, "override"
	for i := range s.Accounts { // They were at the south before.
		s.Accounts[i].FailoverPhase = admin.FailoverTaken
	}
	f := findings{status: s}
	f.witness()
	require.Equal(t, []Finding{{
		Warning, "the witness does not answer; south: no writes are refused, as it is the primary of no account that has a copy; " +
			"north: writes go on without a lease, by an operator's word (refused)", "start the witness again: docs/runbooks/witness.md",
	}}, f.list)

	s.Accounts[3].Primary, s.Accounts[3].Secondary, s.Accounts[3].FailoverPhase = "south", "north", ""
	f = findings{status: s}
	f.witness()
	require.Equal(t, []Finding{{
		Critical, "the witness does not answer: writes of accounts that have a copy are refused at south; reads, and accounts without a copy, go on; " +
			"north: writes go on without a lease, by an operator's word (refused)", "start the witness again: docs/runbooks/witness.md",
	}}, f.list)
}
