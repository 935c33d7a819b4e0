package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/geo"
)

// manyAccounts is the status of two locations of three nodes with nothing wrong, and so many accounts.
func manyAccounts(n int) admin.Status {
	s := admin.Status{Process: admin.Process{PID: 4242, UptimeSeconds: 246, StartedAt: admin.Time{Time: time.Unix(1_800_000_000, 0)}}, Link: admin.Link{State: admin.LinkUp}}
	for _, name := range []geo.Location{"northcentralus", "southcentralus"} {
		l := admin.Location{Name: name, State: admin.Running, Levels: &admin.Levels{Active: 2, Floor: 2}}
		for id := geo.NodeID(1); id <= 3; id++ {
			l.Nodes = append(l.Nodes, admin.Node{Name: admin.NodeName(name, id), State: admin.Running, Level: 2})
		}
		for i, service := range []string{"catalog", "blob", "queue", "table"} {
			v := &admin.LeaderView{Leader: admin.NodeName(name, 1), InSyncReplicas: 3, BacklogRecords: 1, BacklogBytes: 900_000, BacklogAgeSeconds: 0.4}
			l.Ranges = append(l.Ranges, admin.Range{Range: geo.RangeID(i + 1), Service: service, ConfiguredReplicas: 3, LeaderView: v})
		}
		s.Locations = append(s.Locations, l)
	}
	for i := range n {
		a := admin.AccountStatus{Account: admin.Account{
			Name: geo.Account(fmt.Sprintf("accountwithalongname%04d", i)), Redundancy: "RA-GRS", Primary: "northcentralus", Secondary: "southcentralus",
		}}
		lag := float64(i) / 100
		for _, service := range []string{"blob", "queue", "table"} {
			a.Services = append(a.Services, admin.ServiceStatus{Service: service, Status: admin.Live, LagSeconds: &lag})
		}
		s.Accounts = append(s.Accounts, a)
	}
	return s
}

func summary(s admin.Status) []string {
	var b strings.Builder
	writeStatus(&b, s, statusView{})
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// A status fits a screen of 80 columns and 24 rows, however many accounts there are, as long as all is well; the accounts that
// are furthest behind are shown, and how many others there are.
func TestStatusFitsAScreen(t *testing.T) {
	for _, n := range []int{0, 5, 6, 61, 1000} {
		lines := summary(manyAccounts(n))
		require.LessOrEqual(t, len(lines), 24, n)
		for _, line := range lines {
			require.LessOrEqual(t, len(line), 80, line)
		}
		require.Equal(t, "health   all is well", lines[0])
	}
	lines := summary(manyAccounts(61))
	require.Equal(t, "and 56 more that are well, 0.550s behind at most: antipodectl status --all", lines[len(lines)-1])
	require.Equal(t, "accountwithalongname0060  northcentralus  all      live    0.600s", lines[len(lines)-6])
}

// Accounts that nobody serves come first, those without a Last Sync Time and those that are late next, and none of them is left out.
// What a dead primary has is no "live", and a location that leads nothing does not run.
func TestStatusHasTheWorstFirst(t *testing.T) {
	s := manyAccounts(61)
	late := 61.0
	s.Accounts[7].Services[1].LagSeconds = &late
	s.Accounts[8].WithoutPrimary = "no location takes its writes"
	s.Accounts[9].Primary, s.Accounts[9].Secondary = "southcentralus", "northcentralus"
	for i := range s.Locations[1].Nodes {
		s.Locations[1].Nodes[i].State = admin.Unreachable
	}
	for i := range s.Locations[0].Ranges {
		s.Locations[0].Ranges[i].LeaderView = nil
	}
	lines := summary(s)
	require.Equal(t, "health   3 critical: antipodectl check", lines[0])
	var rows []string
	for _, line := range lines {
		if strings.HasPrefix(line, "account") || strings.HasPrefix(line, "northcentralus  no leaders  3 of 3  0 of 4   0 of 12") {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
	}
	require.Equal(t, []string{
		"northcentralus no leaders 3 of 3 0 of 4 0 of 12 0 B - 2",
		"accountwithalongname0009 southcentralus all live, primary down 0.090s",
		"accountwithalongname0008 northcentralus all without a primary unknown",
		"accountwithalongname0007 northcentralus all live 1m1s",
	}, rows[:4])
}
