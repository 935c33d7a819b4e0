package rest

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"time"

	"antipode/api/wire"
	"antipode/geo"
)

// Stats is the answer of Get Service Stats.
type Stats struct {
	// Status is live, bootstrap or unavailable.
	Status string
	// LastSyncTime is absent, with Known false, when the element is empty.
	LastSyncTime time.Time
	Known        bool
}

// Stats reads the service's statistics; only a secondary endpoint answers them.
func (c *Client) Stats(ctx context.Context, s geo.Service) (Stats, error) {
	a, err := c.Do(ctx, s, Request{Method: http.MethodGet, Path: "/", Query: "restype=service&comp=stats"})
	if err := expect(a, err, "service stats"); err != nil {
		return Stats{}, err
	}
	var doc struct {
		XMLName xml.Name `xml:"StorageServiceStats"`
		Geo     struct {
			Status       string
			LastSyncTime string
		} `xml:"GeoReplication"`
	}
	if err := xml.Unmarshal(a.Body, &doc); err != nil {
		return Stats{}, fmt.Errorf("service stats: %w in %.300q", err, a.Body)
	}
	out := Stats{Status: doc.Geo.Status}
	if doc.Geo.LastSyncTime != "" {
		t, ok := wire.ParseHTTPTime(doc.Geo.LastSyncTime)
		if !ok {
			return Stats{}, fmt.Errorf("service stats: LastSyncTime %q is no RFC 1123 time", doc.Geo.LastSyncTime)
		}
		out.LastSyncTime, out.Known = t, true
	}
	return out, nil
}
