package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// BudgetSample is the budget of a node's outboxes, in bytes.
type BudgetSample struct {
	Location geo.Location
	Node     geo.NodeID
	Bytes    int64
}

// outboxes reads what the outboxes hold and may hold, at scrape time. For the bytes of changes see gauges.
type outboxes struct {
	src                      Source
	payload, fellOut, budget *prometheus.Desc
}

func newOutboxes(src Source) *outboxes {
	perRange := []string{labelLocation, labelService}
	return &outboxes{
		src: src,
		payload: prometheus.NewDesc(nameBacklogPayload,
			"Bytes of the payload that the changes name which the other location has not acknowledged.", perRange, nil),
		fellOut: prometheus.NewDesc(nameFellOut,
			"Accounts whose secondary fell out of the outbox's budget and has to be rebuilt.", perRange, nil),
		budget: prometheus.NewDesc(nameBudget,
			"Bytes of changes and payload that the outboxes of a node may hold.", []string{labelLocation, labelNode}, nil),
	}
}

// Describe implements prometheus.Collector.
func (o *outboxes) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{o.payload, o.fellOut, o.budget} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (o *outboxes) Collect(ch chan<- prometheus.Metric) {
	for _, s := range foldRanges(o.src.Ranges()) {
		ch <- prometheus.MustNewConstMetric(o.payload, prometheus.GaugeValue, float64(s.BacklogPayload), string(s.Location), s.Service.String())
		ch <- prometheus.MustNewConstMetric(o.fellOut, prometheus.GaugeValue, float64(s.FellOut), string(s.Location), s.Service.String())
	}
	for _, s := range o.src.Budgets() {
		ch <- prometheus.MustNewConstMetric(o.budget, prometheus.GaugeValue, float64(s.Bytes), string(s.Location), strconv.FormatUint(uint64(s.Node), 10))
	}
}
