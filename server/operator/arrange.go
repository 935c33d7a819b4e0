package operator

import (
	"cmp"
	"maps"
	"slices"

	wire "antipode/client/admin"
	"antipode/geo"
)

// arrange makes the document of a port out of what the cluster said: cut to the
// scope, in a stable order, with alarms summed and no null where a list belongs. It
// leaves s as it was.
func arrange(s wire.Status, scope geo.Location) wire.Status {
	s.Version = wire.StatusVersion
	locations := make([]wire.Location, 0, len(s.Locations))
	s.Alarms = map[string]uint64{}
	for _, l := range s.Locations {
		if scope != "" && l.Name != scope {
			continue
		}
		l.Nodes = slices.Clone(l.Nodes)
		for i := range l.Nodes {
			l.Nodes[i].Replicas = list(l.Nodes[i].Replicas)
		}
		l.Nodes, l.Ranges = list(l.Nodes), list(l.Ranges)
		l.Alarms = maps.Clone(l.Alarms)
		if l.Alarms == nil {
			l.Alarms = map[string]uint64{}
		}
		for reason, n := range l.Alarms {
			s.Alarms[reason] += n
		}
		locations = append(locations, l)
	}
	s.Locations = locations

	accounts := make([]wire.AccountStatus, 0, len(s.Accounts))
	for _, a := range s.Accounts {
		if !concerns(a.Account, scope) {
			continue
		}
		// Last Sync Time is computed where the data is applied. A port of the primary
		// location says nothing about it rather than what it received some time ago.
		if scope != "" && a.Secondary != scope {
			a.Services = nil
		}
		a.Services = list(a.Services)
		accounts = append(accounts, a)
	}
	slices.SortFunc(accounts, func(x, y wire.AccountStatus) int { return cmp.Compare(x.Name, y.Name) })
	s.Accounts = accounts
	return s
}
