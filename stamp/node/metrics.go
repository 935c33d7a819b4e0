package node

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are a node's own instruments, registered from Open to Close.
type metrics struct {
	registerer prometheus.Registerer
	collectors []prometheus.Collector
}

// registerer takes the instruments of a node, under the labels location and node; nil without
// a registry.
func (o Options) registerer() prometheus.Registerer {
	if o.Registerer == nil {
		return nil
	}
	labels := prometheus.Labels{"location": string(o.Location), "node": strconv.Itoa(int(o.ID))}
	return prometheus.WrapRegistererWith(labels, o.Registerer)
}

// newMetrics registers the node's instruments under the labels location and node; nil where
// registerer is.
func newMetrics(n *Node) (*metrics, error) {
	m := &metrics{registerer: n.o.registerer()}
	if m.registerer == nil {
		return nil, nil //nolint:nilnil // No metrics is a state of its own.
	}
	m.collectors = append(m.collectors,
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
