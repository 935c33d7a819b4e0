package main

import (
	"slices"

	"antipode/client/admin"
)

// backlog sums what a location's ranges have that the other location has not acknowledged.
func (p *wholePlan) backlog(l admin.Location) {
	var records, bytes int64
	for _, r := range l.Ranges {
		if r.LeaderView == nil {
			return
		}
		records, bytes = records+r.BacklogRecords, bytes+r.BacklogBytes+r.BacklogPayloadBytes
	}
	if len(l.Ranges) > 0 {
		p.BacklogRecords, p.BacklogBytes = &records, &bytes
	}
}

// count counts the services of an account.
func (p *wholePlan) count(a admin.AccountStatus) {
	for i := range p.Services {
		s := &p.Services[i]
		n := slices.IndexFunc(a.Services, func(have admin.ServiceStatus) bool { return have.Service == s.Service })
		switch {
		case n < 0:
			s.Unknown++
		case a.Services[n].Status == admin.Live:
			s.Live++
		default:
			s.NotLive++
		}
		if at := (admin.Time{}); n >= 0 {
			if at = a.Services[n].LastSyncTime; s.Live+s.NotLive == 1 || at.Before(s.Oldest.Time) {
				s.Oldest = at
			}
		}
	}
}
