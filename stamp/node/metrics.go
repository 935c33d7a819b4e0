package node

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are a node's own instruments, registered from Open to Close.
type metrics struct {
	registerer prometheus.Registerer
	collectors []prometheus.Collector
}

// registerer takes what is of this node, under its labels; nil where there is none.
func (n *Node) registerer() prometheus.Registerer {
	if n.o.Registerer == nil {
		return nil
	}
	labels := prometheus.Labels{"location": string(n.o.Location), "node": strconv.Itoa(int(n.o.ID))}
	return prometheus.WrapRegistererWith(labels, n.o.Registerer)
}

// newMetrics registers the upkeep's counts under the labels location and node; nil where
// registerer is.
func newMetrics(n *Node) (*metrics, error) {
	m := &metrics{registerer: n.registerer()}
	if m.registerer == nil {
		return nil, nil //nolint:nilnil // No metrics is a state of its own.
	}
	c := &n.upkeep.counts
	for store, v := range map[string]*atomic.Uint64{"extents": &c.scrubbedExtents, "state": &c.scrubbedState, "log": &c.scrubbedLog} {
		m.count("antipode_scrub_bytes_total", "Bytes that the scrub read and checked.", v, prometheus.Labels{"store": store})
	}
	m.count("antipode_scrub_chunks_total", "Payload chunks that the scrub read and checked.", &c.scrubbedChunks, nil)
	m.count("antipode_scrub_rounds_total", "Rounds of the scrub over everything on the disk.", &c.scrubRounds, nil)
	m.count("antipode_repaired_chunks_total", "Damaged or missing payload chunks copied from another node.", &c.repaired, nil)
	m.count("antipode_missing_chunks_total", "Payload chunks that were named here and not held.", &c.missing, nil)
	m.count("antipode_collected_chunks_total", "Payload chunks dropped because nothing named them.", &c.collectedChunks, nil)
	m.count("antipode_collected_bytes_total", "Bytes of the payload chunks dropped because nothing named them.", &c.collectedBytes, nil)
	m.count("antipode_compacted_bytes_total", "Bytes of payload chunks copied out of extents that hold mostly garbage.", &c.compactedBytes, nil)
	m.collectors = append(m.collectors,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "antipode_corrupt_chunks_total", Help: "Payload chunks whose copy here was found damaged.",
		}, func() float64 { return float64(n.extents.Stats().Corrupted) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_damaged_chunks", Help: "Payload chunks whose copy here is damaged and not repaired yet.",
		}, func() float64 { return float64(n.extents.Stats().Damaged) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_disk_full", Help: "1 while the node takes no writes for want of room on its disk.",
		}, func() float64 {
			if n.DiskFull() {
				return 1
			}
			return 0
		}),
	)
	for i, c := range m.collectors {
		if err := m.registerer.Register(c); err != nil {
			m.collectors = m.collectors[:i]
			m.unregister()
			return nil, errors.Join(errors.New("register the metrics of a node"), err)
		}
	}
	return m, nil
}

func (m *metrics) count(name, help string, v *atomic.Uint64, labels prometheus.Labels) {
	m.collectors = append(m.collectors, prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(v.Load()) }))
}

// unregister takes the metrics back, so that the node can be opened again beside the same
// registry.
func (m *metrics) unregister() {
	if m == nil {
		return
	}
	for _, c := range m.collectors {
		m.registerer.Unregister(c)
	}
}
