package metrics

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// A metric that was renamed is scraped under both names, with the same series, and no other one is.
func TestFormerNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	clock := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "antipode_clock_beyond_limit", Help: "h"}, []string{"node"})
	clock.WithLabelValues("3").Set(1)
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "antipode_other", Help: "h"})
	reg.MustRegister(clock, other)
	all, err := WithFormer(reg).Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range all {
		names = append(names, f.GetName())
	}
	require.Equal(t, []string{"antipode_clock_beyond_limit", "antipode_clock_off", "antipode_other"}, names)
	require.Equal(t, all[0].GetMetric(), all[1].GetMetric())
}
