package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Source is where the gauges are read from at each scrape. Its methods may be called concurrently
// and answer from memory, because a scrape waits for them.
type Source interface {
	// Ranges has one entry for each range that has a leader now.
	Ranges() []RangeSample
	// SyncTimes has one entry for each (receiving location, account, range): the
	// least sync time of the account's streams of that range, the catalog's
	// included.
	SyncTimes() []SyncSample
	// LastSyncTimes has one entry for each (receiving location, account, service),
	// the same value as in Get Service Stats.
	LastSyncTimes() []SyncSample
	// Unavailable has one entry for each (receiving location, account, service) whose replication is
	// unavailable.
	Unavailable() []UnavailableSample
	// Replicas has one entry for each voter of a range that has a leader now.
	Replicas() []ReplicaSample
	// Copies has one entry for each bootstrap that goes on.
	Copies() []CopySample
	// Budgets has one entry for each node that runs.
	Budgets() []BudgetSample
}

// RangeSample is a range as its leader knows it.
type RangeSample struct {
	Location       geo.Location
	Service        geo.Service
	InSyncReplicas int
	// The backlog is what the other location has not acknowledged. It is also zero if no
	// account of the range is geo-redundant.
	BacklogRecords, BacklogBytes int64
	// BacklogPayload is the length of the chunks that it names.
	BacklogPayload int64
	// FellOut is how many accounts fell out of the outbox's budget.
	FellOut int
	// Uncompared counts ranges that were recovered with loss and whose gates are not compared yet.
	Uncompared int
	// BacklogAge is the age of the oldest record, zero without a record.
	BacklogAge time.Duration
}

// SyncSample is a sync time of an account's service at its secondary.
type SyncSample struct {
	Location geo.Location
	Account  geo.Account
	Service  geo.Service
	// Time is zero when unknown.
	Time geo.Timestamp
}

// gauges reads a Source at scrape time.
type gauges struct {
	src                                     Source
	inSync, uncompared, records, bytes, age *prometheus.Desc
	syncTime, lastSyncTime                  *prometheus.Desc
}

// RegisterGauges registers the gauges, read from src at each scrape.
func RegisterGauges(reg prometheus.Registerer, src Source) error {
	return register(reg, newGauges(src), newReplicas(src), newUnavailable(src), newOutboxes(src), newCopies(src))
}

func newGauges(src Source) *gauges {
	perRange := []string{labelLocation, labelService}
	return &gauges{
		src: src,
		inSync: prometheus.NewDesc(nameInSync,
			"Replicas in sync; the least over the service's ranges that have a leader.", perRange, nil),
		uncompared: prometheus.NewDesc(nameUncompared,
			"Ranges that were recovered with loss and take no changes before their gates are compared with the catalog.", perRange, nil),
		records: prometheus.NewDesc(nameBacklogRecords,
			"Changes the other location has not acknowledged.", perRange, nil),
		bytes: prometheus.NewDesc(nameBacklogBytes,
			"Bytes of the changes the other location has not acknowledged.", perRange, nil),
		age: prometheus.NewDesc(nameBacklogAge,
			"Age of the oldest change the other location has not acknowledged; zero when there is none.", perRange, nil),
		syncTime: prometheus.NewDesc(nameSyncTime,
			"Least sync time of the account's streams in the service's ranges, Unix seconds rounded down; absent when unknown.",
			[]string{labelLocation, labelService, labelAccount}, nil),
		lastSyncTime: prometheus.NewDesc(nameLastSyncTime,
			"Last Sync Time: every change committed at or before it is readable here. Unix seconds rounded down; absent when unknown.",
			[]string{labelLocation, labelAccount, labelService}, nil),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.inSync, g.uncompared, g.records, g.bytes, g.age, g.syncTime, g.lastSyncTime} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	for _, s := range foldRanges(g.src.Ranges()) {
		put := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, string(s.Location), s.Service.String())
		}
		put(g.inSync, float64(s.InSyncReplicas))
		put(g.uncompared, float64(s.Uncompared))
		put(g.records, float64(s.BacklogRecords))
		put(g.bytes, float64(s.BacklogBytes))
		put(g.age, s.BacklogAge.Seconds())
	}
	for _, s := range foldSync(g.src.SyncTimes()) {
		ch <- prometheus.MustNewConstMetric(g.syncTime, prometheus.GaugeValue,
			unixSeconds(s.Time), string(s.Location), s.Service.String(), string(s.Account))
	}
	for _, s := range foldSync(g.src.LastSyncTimes()) {
		ch <- prometheus.MustNewConstMetric(g.lastSyncTime, prometheus.GaugeValue,
			unixSeconds(s.Time), string(s.Location), string(s.Account), s.Service.String())
	}
}

// foldRanges merges the samples of all ranges of a service in a location: the least in-sync count,
// the greatest age, the sum of the backlogs.
func foldRanges(in []RangeSample) []RangeSample {
	type key struct {
		l geo.Location
		s geo.Service
	}
	var out []RangeSample
	at := map[key]int{}
	for _, s := range in {
		k := key{s.Location, s.Service}
		i, ok := at[k]
		if !ok {
			at[k] = len(out)
			out = append(out, s)
			continue
		}
		o := &out[i]
		o.InSyncReplicas = min(o.InSyncReplicas, s.InSyncReplicas)
		o.BacklogRecords += s.BacklogRecords
		o.BacklogBytes += s.BacklogBytes
		o.BacklogPayload += s.BacklogPayload
		o.FellOut += s.FellOut
		o.Uncompared += s.Uncompared
		o.BacklogAge = max(o.BacklogAge, s.BacklogAge)
	}
	return out
}

// foldSync merges the samples of one location, account and service into their least time. If any
// of them is unknown, it leaves the service out.
func foldSync(in []SyncSample) []SyncSample {
	least := map[SyncSample]geo.Timestamp{}
	for _, s := range in {
		k := s
		k.Time = 0
		if t, ok := least[k]; ok {
			s.Time = min(t, s.Time) // Unknown is zero, so it wins.
		}
		least[k] = s.Time
	}
	out := make([]SyncSample, 0, len(least))
	for k, t := range least {
		if t != 0 {
			k.Time = t
			out = append(out, k)
		}
	}
	return out
}

// unixSeconds rounds down to milliseconds: a float64 cannot hold 100 ns ticks, and a time rounded
// up would promise changes that are not there.
func unixSeconds(t geo.Timestamp) float64 {
	return float64(t/(geo.TicksPerSecond/1000)) / 1000
}
