package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/check"
)

// A status has what check finds critical about ranges without a leader, also where its table of ranges leaves them out.
func TestStatusNamesRangesWithoutALeader(t *testing.T) {
	for _, of := range [][]int{{2}, {0, 1, 2, 3}} {
		s := manyAccounts(2)
		for _, i := range of {
			s.Locations[0].Ranges[i].LeaderView = nil
		}
		found := check.Status(s)
		require.NotEmpty(t, found)
		require.Contains(t, found[0].What, "northcentralus: no leader of range")
		require.Contains(t, strings.Join(summary(s), "\n"), "CRITICAL "+found[0].What+"; next: docs/runbooks/range-without-leader.md\n")
	}
}
