package check

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
)

// well is the status of a deployment with nothing wrong.
func well() admin.Status {
	lag := 0.4
	s := admin.Status{Link: admin.Link{State: admin.LinkUp}}
	for _, name := range []geo.Location{"north", "south"} {
		l := admin.Location{Name: name, State: admin.Running, Epochs: &admin.Epochs{Confirmed: true, By: "exchange"}}
		var standings []admin.Standing
		for id := geo.NodeID(1); id <= 3; id++ {
			node := admin.NodeName(name, id)
			l.Nodes = append(l.Nodes, admin.Node{Name: node, State: admin.Running})
			standings = append(standings, admin.Standing{Node: node, InSync: true})
		}
		for i, service := range []string{"catalog", "blob", "queue", "table"} {
			l.Ranges = append(l.Ranges, admin.Range{
				Range: geo.RangeID(i + 1), Service: service, ConfiguredReplicas: 3,
				LeaderView: &admin.LeaderView{Leader: admin.NodeName(name, 1), InSyncReplicas: 3, Standings: append([]admin.Standing(nil), standings...)},
			})
		}
		s.Locations = append(s.Locations, l)
	}
	for i := range 7 {
		a := admin.AccountStatus{Account: admin.Account{Name: geo.Account(fmt.Sprintf("acct%d", i)), Redundancy: "RA-GRS", Primary: "north", Secondary: "south"}}
		for _, service := range []string{"blob", "queue", "table"} {
			a.Services = append(a.Services, admin.ServiceStatus{Service: service, Status: admin.Live, LagSeconds: &lag})
		}
		s.Accounts = append(s.Accounts, a)
	}
	return s
}

// stands has services of an account without a Last Sync Time.
func stands(s *admin.Status, account int, reason string) {
	for i := range s.Accounts[account].Services {
		s.Accounts[account].Services[i] = admin.ServiceStatus{Service: s.Accounts[account].Services[i].Service, Status: admin.Unavailable, Reason: reason}
	}
}

// stop has an operator have stopped a location.
func stop(l *admin.Location) {
	l.State = admin.Stopped
	for i := range l.Nodes {
		l.Nodes[i].State = admin.Stopped
	}
}

// leaderless has a range without a leader.
func leaderless(l *admin.Location, of ...int) {
	for _, i := range of {
		l.Ranges[i].LeaderView = nil
	}
}

// Each cause is one finding, with what to do next, whatever else follows from it; worst first. Nothing is found where all is
// well.
func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(s *admin.Status)
		want   []Finding
	}{
		"nothing": {func(*admin.Status) {}, nil},
		"a location is down": {func(s *admin.Status) {
			for i := range s.Locations[0].Nodes {
				s.Locations[0].Nodes[i].State = admin.Unreachable
			}
			leaderless(&s.Locations[0], 0, 1, 2, 3)
			for i := range s.Accounts {
				stands(s, i, "not-heard")
			}
		}, []Finding{{Critical, "north is down: none of its 3 nodes serves; it is the primary of 7 accounts", "antipodectl failover check --location north"}}},
		"a node is stopped": {func(s *admin.Status) {
			s.Locations[0].Nodes[2].State = admin.Stopped
			for _, r := range s.Locations[0].Ranges {
				r.InSyncReplicas, r.Standings[2].InSync = 2, false
			}
		}, []Finding{{Warning, "north: 1 of 3 nodes is stopped: north-3", "antipodectl node start north-3"}}},
		"a location is stopped": {func(s *admin.Status) { stop(&s.Locations[0]) }, []Finding{
			{Critical, "north is stopped: none of its 3 nodes serves; it is the primary of 7 accounts", "antipodectl location start north"},
		}},
		"a node of a location that is stopped does not answer": {func(s *admin.Status) {
			stop(&s.Locations[1])
			s.Locations[1].Nodes[1].State = admin.Unreachable
		}, []Finding{{Critical, "south is down: none of its 3 nodes serves; nothing is replicated to it, for 7 accounts", "docs/runbooks/target-down.md"}}},
		"a location does not answer": {func(s *admin.Status) {
			s.Locations[1] = admin.Location{Name: "south", State: admin.Unreachable, Warnings: []string{"no route"}}
			s.Accounts[0].Services = nil
		}, []Finding{{Critical, "south does not answer; nothing is replicated to it, for 7 accounts", "docs/runbooks/target-down.md"}}},
		"a location is down, and no account of it has a copy": {func(s *admin.Status) {
			s.Locations[0] = admin.Location{Name: "north", State: admin.Unreachable}
			for i := range s.Accounts {
				s.Accounts[i].Secondary, s.Accounts[i].Services = "", nil
			}
		}, []Finding{{Critical, "north does not answer; it is the primary of 7 accounts, 7 of them without a copy", "docs/runbooks/target-down.md"}}},
		"a node is away": {func(s *admin.Status) {
			s.Locations[0].Nodes[2].State = admin.Unreachable
			for _, r := range s.Locations[0].Ranges {
				r.InSyncReplicas, r.Standings[2].InSync = 2, false
			}
		}, []Finding{{Warning, "north: 1 of 3 nodes do not answer: north-3", "docs/runbooks/target-down.md"}}},
		"a node is out of service, and ranges have no leader": {func(s *admin.Status) {
			s.Locations[1].Nodes[0].State, s.Locations[1].Nodes[0].OutOfService = admin.Failed, "its disk returned an error: replace it"
			leaderless(&s.Locations[1], 1, 3)
		}, []Finding{
			{Critical, "south: no leader of range 2 blob, 4 table: requests for it are answered 503", "docs/runbooks/range-without-leader.md"},
			{Warning, "south-1 is out of service: its disk returned an error: replace it", "docs/runbooks/node-out-of-service.md"},
		}},
		"the catalog has no leader": {func(s *admin.Status) {
			leaderless(&s.Locations[0], 0)
			s.Locations[0].Warnings = []string{admin.WarnsOfCatalog + " at node north-3: accounts may be missing here"}
		}, []Finding{
			{Critical, "north: no leader of range 1 catalog: requests for it are answered 503", "docs/runbooks/range-without-leader.md"},
			{Warning, "north: the catalog does not answer at node north-3: accounts may be missing here", "docs/runbooks/range-without-leader.md"},
		}},
		"a replica is behind": {func(s *admin.Status) {
			v := s.Locations[0].Ranges[3].LeaderView
			v.InSyncReplicas, v.Standings[1].InSync = 2, false
		}, []Finding{{Warning, "north: replicas are not in sync, on north-2: range 4 table", "antipodectl node wait-in-sync north-2"}}},
		"a disk is full": {func(s *admin.Status) { s.Locations[1].Nodes[1].DiskFull = true }, []Finding{
			{Warning, "south: disk full on south-2: no writes there; reads go on", "docs/runbooks/disk-nearly-full.md"},
		}},
		"two disks are full": {func(s *admin.Status) {
			s.Locations[1].Nodes[1].DiskFull, s.Locations[1].Nodes[2].DiskFull = true, true
		}, []Finding{{Critical, "south: disk full on south-2, south-3: no writes there; reads go on", "docs/runbooks/disk-nearly-full.md"}}},
		"a disk of a pair is full": {func(s *admin.Status) { s.Locations[1].Peer, s.Locations[1].Nodes[1].DiskFull = "north", true }, []Finding{
			{Critical, "south: disk full on south-2: no writes there; reads go on; nothing is replicated from north", "docs/runbooks/disk-nearly-full.md"},
		}},
		"a disk of a location with no copies is full": {func(s *admin.Status) { s.Locations[0].Peer, s.Locations[0].Nodes[1].DiskFull = "south", true }, []Finding{
			{Warning, "north: disk full on north-2: no writes there; reads go on; nothing is replicated from south", "docs/runbooks/disk-nearly-full.md"},
		}},
		"ranges elect a leader, and one has none": {func(s *admin.Status) {
			soon, never := true, false
			leaderless(&s.Locations[1], 1, 2, 3)
			s.Locations[1].Ranges[1].Electing, s.Locations[1].Ranges[2].Electing = &soon, &never
		}, []Finding{
			{Critical, "south: no leader of range 3 queue, 4 table: requests for it are answered 503", "docs/runbooks/range-without-leader.md"},
			{Warning, "south: a leader is being elected for range 2 blob: requests for it wait", "wait some seconds; if it lasts: docs/runbooks/range-without-leader.md"},
		}},
		"the secondary runs an earlier version": {func(s *admin.Status) { stands(s, 3, "version") }, []Finding{
			{Critical, "1 account without a Last Sync Time: the secondary runs an earlier version: upgrade it: acct3", "docs/upgrade.md"},
		}},
		"a failover waits for the witness": {func(s *admin.Status) {
			a := &s.Accounts[1].Account
			a.FailoverPhase, a.Operation, a.OperationWaits = admin.FailoverClaiming, "an unplanned failover", "witness: connection refused"
		}, []Finding{{
			Warning, "account acct1 cannot go on with an unplanned failover: witness: connection refused",
			"if north is off and stays off: antipodectl failover unplanned acct1 --yes --without-witness; else: antipodectl failover end acct1",
		}}},
		"the replicas on a full disk are behind": {func(s *admin.Status) {
			s.Locations[1].Nodes[1].DiskFull = true
			for _, r := range s.Locations[1].Ranges {
				r.InSyncReplicas, r.Standings[1].InSync = 2, false
			}
		}, []Finding{{Warning, "south: disk full on south-2: no writes there; reads go on", "docs/runbooks/disk-nearly-full.md"}}},
		"the replicas behind a clock that is off are behind": {func(s *admin.Status) {
			s.Locations[0].Nodes[2].ClockOff = "it leapt"
			v := s.Locations[0].Ranges[1].LeaderView
			v.InSyncReplicas, v.Standings[2].InSync = 2, false
		}, []Finding{{Warning, "north: a clock is not believed, so the node leads no writes: north-3 (it leapt)", "docs/runbooks/clock-skew.md"}}},
		"two clocks are off": {func(s *admin.Status) {
			s.Locations[0].Nodes[0].ClockOff, s.Locations[0].Nodes[1].ClockOff = "it leapt", "it leapt, too"
		}, []Finding{{Critical, "north: a clock is not believed, so the node leads no writes: north-1 (it leapt); north-2 (it leapt, too)", "docs/runbooks/clock-skew.md"}}},
		"a clock is off": {func(s *admin.Status) { s.Locations[0].Nodes[0].ClockOff = "its clock is 10m0s ahead of that of node 2" }, []Finding{
			{Warning, "north: a clock is not believed, so the node leads no writes: north-1 (its clock is 10m0s ahead of that of node 2)", "docs/runbooks/clock-skew.md"},
		}},
		"the witness is dead": {func(s *admin.Status) {
			for i := range s.Locations {
				l := &s.Locations[i]
				l.Epochs = &admin.Epochs{Witness: true, WitnessAddress: "third:10300", Waiting: "connection refused"}
				for _, n := range l.Nodes {
					l.Epochs.UnconfirmedNodes = append(l.Epochs.UnconfirmedNodes, n.Name)
					l.Epochs.WaitingNodes = append(l.Epochs.WaitingNodes, n.Name)
					l.Warnings = append(l.Warnings, admin.WarnsOfEpochs+" at "+n.Name+": writes are refused") // Of an earlier version.
				}
			}
		}, []Finding{
			{
				Critical,
				"the witness third:10300 does not answer: writes of accounts that have a copy are refused at north, south; " +
					"reads, and accounts without a copy, go on (connection refused)",
				"start the witness again (docs/runbooks/witness.md); if it will not be back soon: " +
					"antipodectl location confirm north --not-promoted, antipodectl location confirm south --not-promoted",
			},
		}},
		"one node does not reach the witness": {func(s *admin.Status) {
			for i := range s.Locations {
				s.Locations[i].Epochs = &admin.Epochs{Confirmed: true, By: "witness", Witness: true}
			}
			s.Locations[0].Epochs = &admin.Epochs{
				Witness: true, Waiting: "timeout", UnconfirmedNodes: []string{"north-2"}, WaitingNodes: []string{"north-3", "north-2"},
			}
		}, []Finding{{
			Critical,
			"the witness does not answer north-2, north-3: writes of accounts that have a copy are refused at north-2; " +
				"reads, and accounts without a copy, go on (timeout)",
			"start the witness again (docs/runbooks/witness.md); if it will not be back soon: antipodectl location confirm north --not-promoted",
		}}},
		"the witness is dead, and one lease holds": {func(s *admin.Status) {
			s.Locations[0].Epochs = &admin.Epochs{Confirmed: true, By: "witness", Witness: true, Waiting: "timeout"}
			s.Locations[1].Epochs = &admin.Epochs{Witness: true, Waiting: "timeout"}
		}, []Finding{
			{
				Critical,
				"the witness does not answer: writes of accounts that have a copy are refused at south; reads, and accounts without a copy, go on; " +
					"north: a lease still holds, and once it ends writes of accounts that have a copy are refused (timeout)",
				"start the witness again (docs/runbooks/witness.md); if it will not be back soon: antipodectl location confirm south --not-promoted",
			},
		}},
		"the witness is dead, and an operator has confirmed one location": {func(s *admin.Status) {
			s.Locations[0].Epochs = &admin.Epochs{Confirmed: true, By: "override", Witness: true, Waiting: "timeout"}
			s.Locations[1].Epochs = &admin.Epochs{Confirmed: true, By: "witness", Witness: true, Waiting: "timeout"}
		}, []Finding{{
			Warning,
			"the witness does not answer; south: a lease still holds, and once it ends writes of accounts that have a copy are refused; " +
				"north: writes go on without a lease, by an operator's word (timeout)",
			"start the witness again: docs/runbooks/witness.md",
		}}},
		"the other location does not answer": {func(s *admin.Status) { s.Locations[0].Epochs = &admin.Epochs{Waiting: "timeout"} }, []Finding{
			{Critical, "north refuses writes of accounts that have a copy: the other location does not answer (timeout)", "docs/runbooks/epochs-unconfirmed.md"},
		}},
		"the other location does not answer, by several lines": {func(s *admin.Status) {
			s.Locations[0].Epochs = &admin.Epochs{Waiting: "south-1: timeout\nsouth-2: timeout"}
		}, []Finding{
			{Critical, "north refuses writes of accounts that have a copy: the other location does not answer (south-1: timeout; south-2: timeout)", "docs/runbooks/epochs-unconfirmed.md"},
		}},
		"a lease goes on": {func(s *admin.Status) {
			s.Locations[0].Epochs = &admin.Epochs{Confirmed: true, By: "witness", Witness: true, Waiting: "timeout"}
		}, []Finding{{
			Warning, "the witness does not answer north; north: a lease still holds, and once it ends writes of accounts that have a copy are refused (timeout)",
			"start the witness again: docs/runbooks/witness.md",
		}}},
		"epochs are passed": {func(s *admin.Status) {
			s.Accounts[2].Primary, s.Accounts[2].Secondary = "south", "north"
			s.Accounts[3].FailoverPhase, s.Accounts[4].FailoverPhase = admin.FailoverClaiming, admin.FailoverApplying
			s.Locations[0].Epochs.Refused = []admin.RefusedEpoch{{Account: "acct2"}, {Account: "acct3"}, {Account: "acct5"}}
		}, []Finding{
			{Warning, "north refuses writes of 1 account: the other location has become the primary: acct2", "antipodectl account list"},
			{Warning, "north refuses writes of 1 account: an unplanned failover to the other location is under way: acct3", "antipodectl account show acct3"},
			{Warning, "north refuses writes of 1 account: the other location has become the primary, or is about to: acct5", "antipodectl account show acct5"},
			{Warning, "an unplanned failover of 1 account from north to south is under way, applying: acct4", "antipodectl account show acct4"},
		}},
		"accounts are claimed, and their primary is down": {func(s *admin.Status) {
			s.Accounts[2].FailoverPhase, s.Accounts[3].FailoverPhase, s.Accounts[5].FailoverPhase = admin.FailoverClaiming, admin.FailoverClaiming, admin.FailoverThawing
			s.Locations[0] = admin.Location{Name: "north", State: admin.Unreachable}
		}, []Finding{
			{Critical, "north does not answer; it is the primary of 7 accounts", "antipodectl failover check --location north"},
			{Warning, "an unplanned failover of 2 accounts from north to south is under way, claiming: acct2, acct3", "antipodectl account show acct2"},
			{Warning, "an unplanned failover of 1 account from north to south is under way, thawing: acct5", "antipodectl account show acct5"},
		}},
		"the link is cut": {func(s *admin.Status) { s.Link.State = admin.LinkCut }, []Finding{
			{
				Critical, "the link between the locations is cut, by an operator: nothing is replicated, and a failover would lose what is written meanwhile",
				"antipodectl link heal",
			},
		}},
		"a location does not reach the other one": {func(s *admin.Status) {
			s.Locations[0].Peer, s.Locations[1].Peer = "south", "north"
			s.Locations[0].Epochs.PartedSeconds, s.Locations[1].Epochs.PartedSeconds = 10, 10 // The south is no account's primary.
		}, []Finding{
			{
				Critical, "north does not reach south: nothing of 7 accounts is replicated, and a failover would lose what is written meanwhile",
				"antipodectl why acct0",
			},
		}},
		"a location does not reach the other one for a moment": {func(s *admin.Status) {
			s.Locations[0].Peer, s.Locations[0].Epochs.PartedSeconds = "south", 9.9
		}, nil},
		"a location does not reach one that is down": {func(s *admin.Status) {
			s.Locations[0].Peer, s.Locations[0].Epochs.PartedSeconds = "south", 60
			s.Locations[1] = admin.Location{Name: "south", State: admin.Unreachable}
		}, []Finding{{Critical, "south does not answer; nothing is replicated to it, for 7 accounts", "docs/runbooks/target-down.md"}}},
		"a location does not reach the other one over a link that is cut": {func(s *admin.Status) {
			s.Locations[0].Peer, s.Locations[0].Epochs.PartedSeconds, s.Link.State = "south", 60, admin.LinkCut
		}, []Finding{
			{
				Critical, "the link between the locations is cut, by an operator: nothing is replicated, and a failover would lose what is written meanwhile",
				"antipodectl link heal",
			},
		}},
		"the link is delayed": {func(s *admin.Status) { s.Link.State = admin.LinkDelayed }, []Finding{
			{Warning, "the link between the locations is delayed, by an operator", "antipodectl link heal"},
		}},
		"streams are forked, and others wait": {func(s *admin.Status) {
			for i := range 6 {
				stands(s, i, "forked")
			}
			stands(s, 6, "not-heard")
		}, []Finding{
			{Critical, "6 accounts without a Last Sync Time: both locations hold different changes under the same numbers: acct0, acct1, acct2, acct3, acct4 and 1 more", "docs/runbooks/fork.md"},
			{Warning, "1 account without a Last Sync Time: the secondary has not heard of all ranges of the primary: acct6", "antipodectl why acct6"},
		}},
		"a reason of a later server": {func(s *admin.Status) { stands(s, 3, "tides") }, []Finding{
			{Warning, "1 account without a Last Sync Time: tides: acct3", "antipodectl why acct3"},
		}},
		"a bootstrap": {func(s *admin.Status) { stands(s, 3, "bootstrap") }, nil},
		"a secondary is late": {func(s *admin.Status) {
			lag := 61.0
			s.Accounts[2].Services[1].LagSeconds = &lag
		}, []Finding{{Warning, "1 account more than 1m0s behind: acct2", "antipodectl why acct2"}}},
		"an account has no primary": {func(s *admin.Status) {
			s.Accounts[1].WithoutPrimary = "no location takes its writes"
			stands(s, 1, "not-heard")
		}, []Finding{{Critical, "account acct1: no location takes its writes", "docs/runbooks/account-without-primary.md"}}},
		"failovers wait, and call themselves this location": {func(s *admin.Status) {
			s.Accounts[1].Operation, s.Accounts[1].OperationWaits, s.Accounts[1].FailoverPhase = "an unplanned failover to this location", "no witness", admin.FailoverApplying
			s.Accounts[2].Operation, s.Accounts[2].OperationWaits, s.Accounts[2].FailoverPhase = "the failover to this location", "refused", admin.FailoverTaken
		}, []Finding{
			{Warning, "account acct1 cannot go on with an unplanned failover to south: no witness", "antipodectl account show acct1"},
			{Warning, "account acct2 cannot go on with the failover to north: refused", "antipodectl account show acct2"},
		}},
		"an operation waits": {func(s *admin.Status) {
			s.Accounts[1].Operation, s.Accounts[1].OperationWaits = "a planned failover to south", "the link is cut"
		}, []Finding{{Warning, "account acct1 cannot go on with a planned failover to south: the link is cut", "antipodectl account show acct1"}}},
		"operations wait for the same": {func(s *admin.Status) {
			for i := range s.Accounts {
				s.Accounts[i].Operation, s.Accounts[i].OperationWaits = "a planned failover to south", "the link is cut"
			}
			s.Accounts[2].OperationWaits = "row 02031234: malformed block"
		}, []Finding{
			{
				Warning, "6 accounts (acct0, acct1, acct3, acct4, acct5 and 1 more) cannot go on with a planned failover to south: the link is cut",
				"antipodectl account show acct0 (and so for the other 5)",
			},
			{
				Warning, "account acct2 cannot go on with a planned failover to south: row 02031234: malformed block",
				"antipodectl account show acct2",
			},
		}},
		"a location is down, and accounts have left it": {func(s *admin.Status) {
			s.Locations[0] = admin.Location{Name: "north", State: admin.Unreachable}
			for i := range s.Accounts {
				a := &s.Accounts[i].Account
				a.Primary, a.Secondary, a.FailoverPhase = "south", "north", admin.FailoverTaken
				a.Operation, a.OperationWaits = "the failover: the other one does not know yet", "not reachable"
			}
			s.Accounts[4].FailoverPhase = admin.FailoverWithdrawing
		}, []Finding{
			{Critical, "north does not answer; nothing is replicated to it, for 7 accounts", "docs/runbooks/target-down.md"},
			{
				Warning, "account acct4 cannot go on with the failover: the other one does not know yet: not reachable",
				"start the witness again (docs/runbooks/witness.md); if south is off and stays off: " +
					"antipodectl failover unplanned acct4 --yes --without-witness",
			},
		}},
		"changes wait for a location that the port does not show": {func(s *admin.Status) {
			s.Locations, s.Locations[0].Peer = s.Locations[:1], "south"
			for i := range s.Accounts {
				s.Accounts[i].Services = nil
			}
			s.Locations[0].Ranges[3].BacklogAgeSeconds = 61
		}, []Finding{
			{Warning, "north: changes have waited more than 1m0s for south, which this port does not show", "docs/runbooks/last-sync-time-behind.md"},
		}},
		"changes wait for a location that is not reached and that the port does not show": {func(s *admin.Status) {
			s.Locations, s.Locations[0].Peer = s.Locations[:1], "south"
			s.Locations[0].Ranges[3].BacklogAgeSeconds, s.Locations[0].Epochs.PartedSeconds = 61, 61
		}, []Finding{
			{
				Critical, "north does not reach south: nothing of 7 accounts is replicated, and a failover would lose what is written meanwhile",
				"antipodectl why acct0",
			},
		}},
		"changes wait for a location that the port shows": {func(s *admin.Status) {
			s.Locations[0].Peer, s.Locations[1].Peer = "south", "north"
			s.Locations[0].Ranges[3].BacklogAgeSeconds = 61
		}, nil},
		"a warning": {func(s *admin.Status) { s.Locations[0].Warnings = []string{"all nodes are in one fault domain"} }, []Finding{
			{Warning, "north: all nodes are in one fault domain", ""},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := well()
			c.breaks(&s)
			got := Status(s)
			require.Equal(t, c.want, got)
			switch {
			case len(got) == 0:
				require.Empty(t, Worst(got))
			default:
				require.Equal(t, got[0].Severity, Worst(got))
			}
		})
	}
}
