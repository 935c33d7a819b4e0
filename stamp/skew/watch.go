package skew

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Watch finds the episodes in which its clock keeps a node from evaluating. Off may be called
// concurrently with Step.
type Watch struct {
	off      atomic.Bool
	since    time.Duration // of the bad clock, in running time; 0 while it is not bad
	reported bool
}

// reportAfter is how long a clock is bad before an episode begins: one that was set is unsure until it
// has been compared.
const reportAfter = time.Second / 2

// Step takes whether the clock is bad now, and returns whether an episode begins or ends with it.
func (w *Watch) Step(bad bool, ran time.Duration) (begins, ends bool) {
	w.off.Store(bad)
	switch {
	case !bad:
		ends = w.reported
		w.since, w.reported = 0, false
	case w.since == 0:
		w.since = ran
	case !w.reported && ran-w.since >= reportAfter:
		begins, w.reported = true, true
	}
	return begins, ends
}

// Off reports whether the clock is bad, as of the last step.
func (w *Watch) Off() bool { return w.off.Load() }

// Collectors returns the metrics of a node's clock.
func Collectors(t *Table, w *Watch) []prometheus.Collector {
	return []prometheus.Collector{
		offsets{t},
		Flag("antipode_clock_beyond_limit", "1 while the node does not evaluate because its wall clock is too far from those of a quorum.", w.Off),
	}
}

// Flag returns a gauge that is 1 while f is true.
func Flag(name, help string, f func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		if f() {
			return 1
		}
		return 0
	})
}

// offsets collects the offsets of a node's wall clock from those of its peers.
type offsets struct{ t *Table }

func (offsets) desc() *prometheus.Desc {
	return prometheus.NewDesc("antipode_clock_offset_seconds",
		"How far the wall clock of the node is ahead of that of a peer of its stamp, as last measured.", []string{"peer"}, nil)
}

// Describe implements prometheus.Collector.
func (c offsets) Describe(out chan<- *prometheus.Desc) { out <- c.desc() }

// Collect implements prometheus.Collector.
func (c offsets) Collect(out chan<- prometheus.Metric) {
	for _, o := range c.t.Offsets() {
		out <- prometheus.MustNewConstMetric(c.desc(), prometheus.GaugeValue, o.Ahead.Seconds(), strconv.Itoa(int(o.Node)))
	}
}
