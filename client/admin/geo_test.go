package admin

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What an account and its lag show of its geo-replication: the worst status of its services, the least of their Last Sync
// Times or none, and which failovers would be begun.
//
// Capability: Failover: What the public management API shows of an account's geo-replication.
func TestGeoReplicationOf(t *testing.T) {
	at := func(s int64) Time { return Time{time.Unix(1_800_000_000+s, 0)} }
	service := func(name string, s ReplicationStatus, t Time) ServiceLag {
		return ServiceLag{ServiceStatus: ServiceStatus{Service: name, Status: s, LastSyncTime: t}}
	}
	live := []ServiceLag{service("blob", Live, at(3)), service("queue", Live, at(2)), service("table", Live, at(4))}
	a := Account{Name: "acct", Redundancy: "RA-GRS", Primary: "north", Secondary: "south", LastFailover: at(1)}
	under := func(operation, phase string) Account {
		a := a
		a.Operation, a.FailoverPhase = operation, phase
		return a
	}
	for name, c := range map[string]struct {
		of           Account
		services     []ServiceLag
		silent       string
		status       ReplicationStatus
		last         Time
		can, planned bool
	}{
		"live":                 {a, live, "", Live, at(2), true, true},
		"primary away":         {a, live, "north", Live, at(2), true, false},
		"secondary away":       {a, live, "south", Live, at(2), false, false},
		"bootstrap":            {under("bootstrap", ""), []ServiceLag{live[0], service("queue", Bootstrap, Time{})}, "", Bootstrap, Time{}, false, false},
		"worst":                {a, []ServiceLag{service("blob", Unavailable, at(1)), service("queue", Bootstrap, at(2))}, "", Unavailable, at(1), true, false},
		"not known of one":     {a, []ServiceLag{service("blob", Bootstrap, at(1)), service("queue", "", Time{})}, "", Unavailable, Time{}, true, false},
		"nothing known":        {a, nil, "south", Unavailable, Time{}, false, false},
		"a change":             {under("a change", ""), live, "", Live, at(2), false, false},
		"a planned failover":   {under("a failover", FailoverClosing), live, "", Live, at(2), true, false},
		"an unplanned one":     {under("a failover", FailoverApplying), live, "", Live, at(2), false, false},
		"taken":                {under("a failover", FailoverTaken), live, "", Live, at(2), true, false},
		"taken, unplanned yet": {under("a failover", FailoverTaken), []ServiceLag{service("blob", Unavailable, at(1))}, "", Unavailable, at(1), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := Lag{Services: c.services}
			if c.silent != "" {
				l.Silent = []SilentLocation{{Location: a.Primary}}
				if c.silent == "south" {
					l.Silent[0].Location = a.Secondary
				}
			}
			g := GeoReplicationOf(c.of, l)
			require.Equal(t, at(1), g.LastGeoFailoverTime)
			require.Equal(t, c.silent == "north", g.StatusOfPrimary == LocationUnavailable)
			require.Equal(t, c.silent == "south", g.StatusOfSecondary == LocationUnavailable)
			require.Equal(t, GeoReplicationStats{
				Status: c.status, LastSyncTime: c.last, CanFailover: c.can, CanPlannedFailover: c.planned,
				PostFailoverRedundancy: "Standard_RAGRS", PostPlannedFailoverRedundancy: "Standard_RAGRS",
			}, *g.Stats)
		})
	}
	alone, err := json.Marshal(GeoReplicationOf(Account{Name: "acct", Redundancy: "LRS", Primary: "north"}, Lag{}))
	require.NoError(t, err)
	require.JSONEq(t, `{"account":"acct","primary":"north","status_of_primary":"available"}`, string(alone))
}
