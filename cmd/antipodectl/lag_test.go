package main

import (
	"time"

	"antipode/client/admin"
)

// lagDocument is an account of which one stream is behind and one is not known.
func lagDocument(now admin.Time) admin.Lag {
	seconds := func(f float64) *float64 { return &f }
	count := func(n uint64) *uint64 { return &n }
	then := admin.Time{Time: now.Add(-2500 * time.Millisecond)}
	return admin.Lag{
		Account: "pictures", Primary: "southcentralus", Secondary: "northcentralus",
		Services: []admin.ServiceLag{{
			ServiceStatus: admin.ServiceStatus{Service: "table", Status: admin.Live, LastSyncTime: then, LagSeconds: seconds(2.5), StreamsBehind: 1},
			LagRecords:    count(3), AtLeast: true,
		}},
		Partition: &admin.PartitionLane{Service: "table", Key: "people/smith", Lane: 17},
		Streams: []admin.StreamLag{
			{
				Stream: "pictures/1@southcentralus/r4/l17", Service: "table", Range: 4, Lane: 17, SyncTime: then, LagSeconds: seconds(2.5),
				Applied: count(39), Head: count(42), Heads: admin.HeadsClosed, LagRecords: count(3), Stopped: "forked",
			},
			{Service: "table", Range: 4, Lane: 18},
		},
		Silent: []admin.SilentLocation{{Location: "southcentralus", Reason: "no node of location southcentralus answers on its admin port"}},
	}
}
