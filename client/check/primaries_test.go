package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// forked has accounts whose former primary, the north, does not know that they are at the south.
func forked(s *admin.Status, of ...int) {
	for _, i := range of {
		a := &s.Accounts[i]
		a.Primary, a.Secondary, a.Epoch, a.FailoverPhase = "south", "north", admin.Epoch{Number: 7, Location: "south"}, admin.FailoverTaken
		a.Operation, a.OperationWaits = "the failover to this location: it is the primary, and the other one does not know yet", "the link is cut"
		a.FormerEpoch, a.Services = &admin.Epoch{Number: 6, Location: "north"}, nil
	}
}

// R20, R21: an account of which both locations take writes is critical, in a check and beside the tables of a status, whatever
// lets the former primary take them. It is not found where the former one is known to refuse them, or is off.
func TestR20TwoPrimaries(t *testing.T) {
	twice := Finding{
		Critical, "2 accounts with two primaries: south, and north, which does not know of the failover and takes writes that south will not have: acct1, acct4",
		"stop the processes of north until it reaches south: docs/runbooks/unplanned-failover.md",
	}
	healed := twice
	healed.Next = "antipodectl link heal"
	for name, c := range map[string]struct {
		breaks func(s *admin.Status)
		want   *Finding
	}{
		"no failover":     {func(s *admin.Status) { s.Accounts[1].FormerEpoch, s.Accounts[4].FormerEpoch = nil, nil }, nil},
		"by an exchange":  {func(*admin.Status) {}, &twice},
		"by an override":  {func(s *admin.Status) { s.Locations[0].Epochs.By = "override" }, &twice},
		"over a cut link": {func(s *admin.Status) { s.Link.State = admin.LinkCut }, &healed},
		"at some of its nodes": {func(s *admin.Status) {
			s.Locations[0].Epochs = &admin.Epochs{UnconfirmedNodes: []string{"north-1"}}
		}, &twice},
		"at none of its nodes": {func(s *admin.Status) {
			s.Locations[0].Epochs = &admin.Epochs{UnconfirmedNodes: []string{"north-1", "north-2", "north-3"}}
		}, nil},
		"it refuses them": {func(s *admin.Status) {
			s.Locations[0].Epochs.Refused = []admin.RefusedEpoch{{Account: "acct1"}, {Account: "acct4"}}
		}, nil},
		"it is off":         {func(s *admin.Status) { s.Locations[0] = admin.Location{Name: "north", State: admin.Unreachable} }, nil},
		"it has no leaders": {func(s *admin.Status) { leaderless(&s.Locations[0], 0, 1, 2, 3) }, nil},
	} {
		s := well()
		forked(&s, 1, 4)
		c.breaks(&s)
		for what, found := range map[string][]Finding{"check": Status(s), "status": Refusals(s)} {
			if c.want == nil {
				for _, f := range found {
					require.NotContains(t, f.What, "two primaries", "%s %s", name, what)
				}
				continue
			}
			require.Contains(t, found, *c.want, "%s %s", name, what)
			for _, f := range found {
				require.NotContains(t, f.What, "cannot go on", "%s %s: it is found once", name, what)
			}
		}
	}
}

// The primary of an account refuses its writes where a range has no leader, also those of an account without a copy; an election
// ends by itself, and that of the other location is none of it.
func TestWritesAreRefusedWithoutALeader(t *testing.T) {
	s := well()
	leaderless(&s.Locations[1], 0, 1)
	require.Empty(t, RefusesWrites(s, "acct0"))
	leaderless(&s.Locations[0], 0, 3)
	const want = "refused at north, and reads too, without a leader of range 1 catalog, 4 table: antipodectl check"
	require.Equal(t, want, RefusesWrites(s, "acct0"))
	s.Accounts[0].Secondary, s.Locations[0].Epochs = "", nil
	require.Equal(t, want, RefusesWrites(s, "acct0"))
	electing := true
	for i := range s.Locations[0].Ranges {
		s.Locations[0].Ranges[i].Electing = &electing
	}
	require.Empty(t, RefusesWrites(s, "acct0"))
}
