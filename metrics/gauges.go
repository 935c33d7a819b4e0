package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Source is where the gauges are read from at each scrape. Its methods may be called concurrently
// and answer from memory, because a scrape waits for them; Accounts may wait a moment for the catalog.
type Source interface {
	// Ranges has one entry for each range that has a leader now, in this process.
	Ranges() []RangeSample
	// Replicas has one entry for each voter of such a range.
	Replicas() []ReplicaSample
	// Leaders has one entry for each range of the locations.
	Leaders() []LeaderSample
	// Stops has one entry for each stream that may not go on, of the ranges of Ranges.
	Stops() []StopSample
	// Nodes has one entry for each node that runs.
	Nodes() []NodeSample
	// OutOfService has one entry for each node that is out of service.
	OutOfService() []DownSample
	// Locations has one entry for each location.
	Locations() []LocationSample
	// Accounts has what is known of accounts.
	Accounts() AccountSamples
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

// gauges reads the ranges of a Source at scrape time.
type gauges struct {
	src                                                       Source
	inSync, uncompared, records, bytes, payload, fellOut, age *prometheus.Desc
}

// RegisterGauges registers the gauges, read from src at each scrape. accountsShown is how many accounts are shown by
// their names; zero means AccountsDefault.
func RegisterGauges(reg prometheus.Registerer, src Source, accountsShown int) error {
	return register(reg, newGauges(src), newReplicas(src), newPlaces(src), newAccounts(src, accountsShown))
}

func newGauges(src Source) *gauges {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{labelLocation, labelService}, nil)
	}
	return &gauges{
		src:    src,
		inSync: desc(nameInSync, "Replicas in sync; the least over the service's ranges that have a leader."),
		uncompared: desc(nameUncompared,
			"Ranges that were recovered with loss and take no changes before their gates are compared with the catalog."),
		records: desc(nameBacklogRecords, "Changes the other location has not acknowledged."),
		bytes:   desc(nameBacklogBytes, "Bytes of the changes the other location has not acknowledged."),
		payload: desc(nameBacklogPayload, "Bytes of the payload that the changes name which the other location has not acknowledged."),
		fellOut: desc(nameFellOut, "Accounts whose secondary fell out of the outbox's budget and has to be rebuilt."),
		age:     desc(nameBacklogAge, "Age of the oldest change the other location has not acknowledged; zero when there is none."),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.inSync, g.uncompared, g.records, g.bytes, g.payload, g.fellOut, g.age} {
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
		put(g.payload, float64(s.BacklogPayload))
		put(g.fellOut, float64(s.FellOut))
		put(g.age, s.BacklogAge.Seconds())
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

// number is the label of a range or a node.
func number[N ~uint64 | ~uint32 | ~uint16 | ~uint8](n N) string {
	return strconv.FormatUint(uint64(n), 10)
}

// one is 1 for true.
func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
