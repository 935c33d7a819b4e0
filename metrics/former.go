package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// former are the names that metrics had in the version before, for queries that operators wrote. They go with the next version.
func former() map[string]string {
	return map[string]string{
		"antipode_sync_timestamp_seconds":      "antipode_sync_time_seconds",
		"antipode_last_sync_timestamp_seconds": "antipode_last_sync_time_seconds",
		"antipode_clock_beyond_limit":          "antipode_clock_off",
		"antipode_dns_save_failures_total":     "antipode_dns_unsaved_total",
		"antipode_witness_save_failures_total": "antipode_witness_unsaved_total",
	}
}

// WithFormer returns a Gatherer of the series of g that also has those of renamed metrics under their former names.
func WithFormer(g prometheus.Gatherer) prometheus.Gatherer {
	names := former()
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := g.Gather()
		out := slices.Clone(all)
		for _, f := range all {
			if name, renamed := names[f.GetName()]; renamed {
				out = append(out, &dto.MetricFamily{
					Name: &name, Help: new("Former name of " + f.GetName() + "."), Type: f.Type, Unit: f.Unit, Metric: f.Metric,
				})
			}
		}
		slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
		return out, err
	})
}
