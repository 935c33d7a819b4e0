package scrub

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// register makes and registers the metrics.
func (s *Scrubber) register() error {
	if s.o.Registerer == nil {
		return nil
	}
	c := &s.counts
	for store, v := range map[string]*atomic.Uint64{"extents": &c.scrubbedExtents, "state": &c.scrubbedState, "log": &c.scrubbedLog} {
		s.count("antipode_scrub_bytes_total", "Bytes that the scrub read and checked.", v, prometheus.Labels{"store": store})
	}
	s.count("antipode_scrub_chunks_total", "Payload chunks that the scrub read and checked.", &c.scrubbedChunks, nil)
	s.count("antipode_scrub_rounds_total", "Rounds of the scrub over everything on the disk.", &c.scrubRounds, nil)
	s.count("antipode_repaired_chunks_total", "Damaged or missing payload chunks copied from another node.", &c.repaired, nil)
	s.count("antipode_missing_chunks_total", "Payload chunks that were named here and not held.", &c.missing, nil)
	s.count("antipode_collected_chunks_total", "Payload chunks dropped because nothing named them.", &c.collectedChunks, nil)
	s.count("antipode_collected_bytes_total", "Bytes of the payload chunks dropped because nothing named them.", &c.collectedBytes, nil)
	s.count("antipode_compacted_bytes_total", "Bytes of payload chunks copied out of extents that hold mostly garbage.", &c.compactedBytes, nil)
	s.count("antipode_outbox_accounted_records_total", "Records of the outbox that were looked at.", &c.accountedRecords, nil)
	s.metrics = append(s.metrics,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "antipode_corrupt_chunks_total", Help: "Payload chunks whose copy here was found damaged.",
		}, func() float64 { return float64(s.o.Chunks.Stats().Corrupted) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "antipode_damaged_chunks", Help: "Payload chunks whose copy here is damaged and not repaired yet.",
		}, func() float64 { return float64(s.o.Chunks.Stats().Damaged) }),
		gauge("antipode_outbox_missing_records", "Records that were numbered, not trimmed, and are not in the outbox here.", &c.missingRecords),
		gauge("antipode_outbox_extra_records", "Records in the outbox here that are trimmed, or above the head of their stream.", &c.extraRecords),
	)
	s.metrics = append(s.metrics, cycles{c})
	for i, c := range s.metrics {
		if err := s.o.Registerer.Register(c); err != nil {
			s.metrics = s.metrics[:i]
			s.Close()
			return errors.Join(errors.New("register the metrics of the scrub"), err)
		}
	}
	return nil
}

func (s *Scrubber) count(name, help string, v *atomic.Uint64, labels prometheus.Labels) {
	s.metrics = append(s.metrics, prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(v.Load()) }))
}

func gauge(name, help string, v *atomic.Uint64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(v.Load()) })
}

// read returns how many bytes the scrub has read.
func (c *counts) read() uint64 {
	return c.scrubbedExtents.Load() + c.scrubbedState.Load() + c.scrubbedLog.Load()
}

// cycles collects how far the scrub is, and when it last read everything.
type cycles struct{ c *counts }

func (cycles) descs() (size, done, ended *prometheus.Desc) {
	return prometheus.NewDesc("antipode_scrub_round_bytes", "Bytes that the present round of the scrub began with, or the last one if none is under way.", nil, nil),
		prometheus.NewDesc("antipode_scrub_round_read_bytes", "Bytes that the round has read; files that came and went make it differ from all at its end.", nil, nil),
		prometheus.NewDesc("antipode_scrub_last_round_timestamp_seconds", "When the scrub last had read everything, Unix seconds; absent before the first time since the node's start.", nil, nil)
}

// Describe implements prometheus.Collector.
func (c cycles) Describe(out chan<- *prometheus.Desc) {
	size, done, ended := c.descs()
	out <- size
	out <- done
	out <- ended
}

// Collect implements prometheus.Collector.
func (c cycles) Collect(out chan<- prometheus.Metric) {
	size, done, ended := c.descs()
	out <- prometheus.MustNewConstMetric(size, prometheus.GaugeValue, float64(c.c.cycleBytes.Load()))
	out <- prometheus.MustNewConstMetric(done, prometheus.GaugeValue, float64(c.c.read()-c.c.readBefore.Load()))
	if at := c.c.cycleEnded.Load(); at != 0 {
		out <- prometheus.MustNewConstMetric(ended, prometheus.GaugeValue, float64(at)/1000)
	}
}
