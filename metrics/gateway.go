package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Gateway counts the requests of a gateway.
type Gateway struct {
	requests, bytes, errors, forwards *prometheus.CounterVec
	seconds                           *prometheus.HistogramVec
}

// Directions of bytes.
const (
	directionIn  = "in"
	directionOut = "out"
)

// NewGateway registers antipode_gateway_*. The forwards to each location begin at zero, for each
// outcome.
func NewGateway(reg prometheus.Registerer, locations []geo.Location, outcomes []string) (*Gateway, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	g := &Gateway{
		requests: counter(nameGatewayRequests, "Requests the gateway answered, by HTTP status.", labelService, labelStatus),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: nameGatewaySeconds, Help: "Time from a request's header to the end of its answer at the gateway.", Buckets: secondsBuckets(),
		}, []string{labelService}),
		bytes:    counter(nameGatewayBytes, "Bytes of bodies that came in from clients of the gateway, and that went out to them.", labelService, labelDirection),
		errors:   counter(nameGatewayErrors, "Requests the gateway answered with an error that no location sent, by code.", labelService, labelCode),
		forwards: counter(nameGatewayForwards, "Attempts to forward a request to a location, by outcome.", labelTo, labelOutcome),
	}
	for _, l := range locations {
		for _, outcome := range outcomes {
			g.forwards.WithLabelValues(string(l), outcome)
		}
	}
	return g, register(reg, g.requests, g.seconds, g.bytes, g.errors, g.forwards)
}

// Answered counts an answered request, and the bytes of both bodies.
func (g *Gateway) Answered(s geo.Service, status int, took time.Duration, in, out int64) {
	if g == nil {
		return
	}
	g.requests.WithLabelValues(s.String(), strconv.Itoa(status)).Inc()
	g.seconds.WithLabelValues(s.String()).Observe(took.Seconds())
	g.bytes.WithLabelValues(s.String(), directionIn).Add(float64(in))
	g.bytes.WithLabelValues(s.String(), directionOut).Add(float64(out))
}

// Failed counts a request that the gateway answered itself, with a code of the protocol.
func (g *Gateway) Failed(s geo.Service, code string) {
	if g != nil {
		g.errors.WithLabelValues(s.String(), code).Inc()
	}
}

// Forwarded counts an attempt to forward a request. Both arguments come from fixed sets, never
// from a client: each new value is a new series.
func (g *Gateway) Forwarded(to geo.Location, outcome string) {
	if g != nil {
		g.forwards.WithLabelValues(string(to), outcome).Inc()
	}
}
