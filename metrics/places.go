package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// LeaderSample is whether this process knows a leader of a range, itself included. It knows none while its location
// is stopped.
type LeaderSample struct {
	Location geo.Location
	Service  geo.Service
	Range    geo.RangeID
	Known    bool
	// Replicas is how many the range should have; zero when unknown.
	Replicas int
}

// StopSample counts streams of a range that may not go on, for one reason.
type StopSample struct {
	Location geo.Location
	Service  geo.Service
	// Reason is one of a few words: see change.StopReason.
	Reason  string
	Streams int
}

// NodeSample is the room of a node, in bytes.
type NodeSample struct {
	Location geo.Location
	Node     geo.NodeID
	// OutboxBudget is what its outboxes may hold.
	OutboxBudget int64
	// DiskSize and DiskFree are of the disk of its folder, zero when unknown; with less than DiskReserve free it takes no
	// writes.
	DiskSize, DiskFree, DiskReserve uint64
}

// DownSample is a node that is out of service: it failed, or could not be opened.
type DownSample struct {
	Location geo.Location
	Node     geo.NodeID
	// Reason is one of a few words: version, if a later version wrote what the node's program does not know, or store.
	Reason string
}

// LocationSample is what this process runs of a location.
type LocationSample struct {
	Location geo.Location
	Running  bool
	// Confirmed: the epochs are (R21). Refused is how many accounts have a higher epoch elsewhere.
	Confirmed bool
	Refused   int
	// LinkCut: an operator has cut the link to the other location.
	LinkCut bool
	// Buses are the connections to the bus of each location that it is connected to while it runs.
	Buses map[geo.Location]bool
}

// places reads ranges, nodes and locations at scrape time.
type places struct {
	src                                                   Source
	leader, replicas, stops, budget, size, free, reserve  *prometheus.Desc
	down, running, confirmed, refused, linkCut, connected *prometheus.Desc
}

func newPlaces(src Source) *places {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{labelLocation}, labels...), nil)
	}
	return &places{
		src: src,
		leader: desc(nameLeader,
			"1 while this process knows a leader of the range, itself included; 0 while it knows none or its location is stopped.",
			labelService, labelRange),
		replicas:  desc(nameReplicas, "Replicas that the range should have; absent while the location is stopped.", labelService, labelRange),
		stops:     desc(nameStopped, "Streams that may not go on, of the ranges that this process leads, by reason.", labelService, labelReason),
		budget:    desc(nameBudget, "Bytes of changes and payload that the outboxes of a node may hold.", labelNode),
		size:      desc(nameDiskSize, "Size of the disk of the node's folder; absent when unknown.", labelNode),
		free:      desc(nameDiskFree, "Bytes that are free on the disk of the node's folder; absent when unknown.", labelNode),
		reserve:   desc(nameDiskReserve, "With fewer free bytes than these the node takes no writes.", labelNode),
		down:      desc(nameOut, "1 while the node is out of service: it failed, or could not be opened; absent otherwise.", labelNode, labelReason),
		running:   desc(nameRunning, "1 while what this process runs of the location runs, 0 while it is stopped or starts."),
		confirmed: desc(nameConfirmed, "1 while this process may answer writes of accounts that have a copy, 0 while its epochs are not confirmed."),
		refused:   desc(nameRefused, "Accounts whose writes are refused here, since they have a higher epoch at the other location."),
		linkCut:   desc(nameLinkCut, "1 while an operator has cut the link to the other location at this end."),
		connected: desc(nameBusConnected, "1 while this process is connected to the bus of a location, 0 while not.", labelBus),
	}
}

// Describe implements prometheus.Collector.
func (p *places) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		p.leader, p.replicas, p.stops, p.budget, p.size, p.free, p.reserve, p.down, p.running, p.confirmed, p.refused, p.linkCut, p.connected,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *places) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, l geo.Location, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{string(l)}, labels...)...)
	}
	for _, s := range p.src.Leaders() {
		put(p.leader, one(s.Known), s.Location, s.Service.String(), number(s.Range))
		if s.Replicas > 0 {
			put(p.replicas, float64(s.Replicas), s.Location, s.Service.String(), number(s.Range))
		}
	}
	type key struct {
		l      geo.Location
		s      geo.Service
		reason string
	}
	stops := map[key]int{}
	for _, s := range p.src.Stops() {
		stops[key{s.Location, s.Service, s.Reason}] += s.Streams
	}
	for k, n := range stops {
		put(p.stops, float64(n), k.l, k.s.String(), k.reason)
	}
	for _, s := range p.src.Nodes() {
		put(p.budget, float64(s.OutboxBudget), s.Location, number(s.Node))
		put(p.reserve, float64(s.DiskReserve), s.Location, number(s.Node))
		if s.DiskSize > 0 {
			put(p.size, float64(s.DiskSize), s.Location, number(s.Node))
			put(p.free, float64(s.DiskFree), s.Location, number(s.Node))
		}
	}
	for _, s := range p.src.OutOfService() {
		put(p.down, 1, s.Location, number(s.Node), s.Reason)
	}
	for _, s := range p.src.Locations() {
		put(p.running, one(s.Running), s.Location)
		put(p.linkCut, one(s.LinkCut), s.Location)
		if s.Running {
			put(p.confirmed, one(s.Confirmed), s.Location)
			put(p.refused, float64(s.Refused), s.Location)
		}
		for bus, up := range s.Buses {
			put(p.connected, one(up), s.Location, string(bus))
		}
	}
}
