package node

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// registerer registers the instruments of a node, under the labels location and node; nil without
// a registry.
func (o *Options) registerer() prometheus.Registerer {
	if o.Registerer == nil {
		return nil
	}
	labels := prometheus.Labels{"location": string(o.Location), "node": strconv.Itoa(int(o.ID))}
	return prometheus.WrapRegistererWith(labels, o.Registerer)
}

// metrics is a node's own instrument, registered from Open to Close.
type metrics struct {
	registerer prometheus.Registerer // may be nil
	diskFull   prometheus.Collector
}

func newMetrics(r prometheus.Registerer, full *atomic.Bool) (*metrics, error) {
	m := &metrics{registerer: r}
	m.diskFull = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "antipode_disk_full", Help: "1 while the node takes no writes for want of room on its disk.",
	}, func() float64 {
		if full.Load() {
			return 1
		}
		return 0
	})
	if r == nil {
		return m, nil
	}
	if err := r.Register(m.diskFull); err != nil {
		return nil, errors.Join(errors.New("register the metrics of a node"), err)
	}
	return m, nil
}

// unregister removes the metrics, so that the node can be opened again beside the same registry.
func (m *metrics) unregister() {
	if m.registerer != nil {
		m.registerer.Unregister(m.diskFull)
	}
}
