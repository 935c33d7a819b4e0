package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
	"antipode/client/check"
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

// Accounts that nobody serves come first, those without a Last Sync Time and those that are late next. What a dead primary has
// is no "live".
func TestStatusHasTheWorstFirst(t *testing.T) {
	s := manyAccounts(61)
	late := 61.0
	s.Accounts[7].Services[1].LagSeconds = &late
	s.Accounts[8].WithoutPrimary = "no location takes its writes"
	s.Accounts[9].Primary, s.Accounts[9].Secondary = "southcentralus", "northcentralus"
	for i := range s.Locations[1].Nodes {
		s.Locations[1].Nodes[i].State = admin.Unreachable
	}
	lines := summary(s)
	require.Equal(t, "health   2 critical: antipodectl check", lines[0])
	require.Equal(t, []string{
		"accountwithalongname0009 southcentralus all primary not serving 0.090s",
		"accountwithalongname0008 northcentralus all without a primary unknown",
		"accountwithalongname0007 northcentralus all live 1m1s",
	}, accountLines(lines)[:3])
}

// A location that leads nothing does not run, its accounts are not live, and a screen still has the alarms above them.
func TestStatusWithoutLeadersFitsAScreen(t *testing.T) {
	s := manyAccounts(61)
	for i := range s.Locations[0].Ranges {
		s.Locations[0].Ranges[i].LeaderView = nil
	}
	lines := summary(s)
	require.Contains(t, strings.Join(lines, "\n"), "northcentralus  no leaders  3 of 3  0 of 4")
	rows := accountLines(lines)
	require.Len(t, rows, troubledMost)
	require.Equal(t, "accountwithalongname0060 northcentralus all primary not serving 0.600s", rows[0])
	require.Equal(t, "and 51 more that are not well: antipodectl status --all", lines[len(lines)-1])
	require.LessOrEqual(t, rowsOfScreen(strings.Join(lines, "\n")), screenRows)
	var b strings.Builder
	writeStatus(&b, s, statusView{all: true})
	require.Regexp(t, "accountwithalongname0060 +northcentralus +southcentralus +blob +primary not serving", b.String())
}

// A node that is down at each location, with all ranges short of a replica and all accounts late, still leaves room for the
// accounts that are furthest behind.
func TestStatusOfMuchThatIsUnwellFitsAScreen(t *testing.T) {
	s := manyAccounts(200)
	for i := range s.Locations {
		l := &s.Locations[i]
		l.Nodes[2].State = admin.Unreachable
		for j := range l.Ranges {
			l.Ranges[j].InSyncReplicas = 2
		}
	}
	for i := range s.Accounts {
		late := 61 + float64(i)
		s.Accounts[i].Services[0].LagSeconds = &late
	}
	lines := summary(s)
	require.LessOrEqual(t, rowsOfScreen(strings.Join(lines, "\n")), screenRows)
	require.Contains(t, lines, "and 5 more that are not well: antipodectl status --all")
	rows := accountLines(lines)
	require.Len(t, rows, 4)
	require.Equal(t, "accountwithalongname0199 northcentralus all live 4m20s", rows[0])
	require.Equal(t, "and 196 more that are not well: antipodectl status --all", lines[len(lines)-1])
}

func accountLines(lines []string) (rows []string) {
	for _, line := range lines {
		if strings.HasPrefix(line, "account") {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
	}
	return rows
}

// The table of nodes fits 80 columns, whatever state they are in, and says what is wrong.
func TestNodesFitAScreen(t *testing.T) {
	ahead, lease, none := -0.2504, 8.9, 0.0
	now := time.Unix(1_800_000_000, 0)
	var b strings.Builder
	writeNodes(&b, nodeList{at: now, Nodes: []admin.Node{
		{
			Name: "southcentralus-1", State: admin.Running, Version: "v0.12.3+dirty", UptimeSeconds: 300 * 86400, DiskBytes: 1 << 50, DiskFreeBytes: 1023<<40 - 1<<36,
			ClockAheadSeconds: &ahead, CertificateEnds: admin.Time{Time: now.Add(89*24*time.Hour + time.Hour)}, LeaseSeconds: &lease,
		},
		{
			Name: "southcentralus-2", State: admin.Running, Version: "devel", UptimeSeconds: 3599, DiskBytes: 1, DiskFull: true, ClockAheadSeconds: &ahead,
			ClockOff: "its clock is 10m0s ahead", CertificateEnds: admin.Time{Time: now.Add(-time.Hour)}, LeaseSeconds: &none,
		},
		{Name: "southcentralus-3", State: admin.Unreachable},
	}})
	require.Equal(t, `NODE              STATE        VERSION  UP    DISK FREE   CLOCK    CERT   LEASE
southcentralus-1  running      v0.12.3  300d  1022.9 TiB  -0.250s  89d    8s
southcentralus-2  running      devel    59m   full        off      ended  none
southcentralus-3  unreachable  -        -     -           -        -      -
`, b.String())
	for _, line := range strings.Split(b.String(), "\n") {
		require.LessOrEqual(t, len(line), 80)
	}
}

// Lines that ask for somebody are coloured, on a terminal alone, and not against NO_COLOR.
func TestColours(t *testing.T) {
	const text = "health   1 critical: antipodectl check\nWARNING  north-1 is out\nWARNING  one rack\nthe CRITICAL word\n"
	require.Equal(t, text, string((&tool{}).paint(text)))
	require.Equal(t, "\x1b[31mhealth   1 critical: antipodectl check\x1b[0m\n\x1b[33mWARNING  north-1 is out\x1b[0m\n\x1b[33mWARNING  one rack\x1b[0m\nthe CRITICAL word\n",
		string((&tool{colour: true}).paint(text)))
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // A character device, as a terminal is.
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	env := func(of map[string]string) func(string) string { return func(name string) string { return of[name] } }
	require.True(t, coloured(device, env(nil)))
	require.False(t, coloured(device, env(map[string]string{"NO_COLOR": "1"})))
	require.False(t, coloured(device, env(map[string]string{"TERM": "dumb"})))
	require.False(t, coloured(&strings.Builder{}, env(nil)), "a pipe")
}

// An account whose secondary is dead is not among those that are well, and what its dead location has is not known. Where no
// account has a copy that is known here, none is said to be 0 s behind.
func TestStatusDoesNotCallADeadSecondaryWell(t *testing.T) {
	s := manyAccounts(30)
	for i := range s.Accounts {
		s.Accounts[i].Services = nil
	}
	one := s
	one.Locations = s.Locations[:1]
	lines := summary(one)
	require.Equal(t, "and 25 more without a copy here: antipodectl status --all", lines[len(lines)-1])
	s.Accounts[7].Secondary = ""
	s.Locations[1] = admin.Location{Name: "southcentralus", State: admin.Unreachable}
	text := strings.Join(summary(s), "\n")
	require.Contains(t, text, "\nsouthcentralus  unreachable  0 of 0  unknown  unknown   unknown ")
	require.Contains(t, text, "accountwithalongname0000  northcentralus  all      secondary not serving  unknown\n")
	require.Contains(t, text, "\nand 1 more without a copy here: antipodectl status --all")
	require.Contains(t, text, "\nand 19 more that are not well: antipodectl status --all")
	require.NotContains(t, text, "that are well")
}

// A status shows the severities of check beside its tables: a location that is down is critical, a node that is down
// is a warning.
func TestStatusIsAsBadAsCheck(t *testing.T) {
	s := manyAccounts(3)
	s.Locations[0] = admin.Location{Name: "northcentralus", State: admin.Unreachable, Warnings: []string{"no node of location northcentralus answers"}}
	s.Locations[1].Nodes[2].State = admin.Unreachable
	text := strings.Join(summary(s), "\n")
	require.Contains(t, text, "\nCRITICAL northcentralus does not answer; it is the primary of 3 accounts; next: antipodectl failover check --location northcentralus\n")
	require.Contains(t, text, "\nWARNING  southcentralus-3 does not answer: see its process, and its log\n")
	require.NotContains(t, text, "WARNING  northcentralus")
	for _, f := range check.Status(s) {
		line := strings.Contains(f.What, "northcentralus does not answer")
		require.Equal(t, line, f.Severity == check.Critical, f.What)
	}
}

// An account with two primaries comes first, and one that nothing is replicated of is not among those that are well.
func TestStatusDoesNotCallAnAccountWithoutReplicationWell(t *testing.T) {
	s := manyAccounts(9)
	s.Accounts[3].Services = nil
	s.Accounts[5].Services[1].Status, s.Accounts[5].Services[1].Reason = admin.Unavailable, "not-heard"
	a := &s.Accounts[7]
	a.Primary, a.Secondary, a.FormerEpoch = "southcentralus", "northcentralus", &admin.Epoch{Number: 6, Location: "northcentralus"}
	s.Locations[0].Epochs = &admin.Epochs{Confirmed: true, By: "override"}
	lines := summary(s)
	rows := accountLines(lines)
	require.Equal(t, "accountwithalongname0007 southcentralus all two primaries unknown", rows[0])
	require.Contains(t, rows[1:5], "accountwithalongname0003 northcentralus all not replicated unknown")
	require.Contains(t, rows[1:5], "accountwithalongname0005 northcentralus queue unavailable: not-heard 0.050s")
	require.Equal(t, "and 3 more that are well, 0.020s behind at most: antipodectl status --all", lines[len(lines)-1])
	require.Contains(t, strings.Join(lines, "\n"), "\nCRITICAL 1 account with two primaries: southcentralus, and northcentralus, which ")
}

// After a failover of a location many accounts have the same under way: a screen shows the first, in one line each, and counts
// the others; all of them on request.
func TestStatusCountsWhatIsUnderWay(t *testing.T) {
	s := manyAccounts(141)
	for i := range s.Accounts {
		s.Accounts[i].Operation, s.Accounts[i].OperationWaits = "a failover", "node 1: not reachable\nnode 2: not reachable"
	}
	lines := summary(s)
	require.Equal(t, "and 138 more: antipodectl account list", lines[len(lines)-1])
	row := "accountwithalongname0002: a failover; it cannot go on now: node 1: not reachable; node 2: not reachable"
	require.Equal(t, row, lines[len(lines)-2])
	require.Equal(t, "accountwithalongname0002: a failover; it cannot go on now: node 1: not\n  reachable; node 2: not reachable", wrapped(row, screenColumns))
	var b strings.Builder
	writeStatus(&b, s, statusView{all: true})
	require.NotContains(t, b.String(), "more: antipodectl account list")
	require.Contains(t, b.String(), "accountwithalongname0140: a failover; it")
}

// A check at the port of one location does not pass for one of both.
func TestCheckNamesTheLocationThatThePortDoesNotShow(t *testing.T) {
	s := manyAccounts(3)
	s.Locations[0].Peer, s.Locations[1].Peer = "southcentralus", "northcentralus"
	shown := func() string {
		var b strings.Builder
		writeChecked(&b, s, checked{Findings: check.Status(s)})
		return b.String()
	}
	require.Equal(t, "all is well: 2 locations, 6 nodes, 3 accounts\n", shown())
	s.Locations = s.Locations[:1]
	const unseen = "southcentralus is not looked at: this port does not show it; ask a gateway\n"
	require.Equal(t, "all is well: 1 location, 3 nodes, 3 accounts\n"+unseen, shown())
	s.Locations[0].Nodes[0].State = admin.Unreachable
	require.True(t, strings.HasSuffix(shown(), unseen), shown())
}

// An alarm of streams ends an hour after the last one of its reason: it has a count alone then, unless all is asked for.
func TestAlarmsEnd(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	raised := func(d time.Duration) admin.Time { return admin.Time{Time: began.Add(d)} }
	s := admin.Status{
		Process: admin.Process{StartedAt: admin.Time{Time: began}, UptimeSeconds: (2 * time.Hour).Seconds()},
		Alarms:  map[string]uint64{"silence": 4, "gap": 2, "fork": 0},
		Locations: []admin.Location{
			{AlarmsRaised: map[string]admin.Time{"silence": raised(time.Minute), "gap": raised(time.Minute)}},
			{AlarmsRaised: map[string]admin.Time{"gap": raised(61 * time.Minute)}},
		},
	}
	require.Equal(t, "gap 2 (last 2026-11-21T13:01:00Z); 4 more than an hour ago: antipodectl status --all", alarms(s, false))
	require.Equal(t, "gap 2 (last 2026-11-21T13:01:00Z), silence 4 (last 2026-11-21T12:01:00Z)", alarms(s, true))
	s.Process.UptimeSeconds *= 2
	require.Equal(t, "none; 6 more than an hour ago: antipodectl status --all", alarms(s, false))
	s.Locations = nil
	require.Equal(t, "gap 2, silence 4", alarms(s, false), "a server of before does not say when")
}
