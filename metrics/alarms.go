package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Alarms counts stream alarms for both the scrape and the status document, so that the two agree.
type Alarms struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	counts map[geo.Location]map[string]uint64    // Guarded by mu.
	raised map[geo.Location]map[string]time.Time // When the last one was. Guarded by mu.
}

// NewAlarms registers antipode_stream_alarms_total.
func NewAlarms(reg prometheus.Registerer) (*Alarms, error) {
	a := &Alarms{
		desc: prometheus.NewDesc(nameAlarms,
			"Stream alarms the location raised since the process began, by reason.",
			[]string{labelLocation, labelReason}, nil),
		counts: map[geo.Location]map[string]uint64{}, raised: map[geo.Location]map[string]time.Time{},
	}
	return a, register(reg, alarmCollector{a})
}

// Add counts n alarms raised by a location. Zero creates the series, so that the first alarm shows
// as an increase; call it for every known reason at start. Reasons come from a fixed set.
func (a *Alarms) Add(l geo.Location, reason string, n uint64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts[l] == nil {
		a.counts[l] = map[string]uint64{}
	}
	a.counts[l][reason] += n
}

// Raise counts an alarm that a location raises at a time.
func (a *Alarms) Raise(l geo.Location, reason string, at time.Time) {
	a.Add(l, reason, 1)
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.raised[l] == nil {
		a.raised[l] = map[string]time.Time{}
	}
	a.raised[l][reason] = at
}

// Raised returns when a location raised its last alarm for each reason; the caller owns the map.
func (a *Alarms) Raised(l geo.Location) map[string]time.Time {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.raised[l])
}

// Counts returns a location's alarms by reason; the caller owns the map.
func (a *Alarms) Counts(l geo.Location) map[string]uint64 {
	out := map[string]uint64{}
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		maps.Copy(out, a.counts[l])
	}
	return out
}

// alarmCollector keeps the collector's methods out of Alarms.
type alarmCollector struct{ a *Alarms }

func (c alarmCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.a.desc }

func (c alarmCollector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.metrics() {
		ch <- m
	}
}

// metrics builds the metrics first, so that the lock is not held while a scrape waits.
func (c alarmCollector) metrics() []prometheus.Metric {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	var out []prometheus.Metric
	for l, reasons := range c.a.counts {
		for reason, n := range reasons {
			out = append(out, prometheus.MustNewConstMetric(
				c.a.desc, prometheus.CounterValue, float64(n), string(l), reason))
		}
	}
	return out
}
