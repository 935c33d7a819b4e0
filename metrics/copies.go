package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// CopySample is how far the bootstrap of an account's copy is, as its primary knows it. Bytes include payload. What is
// not known is nil.
type CopySample struct {
	Location geo.Location
	Account  geo.Account
	// Rows and Bytes are copied, of TotalRows and TotalBytes.
	Rows, Bytes           uint64
	TotalRows, TotalBytes *uint64
	// Waiting is what the secondary has not acknowledged of the account, in bytes.
	Waiting                     uint64
	BytesPerSecond, SecondsLeft *float64
}

// copies reads the bootstraps at scrape time.
type copies struct {
	src                                                         Source
	rows, bytes, allRows, allBytes, speed, secondsLeft, waiting *prometheus.Desc
}

func newCopies(src Source) *copies {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{labelLocation, labelAccount}, nil)
	}
	return &copies{
		src:         src,
		rows:        desc(nameCopyRows, "Rows that the bootstrap of the account has copied; absent without one."),
		bytes:       desc(nameCopyBytes, "Bytes that the bootstrap of the account has copied, payload included; absent without one."),
		allRows:     desc(nameCopyAllRows, "Rows that were counted before the bootstrap; absent until they are."),
		allBytes:    desc(nameCopyAllBytes, "Bytes that were counted before the bootstrap, payload included; absent until they are."),
		speed:       desc(nameCopySpeed, "Bytes that the bootstrap copied per second, payload included, over the last 30 s; absent when unknown."),
		secondsLeft: desc(nameCopyLeft, "Estimate of what time the bootstrap needs for the rest at this speed; absent when unknown."),
		waiting:     desc(nameCopyWaiting, "Bytes of changes and payload of an account in bootstrap that the other location has not acknowledged."),
	}
}

// Describe implements prometheus.Collector.
func (c *copies) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.rows, c.bytes, c.allRows, c.allBytes, c.speed, c.secondsLeft, c.waiting} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *copies) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.src.Copies() {
		put := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, string(s.Location), string(s.Account))
		}
		put(c.rows, float64(s.Rows))
		put(c.bytes, float64(s.Bytes))
		put(c.waiting, float64(s.Waiting))
		if s.TotalRows != nil && s.TotalBytes != nil {
			put(c.allRows, float64(*s.TotalRows))
			put(c.allBytes, float64(*s.TotalBytes))
		}
		if s.BytesPerSecond != nil {
			put(c.speed, *s.BytesPerSecond)
		}
		if s.SecondsLeft != nil {
			put(c.secondsLeft, *s.SecondsLeft)
		}
	}
}
