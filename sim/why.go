package sim

import (
	"fmt"
	"time"

	"antipode/client/admin"
	"antipode/geo"
	"antipode/server/flow"
	"antipode/stamp/cursor"
	"antipode/stamp/ranges"
	"antipode/stats"
)

// why is what antipodectl why answers about an account: package flow's conclusion from what the
// processes of both locations know. Each node is a process.
func (s *Sim) why(a *account) admin.Why {
	return flow.Why(a.name, admin.Flows{Flows: []admin.Flow{a.home.flow(a), a.home.far.flow(a)}}, 0)
}

// whyOf is the part of why about one service.
func (s *Sim) whyOf(a *account, svc geo.Service) admin.ServiceWhy {
	for _, w := range s.why(a).Services {
		if w.Service == svc.String() {
			return w
		}
	}
	return admin.ServiceWhy{}
}

// flow is what the location knows of the streams of an account: see location.Location.Flow. The process that
// receives is asked first.
func (l *location) flow(a *account) admin.Flow {
	var known, rest []admin.Flow
	for _, m := range l.members {
		switch {
		case m.n == nil || m.killed != nil || m.stands():
			rest = append(rest, admin.Flow{Silent: []string{admin.NodeName(l.name, m.id)}})
		case l.receiving() == m.process:
			known = append(known, m.flow(a))
		default:
			rest = append(rest, m.flow(a))
		}
	}
	if len(known) == 0 {
		known = append(known, admin.Flow{Location: l.name, At: admin.Time{Time: l.wall()}, Account: describe(a)})
	}
	return flow.Merge(append(known, rest...))
}

func describe(a *account) admin.Account {
	return admin.Account{Name: a.name, Primary: a.home.name, Secondary: a.home.far.name, Epoch: admin.EpochOf(a.epoch)}
}

// flow is what the process of a node knows.
func (m *member) flow(a *account) admin.Flow {
	now := m.clock.Now()
	out := admin.Flow{Location: m.l.name, At: admin.Time{Time: now}, Account: describe(a)}
	receives := a.home != m.l && m.process.receiver != nil
	if receives {
		for _, svc := range m.l.s.used {
			out.Services = append(out.Services, flow.Status(svc, m.replicationNow(a, svc, now), now))
		}
	}
	for _, id := range m.l.s.shipped {
		r := admin.RangeFlow{Range: id, Service: geo.Service(id).String()}
		if p, known := m.l.progressNow(a, id); receives && known {
			r.Receiver = flow.Receiver(a.name, p)
			flow.Add(&out, r.Receiver, m.process.receiver.View(id, a.name))
		}
		own := m.n.Range(id)
		if own == nil {
			if receives {
				out.Ranges = append(out.Ranges, r)
			}
			continue
		}
		if lead := own.Leader(); lead != 0 {
			r.Leader = admin.NodeName(m.l.name, lead)
		}
		r.Lead = flow.Lead(m.l.name, m.n, id)
		if m.leads(id) && a.home == m.l {
			heads, _ := own.Machine.Heads()
			r.Source = flow.Source(a.name, heads, own.Machine.Gate(a.name).Epoch, m.shippers[id].View(a.name))
		}
		out.Ranges = append(out.Ranges, r)
	}
	return out
}

// wall is the wall clock of the node with the catalog's leader.
func (l *location) wall() time.Time {
	if m := l.newest(geo.FirstRange(geo.Catalog)); m != nil {
		return m.clock.Now()
	}
	return l.members[0].clock.Now()
}

// progressNow is how far the nodes that run have applied a source range of an account: see
// stamp.Stamp.ProgressNow.
func (l *location) progressNow(a *account, id geo.RangeID) (p cursor.Progress, known bool) {
	var best *ranges.Range
	for _, m := range l.members {
		if m.n == nil || m.killed != nil || m.stands() || m.n.Range(id) == nil {
			continue
		}
		if r := m.n.Range(id); best == nil || r.Machine.AppliedState().Index > best.Machine.AppliedState().Index {
			best = r
		}
	}
	if best == nil {
		return p, false
	}
	return best.Machine.Progress(geo.SourceRange{Origin: l.far.name, Range: id}, a.name), true
}

// replicationNow is the state of a service of an account that the process receives, as status shows it.
func (m *member) replicationNow(a *account, svc geo.Service, now time.Time) stats.Replication {
	var known []cursor.Progress
	ahead := false
	for _, d := range stats.Sources(firstRanges, a.name, svc) {
		if p, ok := m.l.progressNow(a, d.ID); ok {
			known = append(known, p)
		}
		ahead = ahead || m.process.receiver.Ahead(d.ID)
	}
	return stats.Compute(stats.Inputs{
		Account: a.name, Service: svc, Primary: a.home.name, From: firstRanges, Known: known, Held: ahead, Now: now,
	})
}

// unwell returns why a service is not well, "" if it is and nothing is named.
func (s *Sim) unwell(a *account, svc geo.Service) string {
	w := s.whyOf(a, svc)
	if w.OK && len(w.Causes) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s: %+v", a.name, svc, w)
}
