package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Witness counts what a witness does. It implements the Observer of package failover/witness.
type Witness struct {
	requests *prometheus.CounterVec
	unsaved  prometheus.Counter
}

// NewWitness registers antipode_witness_*, but those of RegisterWitness. The requests of each location begin at zero, for each
// kind and outcome.
func NewWitness(reg prometheus.Registerer, locations []geo.Location, kinds, outcomes []string) (*Witness, error) {
	w := &Witness{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: nameWitnessRequests, Help: "Calls of a location that the witness answered, by kind and how they ended.",
		}, []string{labelLocation, labelKind, labelOutcome}),
		unsaved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: nameWitnessUnsaved, Help: "Failures to write the file of claims: the call failed, and is made again.",
		}),
	}
	for _, l := range locations {
		for _, kind := range kinds {
			for _, outcome := range outcomes {
				w.requests.WithLabelValues(string(l), kind, outcome)
			}
		}
	}
	return w, register(reg, w.requests, w.unsaved)
}

// Answered counts an answered call. The location is "" if it is none of the witness's; kind and outcome come from fixed sets.
func (w *Witness) Answered(l geo.Location, kind, outcome string) {
	if w == nil {
		return
	}
	if l == "" {
		l = Other
	}
	w.requests.WithLabelValues(string(l), kind, outcome).Inc()
}

// Failed counts a failure to write the file of claims.
func (w *Witness) Failed() {
	if w != nil {
		w.unsaved.Inc()
	}
}

// WitnessSample is the state of a witness.
type WitnessSample struct {
	// Lease is how long a lease lives.
	Lease time.Duration
	// Claims and SinceRenewal have each location of the witness.
	Claims       map[geo.Location]int
	SinceRenewal map[geo.Location]time.Duration
}

// RegisterWitness registers the gauges of a witness. sample is called at each scrape.
func RegisterWitness(reg prometheus.Registerer, sample func() WitnessSample) error {
	byLocation := []string{labelLocation}
	return register(reg, &witnessGauges{
		sample: sample,
		lease:  prometheus.NewDesc(nameWitnessLease, "How long a lease lives.", nil, nil),
		claims: prometheus.NewDesc(nameWitnessClaims, "Claims of promotions to the location that are kept.", byLocation, nil),
		renewal: prometheus.NewDesc(nameWitnessRenewal,
			"Time since the location renewed its lease; since the witness began if it has not yet.", byLocation, nil),
	})
}

// witnessGauges reads the state at scrape time.
type witnessGauges struct {
	sample                 func() WitnessSample
	lease, claims, renewal *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *witnessGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.lease, c.claims, c.renewal} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *witnessGauges) Collect(ch chan<- prometheus.Metric) {
	s := c.sample()
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	put(c.lease, s.Lease.Seconds())
	for l, n := range s.Claims {
		put(c.claims, float64(n), string(l))
	}
	for l, since := range s.SinceRenewal {
		put(c.renewal, since.Seconds(), string(l))
	}
}
