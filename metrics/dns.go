package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// DNS counts what a name server does. It implements the Observer of package failover/dns.
type DNS struct {
	answers, updates *prometheus.CounterVec
	unsaved          prometheus.Counter
}

// NewDNS registers antipode_dns_*, but those of RegisterDNS. The updates of each server begin at zero, for each
// outcome.
func NewDNS(reg prometheus.Registerer, servers, outcomes []string) (*DNS, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	d := &DNS{
		answers: counter(nameDNSAnswers, "Questions that the name server answered, by type and code.", labelTransport, labelType, labelCode),
		updates: counter(nameDNSUpdates, "Dynamic updates of another name server, by how they ended.", labelServer, labelOutcome),
		unsaved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: nameDNSUnsaved, Help: "Failures to write the file of names: what is answered is newer than the file.",
		}),
	}
	for _, s := range servers {
		for _, outcome := range outcomes {
			d.updates.WithLabelValues(s, outcome)
		}
	}
	return d, register(reg, d.answers, d.updates, d.unsaved)
}

// Answered counts an answer. All arguments come from fixed sets, never from a client: each new value is a new
// series.
func (d *DNS) Answered(transport, kind, code string) {
	if d != nil {
		d.answers.WithLabelValues(transport, kind, code).Inc()
	}
}

// Failed counts a failure to write the file of names.
func (d *DNS) Failed() {
	if d != nil {
		d.unsaved.Inc()
	}
}

// Pushed counts an update of a server.
func (d *DNS) Pushed(server, outcome string) {
	if d != nil {
		d.updates.WithLabelValues(server, outcome).Inc()
	}
}

// DNSSample is the state of a name server.
type DNSSample struct {
	// Accounts is the number of accounts that it answers for.
	Accounts int
	// Ages is how long ago each location has said where accounts are; one that has not is absent.
	Ages map[geo.Location]time.Duration
	// Waiting is the number of accounts whose records may be older at a server that takes updates.
	Waiting map[string]int
}

// RegisterDNS registers the gauges of a name server. sample is called at each scrape and answers from memory.
func RegisterDNS(reg prometheus.Registerer, sample func() DNSSample) error {
	return register(reg, &dnsGauges{
		sample:   sample,
		accounts: prometheus.NewDesc(nameDNSAccounts, "Accounts that the name server answers for.", nil, nil),
		age: prometheus.NewDesc(nameDNSAge, "Time since the location has said where accounts are; absent before the first time.",
			[]string{labelLocation}, nil),
		waiting: prometheus.NewDesc(nameDNSWaiting, "Accounts whose records may be older at the server that takes updates.", []string{labelServer}, nil),
	})
}

// dnsGauges reads the state at scrape time.
type dnsGauges struct {
	sample                 func() DNSSample
	accounts, age, waiting *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *dnsGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.accounts, c.age, c.waiting} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *dnsGauges) Collect(ch chan<- prometheus.Metric) {
	s := c.sample()
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	put(c.accounts, float64(s.Accounts))
	for l, age := range s.Ages {
		put(c.age, age.Seconds(), string(l))
	}
	for server, n := range s.Waiting {
		put(c.waiting, float64(n), server)
	}
}
