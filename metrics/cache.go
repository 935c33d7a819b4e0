package metrics

import "github.com/prometheus/client_golang/prometheus"

// RegisterCache registers antipode_state_cache_bytes. bytes is called at each scrape and answers from memory.
func RegisterCache(reg prometheus.Registerer, bytes func() int64) error {
	return register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: nameCache,
		Help: "Bytes of blocks in the process's cache of the state store.",
	}, func() float64 { return float64(bytes()) }))
}
