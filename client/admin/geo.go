package admin

import (
	"context"

	"antipode/geo"
)

// GeoReplication is the answer of GET /v1/accounts/{name}/geo: what the management API of the public service shows of the
// geo-replication of an account, which Stats is absent of for LRS.
type GeoReplication struct {
	Account geo.Account `json:"account"`
	// Primary and Secondary are its locations, and their statuses LocationAvailable or LocationUnavailable.
	Primary           geo.Location `json:"primary"`
	StatusOfPrimary   string       `json:"status_of_primary"`
	Secondary         geo.Location `json:"secondary,omitempty"`
	StatusOfSecondary string       `json:"status_of_secondary,omitempty"`
	// LastGeoFailoverTime is when the primary became the primary by a failover; absent if it never did.
	LastGeoFailoverTime Time                 `json:"last_geo_failover_time,omitzero"`
	Stats               *GeoReplicationStats `json:"geo_replication_stats,omitempty"`
}

// The statuses of a location, of an account: whether it answers the port that was asked. LocationUnknown is of antipodectl, for
// one that the port does not ask.
const (
	LocationAvailable   = "available"
	LocationUnavailable = "unavailable"
	LocationUnknown     = "unknown"
)

// GeoReplicationStats are the statistics of the geo-replication of an account.
type GeoReplicationStats struct {
	// Status is Unavailable where one service is, or nobody knows it of one, else Bootstrap where one is, else Live.
	Status ReplicationStatus `json:"status"`
	// LastSyncTime is the least of the services; absent where that of one is not known.
	LastSyncTime Time `json:"last_sync_time,omitzero"`
	// CanFailover: an unplanned failover would be begun. CanPlannedFailover: a planned one would be begun, and can drain.
	CanFailover        bool `json:"can_failover"`
	CanPlannedFailover bool `json:"can_planned_failover"`
	// PostFailoverRedundancy and PostPlannedFailoverRedundancy are the SKUs after an unplanned and a planned failover.
	PostFailoverRedundancy        string `json:"post_failover_redundancy"`
	PostPlannedFailoverRedundancy string `json:"post_planned_failover_redundancy"`
}

// GeoReplicationOf returns what an account and its lag show.
func GeoReplicationOf(a Account, l Lag) GeoReplication {
	out := GeoReplication{Account: a.Name, Primary: a.Primary, Secondary: a.Secondary, LastGeoFailoverTime: a.LastFailover}
	if out.StatusOfPrimary = l.statusOf(a.Primary); a.WithoutPrimary != "" {
		out.StatusOfPrimary = LocationUnavailable
	}
	if a.Secondary == "" {
		return out
	}
	out.StatusOfSecondary = l.statusOf(a.Secondary)
	sku := map[string]string{"GRS": "Standard_GRS", "RA-GRS": "Standard_RAGRS"}[a.Redundancy]
	s := GeoReplicationStats{PostFailoverRedundancy: sku, PostPlannedFailoverRedundancy: sku}
	s.Status, s.LastSyncTime = l.status()
	here := out.StatusOfSecondary == LocationAvailable
	s.CanPlannedFailover = here && out.StatusOfPrimary == LocationAvailable && s.Status == Live && a.Operation == ""
	s.CanFailover = here && s.Status != Bootstrap && a.promotable(s.Status)
	out.Stats = &s
	return out
}

// promotable reports whether what is under way at the primary leaves the copy such that it may become the primary.
func (a Account) promotable(now ReplicationStatus) bool {
	switch a.FailoverPhase {
	case FailoverDraining, FailoverClosing, FailoverOffered, FailoverEnding:
		return true
	case FailoverTaken: // The former primary follows, or has diverged and must be made again.
		return now == Live
	}
	return a.Operation == ""
}

func (l Lag) statusOf(at geo.Location) string {
	for _, s := range l.Silent {
		if s.Location == at {
			return LocationUnavailable
		}
	}
	return LocationAvailable
}

// status is that of all services together.
func (l Lag) status() (worst ReplicationStatus, least Time) {
	worst = Live
	known := len(l.Services) > 0
	for i, s := range l.Services {
		switch {
		case s.Status == Bootstrap && worst == Live:
			worst = Bootstrap
		case s.Status != Bootstrap && s.Status != Live:
			worst = Unavailable
		}
		known = known && !s.LastSyncTime.IsZero()
		if i == 0 || s.LastSyncTime.Before(least.Time) {
			least = s.LastSyncTime
		}
	}
	if !known {
		least = Time{}
	}
	if len(l.Services) == 0 {
		worst = Unavailable
	}
	return worst, least
}

// GeoReplication returns what the management API of the public service shows of an account's geo-replication.
func (c *Client) GeoReplication(ctx context.Context, name geo.Account) (GeoReplication, error) {
	return CallGeoReplication.Do(ctx, c, At{Account: name}, None{})
}
