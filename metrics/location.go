package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"antipode/geo"
)

// ForLocation returns a Gatherer of the series of g whose location label is l. Series without that
// label belong to the process and are left out.
func ForLocation(g prometheus.Gatherer, l geo.Location) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := g.Gather()
		var out []*dto.MetricFamily
		for _, f := range all {
			var kept []*dto.Metric
			for _, m := range f.GetMetric() {
				if at(m, l) {
					kept = append(kept, m)
				}
			}
			if kept != nil {
				out = append(out, &dto.MetricFamily{
					Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit, Metric: kept,
				})
			}
		}
		return out, err
	})
}

func at(m *dto.Metric, l geo.Location) bool {
	for _, p := range m.GetLabel() {
		if p.GetName() == labelLocation {
			return p.GetValue() == string(l)
		}
	}
	return false
}
