package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/check"
)

// The account that is furthest behind is shown where warnings leave no room for accounts, once it is behind by more than some seconds.
//
// Capability: Operation: What operators read while something is broken.
func TestStatusShowsWhatFallsBehind(t *testing.T) {
	for lag, shown := range map[float64]bool{31.5: true, 0.5: false} {
		s := manyAccounts(6)
		for i := range 30 {
			s.Locations[0].Warnings = append(s.Locations[0].Warnings, strings.Repeat("w", i+1))
		}
		for i := range s.Accounts[3].Services {
			s.Accounts[3].Services[i].LagSeconds = &lag
		}
		rows := strings.Join(summary(s), "\n")
		require.Equal(t, shown, strings.Contains(rows, "\naccountwithalongname0003  northcentralus  all"), rows)
		require.Equal(t, shown, strings.Contains(rows, "and 5 more that are well, 0.050s behind at most"), rows)
	}
}

// A status has what check finds critical about ranges without a leader, also where its table of ranges leaves them out.
//
// Capability: Operation: What operators read while something is broken.
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
