package transport

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what a transport reports to a registry of its peers, from Open to Close. A
// nil *metrics reports nothing.
type metrics struct {
	registerer prometheus.Registerer
	peers      peers
}

// peers reads the queues of all peers at the scrape. There are as many series as peers are
// configured.
type peers struct {
	links                                []*peerLink
	connected, queueBytes, sent, dropped *prometheus.Desc
}

// newMetrics registers the series of t's peers under the labels location, node and peer; nil
// where the options have no Registerer.
func newMetrics(t *Transport) (*metrics, error) {
	if t.o.Registerer == nil {
		return nil, nil //nolint:nilnil // No metrics is a state of its own.
	}
	self := prometheus.Labels{"location": string(t.o.Keyring.Self().Location), "node": strconv.FormatUint(uint64(t.o.Self), 10)}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"peer"}, self)
	}
	m := &metrics{t.o.Registerer, peers{
		connected:  desc("antipode_peer_connected", "1 while a stream of messages to the peer stands, else 0."),
		queueBytes: desc("antipode_peer_queue_bytes", "Bytes of the messages that wait to be sent to the peer."),
		sent:       desc("antipode_peer_sent_bytes_total", "About the bytes of the messages sent to the peer; some may be lost on the way."),
		dropped:    desc("antipode_peer_dropped_messages_total", "Messages to the peer that were dropped unsent: it was away, or its queue full."),
	}}
	for _, p := range t.peers {
		m.peers.links = append(m.peers.links, p)
	}
	if err := m.registerer.Register(m.peers); err != nil {
		return nil, errors.Join(errors.New("register the metrics of the transport"), err)
	}
	return m, nil
}

// unregister takes the metrics back, so that a transport can be opened again beside the same
// registry.
func (m *metrics) unregister() {
	if m != nil {
		m.registerer.Unregister(m.peers)
	}
}

// Describe implements prometheus.Collector.
func (p peers) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.connected, p.queueBytes, p.sent, p.dropped} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p peers) Collect(ch chan<- prometheus.Metric) {
	for _, l := range p.links {
		s, peer := l.queue.stats(), strconv.FormatUint(uint64(l.id), 10)
		connected := 0.0
		if s.Connected {
			connected = 1
		}
		ch <- prometheus.MustNewConstMetric(p.connected, prometheus.GaugeValue, connected, peer)
		ch <- prometheus.MustNewConstMetric(p.queueBytes, prometheus.GaugeValue, float64(s.QueuedBytes), peer)
		ch <- prometheus.MustNewConstMetric(p.sent, prometheus.CounterValue, float64(s.SentBytes), peer)
		ch <- prometheus.MustNewConstMetric(p.dropped, prometheus.CounterValue, float64(s.Dropped), peer)
	}
}
