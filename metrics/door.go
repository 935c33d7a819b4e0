package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Door counts what a front door did; it is an api.DoorObserver.
type Door struct {
	requests, bytes, errors, forwards *prometheus.CounterVec
	seconds                           *prometheus.HistogramVec
}

// Directions of bytes.
const (
	directionIn  = "in"
	directionOut = "out"
)

// NewDoor registers antipode_door_*. The forwards to each location begin at zero, by each
// of the outcomes.
func NewDoor(reg prometheus.Registerer, locations []geo.Location, outcomes []string) (*Door, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	d := &Door{
		requests: counter(nameDoorRequests, "Requests the front door answered, by HTTP status.", labelService, labelStatus),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: nameDoorSeconds, Help: "Time from a request's header to the end of its answer at the front door.", Buckets: secondsBuckets(),
		}, []string{labelService}),
		bytes:    counter(nameDoorBytes, "Bytes of bodies that came in from clients of the front door, and that went out to them.", labelService, labelDirection),
		errors:   counter(nameDoorErrors, "Requests the front door answered with an error of its own, by code.", labelService, labelCode),
		forwards: counter(nameDoorForwards, "Attempts to hand a request to a location, by how they ended.", labelTo, labelOutcome),
	}
	for _, l := range locations {
		for _, outcome := range outcomes {
			d.forwards.WithLabelValues(string(l), outcome)
		}
	}
	return d, register(reg, d.requests, d.seconds, d.bytes, d.errors, d.forwards)
}

// Answered counts a request that was answered and the bytes of its body and of the answer's.
func (d *Door) Answered(s geo.Service, status int, took time.Duration, in, out int64) {
	if d == nil {
		return
	}
	d.requests.WithLabelValues(s.String(), strconv.Itoa(status)).Inc()
	d.seconds.WithLabelValues(s.String()).Observe(took.Seconds())
	d.bytes.WithLabelValues(s.String(), directionIn).Add(float64(in))
	d.bytes.WithLabelValues(s.String(), directionOut).Add(float64(out))
}

// Failed counts a request that the door answered itself. The code is one of the protocol's.
func (d *Door) Failed(s geo.Service, code string) {
	if d != nil {
		d.errors.WithLabelValues(s.String(), code).Inc()
	}
}

// Forwarded counts an attempt to hand a request to a location. Both are names out of the
// caller's own tables.
func (d *Door) Forwarded(to geo.Location, outcome string) {
	if d != nil {
		d.forwards.WithLabelValues(string(to), outcome).Inc()
	}
}
