package extent

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a store reports to a registry. A nil *metrics reports nothing.
type metrics struct {
	registerer  prometheus.Registerer
	collectors  []prometheus.Collector
	syncSeconds prometheus.Histogram
}

// newMetrics registers the metrics, or returns nil if registerer is nil.
func newMetrics(registerer prometheus.Registerer, stats func() Stats) (*metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &metrics{
		registerer: registerer,
		syncSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "antipode_extent_sync_seconds",
			Help:    "Time of one grouped fdatasync of the extent files.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}),
	}
	m.collectors = []prometheus.Collector{
		m.syncSeconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_extent_bytes",
			Help: "Payload bytes of the chunks held.",
		}, func() float64 { return float64(stats().Bytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_extent_chunks",
			Help: "Chunks held.",
		}, func() float64 { return float64(stats().Chunks) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "antipode_extent_freed_bytes_total",
			Help: "Bytes of extent files dropped because nothing in them lived any more.",
		}, func() float64 { return float64(stats().FreedBytes) }),
	}
	for i, c := range m.collectors {
		if err := registerer.Register(c); err != nil {
			m.collectors = m.collectors[:i]
			m.unregister()
			return nil, errors.Join(errors.New("register the metrics of the extent store"), err)
		}
	}
	return m, nil
}

func (m *metrics) observeSync(d time.Duration) {
	if m != nil {
		m.syncSeconds.Observe(d.Seconds())
	}
}

// unregister takes the metrics back, so that the store can be opened again beside
// the same registry.
func (m *metrics) unregister() {
	if m == nil {
		return
	}
	for _, c := range m.collectors {
		m.registerer.Unregister(c)
	}
}
