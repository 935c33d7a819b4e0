package location

import (
	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/metrics"
	"antipode/stamp/ranges"
)

// samples implements metrics.Source for the locations of a process. Everything is read at
// the scrape; ranges led by other processes are left to those.
type samples struct{ set Set }

// leaders calls f for each range of the set that has its leader in this process.
func (s samples) leaders(f func(*Location, geo.Service, *ranges.Range)) {
	for _, l := range s.set {
		for _, d := range l.o.Route.Ranges() {
			if r := l.Leader(d.ID); r != nil {
				f(l, d.Service, r)
			}
		}
	}
}

// Ranges implements metrics.Source.
func (s samples) Ranges() []metrics.RangeSample {
	var out []metrics.RangeSample
	s.leaders(func(l *Location, svc geo.Service, r *ranges.Range) {
		b, err := r.Machine.Backlog()
		if err != nil {
			l.o.Logger.Error("cannot read the backlog", "location", l.o.Name, "service", svc, "error", err)
			return
		}
		uncompared := 0
		if r.Machine.Uncompared() {
			uncompared = 1
		}
		out = append(out, metrics.RangeSample{
			Location: l.o.Name, Service: svc, InSyncReplicas: r.InSync(), Uncompared: uncompared,
			BacklogRecords: b.Records, BacklogBytes: b.Bytes, BacklogPayload: b.Payload, BacklogAge: l.age(b), FellOut: fellOut(r.Machine),
		})
	})
	return out
}

// fellOut counts the accounts that fell out of the outbox's budget.
func fellOut(m *ranges.Machine) (n int) {
	for _, h := range m.Holdings() {
		if h.FellOut {
			n++
		}
	}
	return n
}

// Replicas implements metrics.Source.
func (s samples) Replicas() []metrics.ReplicaSample {
	var out []metrics.ReplicaSample
	s.leaders(func(l *Location, _ geo.Service, r *ranges.Range) {
		for _, replica := range r.View().Standings {
			out = append(out, metrics.ReplicaSample{Location: l.o.Name, Range: r.ID(), Node: replica.Node, InSync: replica.InSync})
		}
	})
	return out
}

// Leaders implements metrics.Source.
func (s samples) Leaders() []metrics.LeaderSample {
	var out []metrics.LeaderSample
	for _, l := range s.set {
		stamp, stopped := l.Stamp()
		for _, d := range l.o.Route.Ranges() {
			sample := metrics.LeaderSample{Location: l.o.Name, Service: d.Service, Range: d.ID}
			if stopped == nil {
				_, sample.Known = stamp.LeaderNode(d.ID)
				sample.Replicas = len(stamp.Placed(d.ID))
			}
			out = append(out, sample)
		}
	}
	return out
}

// Stops implements metrics.Source.
func (s samples) Stops() []metrics.StopSample {
	var out []metrics.StopSample
	s.leaders(func(l *Location, svc geo.Service, r *ranges.Range) {
		for _, stop := range r.Machine.Stops() {
			out = append(out, metrics.StopSample{Location: l.o.Name, Service: svc, Reason: stop.Reason.String(), Streams: 1})
		}
	})
	return out
}

// Nodes implements metrics.Source.
func (s samples) Nodes() []metrics.NodeSample {
	var out []metrics.NodeSample
	for _, l := range s.set {
		stamp, err := l.Stamp()
		if err != nil {
			continue
		}
		for _, id := range l.o.Local {
			if n := stamp.Node(id); n != nil {
				sample := metrics.NodeSample{Location: l.o.Name, Node: id, OutboxBudget: l.budget(n).Bytes}
				sample.DiskSize, sample.DiskFree, sample.DiskReserve = n.Room().Disk()
				out = append(out, sample)
			}
		}
	}
	return out
}

// Locations implements metrics.Source.
func (s samples) Locations() []metrics.LocationSample {
	var out []metrics.LocationSample
	for _, l := range s.set {
		cut, _ := l.o.Link.State()
		epochs := l.Epochs()
		out = append(out, metrics.LocationSample{
			Location: l.o.Name, Running: l.state() == wire.Running, Confirmed: epochs.Confirmed, Refused: len(epochs.Refused),
			LinkCut: cut, Buses: l.connected(),
		})
	}
	return out
}
