package feature

import "github.com/prometheus/client_golang/prometheus"

// Collectors are the gauges of a node's levels.
func (g *Gate) Collectors() []prometheus.Collector {
	gauge := func(name, help string, level func() Level) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(level()) })
	}
	return []prometheus.Collector{
		gauge("antipode_feature_level_known", "Highest feature level that the node's program knows.", g.Known),
		gauge("antipode_feature_level_active", "Highest feature level at which the node may write.", g.Active),
	}
}
