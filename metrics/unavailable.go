package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// UnavailableSample is a service of an account without a Last Sync Time.
type UnavailableSample struct {
	Location geo.Location
	Account  geo.Account
	Service  geo.Service
	// Reason is one of a few words: see stats.Reason.
	Reason string
}

// unavailable reads them at scrape time.
type unavailable struct {
	src  Source
	desc *prometheus.Desc
}

func newUnavailable(src Source) *unavailable {
	return &unavailable{src, prometheus.NewDesc(nameUnavailable,
		"1 while the replication of an account's service is unavailable for this reason; absent otherwise.",
		[]string{labelLocation, labelAccount, labelService, labelReason}, nil)}
}

// Describe implements prometheus.Collector.
func (u *unavailable) Describe(ch chan<- *prometheus.Desc) { ch <- u.desc }

// Collect implements prometheus.Collector.
func (u *unavailable) Collect(ch chan<- prometheus.Metric) {
	for _, s := range u.src.Unavailable() {
		ch <- prometheus.MustNewConstMetric(u.desc, prometheus.GaugeValue, 1, string(s.Location), string(s.Account), s.Service.String(), s.Reason)
	}
}
