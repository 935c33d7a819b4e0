package room

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns the metrics of a node's room.
func (w *Watch) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_disk_full", Help: "1 while the node takes no writes for want of room on its disk.",
		}, func() float64 { return float64(min(w.Level(), 1)) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_set_aside_bytes", Help: "Bytes of damaged stores that were set aside in the folder of the node.",
		}, func() float64 { return float64(w.AsideBytes()) }),
	}
}
