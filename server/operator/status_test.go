package operator

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiadmin "antipode/api/admin"
	wire "antipode/client/admin"
	"antipode/geo"
)

const (
	northCentral = geo.Location("northcentralus")
	southCentral = geo.Location("southcentralus")
)

func instant(s string) wire.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return wire.Time{Time: t}
}

// fullStatus has every field and every state once: a leaderless range, a stopped
// and a failed node, a service that lags, one unknown, one unavailable with the last
// value that held.
func fullStatus() wire.Status {
	lag, lagHeld, ahead, lease := 0.213, 75.5, -0.0021, 8.4
	percent, speed, left := 62.6, 1.5e6, 2148.4
	replica := func(leader, inSync bool) wire.Replica {
		return wire.Replica{
			Range: 4, Service: "table", Leader: leader, InSync: inSync, AppliedIndex: 1042,
			DurableIndex: 1000, LogBytes: 81920, ReplayedEntries: 12, LoggedEntriesAtStart: 940,
		}
	}
	return wire.Status{
		Process: wire.Process{PID: 4242, StartedAt: instant("2026-11-21T15:00:00Z"), UptimeSeconds: 245.75},
		Link:    wire.Link{State: wire.LinkDelayed, DelaySeconds: 0.25},
		Locations: []wire.Location{
			{
				Name: northCentral, State: wire.Running, Role: "primary of 1 account, secondary of 1 account",
				Peer: southCentral, Levels: &wire.Levels{Floor: 2, Active: 1},
				Nodes: []wire.Node{
					{
						Name: "northcentralus-1", State: wire.Running, Level: 2, Version: "1.2.3", UptimeSeconds: 245.75,
						DiskBytes: 1 << 40, DiskFreeBytes: 700 << 30, ClockAheadSeconds: &ahead, CertificateEnds: instant("2027-02-19T15:00:00Z"),
						LeaseSeconds: &lease, Replicas: []wire.Replica{replica(true, true)},
					},
					{Name: "northcentralus-2", State: wire.Running, DiskFull: true, SetAsideBytes: 3 << 29, Replicas: []wire.Replica{replica(false, true)}},
					{Name: "northcentralus-3", State: wire.Stopped},
				},
				Ranges: []wire.Range{{Range: 4, Service: "table", ConfiguredReplicas: 3, LeaderView: &wire.LeaderView{
					Standings: []wire.Standing{
						{Node: "northcentralus-1", InSync: true, Since: instant("2026-11-20T09:00:00Z")},
						{Node: "northcentralus-2", InSync: true, Since: instant("2026-11-20T09:00:00Z")},
						{Node: "northcentralus-3", Since: instant("2026-11-20T10:00:02Z")},
					},
					Leader: "northcentralus-1", InSyncReplicas: 2, BacklogRecords: 12, BacklogBytes: 3456, BacklogPayloadBytes: 7890, BacklogAgeSeconds: 0.213,
				}}},
				Alarms: map[string]uint64{"gap": 1}, AlarmsRaised: map[string]wire.Time{"gap": instant("2026-11-21T15:02:07Z")},
			},
			{
				Name: southCentral, State: wire.Running, Role: "primary of 1 account, secondary of 1 account",
				Nodes: []wire.Node{
					{Name: "southcentralus-1", State: wire.Running, Replicas: []wire.Replica{replica(false, false)}},
					{Name: "southcentralus-2", State: wire.Failed, OutOfService: "open state: no such device: mend that, then: antipodectl node start southcentralus-2"},
					{Name: "southcentralus-3", State: wire.Stopped},
				},
				Ranges: []wire.Range{{Range: 4, Service: "table", ConfiguredReplicas: 3}},
				Alarms: map[string]uint64{"gap": 1, "stream_recreated": 1},
			},
		},
		Accounts: []wire.AccountStatus{
			{
				Account: wire.Account{
					Name: "devstoreaccount1", Redundancy: "RA-GRS", Primary: northCentral, Secondary: southCentral,
					Epoch: wire.Epoch{Number: 1, Location: northCentral},
				},
				Services: []wire.ServiceStatus{
					{Service: "blob", Status: wire.Live, LastSyncTime: instant("2026-11-21T15:04:05.1234567Z"), LagSeconds: &lag},
					{Service: "queue", Status: wire.Bootstrap},
					{
						Service: "table", Status: wire.Unavailable, Reason: "forked", LastSyncTime: instant("2026-11-21T15:02:50.2Z"),
						LagSeconds: &lagHeld, StreamsBehind: 3,
					},
				},
			},
			{Account: wire.Account{
				Name: "backwards", Redundancy: "RA-GRS", Primary: southCentral, Secondary: northCentral,
				Epoch: wire.Epoch{Number: 2, Location: southCentral}, FailoverPhase: wire.FailoverClaiming,
				Operation: "an unplanned failover to this location: it waits for the witness", OperationWaits: "the witness does not answer",
			}},
			{Account: wire.Account{
				Name: "filling", Redundancy: "GRS", Primary: southCentral, Secondary: northCentral, Epoch: wire.Epoch{Number: 3, Location: southCentral},
				Operation: "the first copy of its data at the other location (bootstrap)", Copied: &wire.Copied{
					CopySize: wire.CopySize{Rows: 1200, Bytes: 340_000, PayloadBytes: 5 << 30},
					Total:    &wire.CopySize{Rows: 2000, Bytes: 700_000, PayloadBytes: 8 << 30}, Percent: &percent,
					BytesPerSecond: &speed, SecondsLeft: &left, WaitingBytes: 3 << 20,
				},
			}},
			{Account: wire.Account{
				Name: "onlysouth", Redundancy: "LRS", Primary: southCentral, Epoch: wire.Epoch{Number: 1, Location: southCentral},
			}},
		},
	}
}

var rewrite = flag.Bool("rewrite", false, "write the golden files; then read the diff")

// fixed is a process whose status is always the same.
type fixed struct{ *Backend }

func (f fixed) Operations() []apiadmin.Operation {
	all := f.Backend.Operations()
	for i := range all {
		if all[i].Name == wire.CallStatus.Name {
			all[i].Serve = func(_ context.Context, q *apiadmin.Question) (any, error) { return arrange(fullStatus(), q.Scope), nil }
		}
	}
	return all
}

// TestStatusGolden freezes the status document of the process and of one location.
// docs/admin.md shows the first, byte for byte.
func TestStatusGolden(t *testing.T) {
	for file, scope := range map[string]geo.Location{
		"testdata/status.golden.json": "", "testdata/status-north.golden.json": northCentral,
	} {
		w := sent(t, fixed{both().b}, apiadmin.Options{Location: scope}, http.MethodGet, "/v1/status", "")
		require.Equal(t, http.StatusOK, w.Code)
		if *rewrite {
			require.NoError(t, os.WriteFile(file, w.Body.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), w.Body.String())
		require.NotContains(t, w.Body.String(), "null")
	}
	golden, err := os.ReadFile("testdata/status.golden.json")
	require.NoError(t, err)
	doc, err := os.ReadFile("../../docs/admin.md")
	require.NoError(t, err)
	require.True(t, bytes.Contains(doc, append([]byte("```json\n"), golden...)), "docs/admin.md shows another status document")
}

// TestStatusScope: the port of a location says nothing of the other one, and no
// Last Sync Time that it did not compute.
func TestStatusScope(t *testing.T) {
	in := fullStatus()
	s := arrange(in, southCentral)
	require.Len(t, s.Locations, 1)
	require.Equal(t, southCentral, s.Locations[0].Name)
	require.Equal(t, map[string]uint64{"gap": 1, "stream_recreated": 1}, s.Alarms)
	require.Equal(t, map[string]uint64{"gap": 2, "stream_recreated": 1}, arrange(in, "").Alarms)
	var got []string
	for _, a := range s.Accounts {
		got = append(got, fmt.Sprintf("%s %d services", a.Name, len(a.Services)))
	}
	require.Equal(t, []string{"backwards 0 services", "devstoreaccount1 3 services", "filling 0 services", "onlysouth 0 services"}, got)
	require.Len(t, arrange(in, northCentral).Accounts, 3, "an LRS account of the south is none of the north's business")
	require.Equal(t, fullStatus(), in, "arrange changed what the cluster returned")
}
