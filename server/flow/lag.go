package flow

import (
	"strings"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/stamp/keys"
)

// Lag computes how far the secondary of an account is.
func Lag(name geo.Account, all wire.Flows, q wire.LagQuery) wire.Lag {
	e := endsOf(all)
	out := wire.Lag{Account: name, Primary: e.account.Primary, Secondary: e.account.Secondary, Silent: e.silent}
	streams := e.streams()
	for _, s := range geo.Services {
		if service := s.String(); q.Service == "" || q.Service == service {
			out.Services = append(out.Services, e.service(service, streams))
		}
	}
	if q.Partition != "" {
		lane := laneOf(name, q)
		out.Partition = &wire.PartitionLane{Service: q.Service, Key: q.Partition, Lane: lane}
		out.Streams = e.lane(streams, q.Service, lane)
		return out
	}
	for _, st := range streams {
		if q.Service == "" || st.Service == q.Service || st.Service == geo.Catalog.String() {
			out.Streams = append(out.Streams, st)
		}
	}
	return out
}

// laneOf returns the lane of a partition.
func laneOf(name geo.Account, q wire.LagQuery) geo.Lane {
	s, _ := geo.ParseService(q.Service) // It was checked.
	container, object, _ := strings.Cut(q.Partition, "/")
	if s == geo.Table {
		container = keys.TableContainer(container)
	}
	return keys.Partition{Service: s, Account: name, Container: container, Object: object}.Lane()
}
