package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Events counts the events of a location's event log, by kind.
type Events struct{ total *prometheus.CounterVec }

// NewEvents registers antipode_events_total.
func NewEvents(reg prometheus.Registerer) (*Events, error) {
	e := &Events{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: nameEvents, Help: "Events of the location's event log since the process began, by kind.",
	}, []string{labelLocation, labelKind})}
	return e, register(reg, e.total)
}

// Add counts n events. Zero creates the series; call it for every known kind at start.
func (e *Events) Add(l geo.Location, kind string, n uint64) {
	if e != nil {
		e.total.WithLabelValues(string(l), kind).Add(float64(n))
	}
}

// ReplicaSample is a voter of a range as the range's leader sees it.
type ReplicaSample struct {
	Location geo.Location
	Range    geo.RangeID
	Node     geo.NodeID
	InSync   bool
}

// replicas reads the replicas of a Source at scrape time.
type replicas struct {
	src    Source
	inSync *prometheus.Desc
}

func newReplicas(src Source) replicas {
	return replicas{src, prometheus.NewDesc(nameReplicaInSync,
		"1 where the range's leader counts the replica on the node in sync, 0 where not; absent without a leader.",
		[]string{labelLocation, labelRange, labelNode}, nil)}
}

// Describe implements prometheus.Collector.
func (r replicas) Describe(ch chan<- *prometheus.Desc) { ch <- r.inSync }

// Collect implements prometheus.Collector.
func (r replicas) Collect(ch chan<- prometheus.Metric) {
	for _, s := range r.src.Replicas() {
		ch <- prometheus.MustNewConstMetric(r.inSync, prometheus.GaugeValue, one(s.InSync),
			string(s.Location), number(s.Range), number(s.Node))
	}
}
