package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// secondsBuckets range from 250 us, below one fdatasync, to 16 s, above the time limit of a request.
func secondsBuckets() []float64 { return prometheus.ExponentialBuckets(0.00025, 2, 17) }

// Requests counts the answers of the front ends.
type Requests struct {
	total, errors *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
}

// NewRequests registers antipode_requests_total, antipode_request_errors_total and antipode_request_seconds.
func NewRequests(reg prometheus.Registerer) (*Requests, error) {
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: nameRequests,
			Help: "Requests answered by the location's front end, by HTTP status.",
		}, []string{labelLocation, labelService, labelOperation, labelStatus}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: nameRequestErrors,
			Help: "Requests that the location's front end answered with an error, by the protocol's code.",
		}, []string{labelLocation, labelService, labelStatus, labelCode}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    nameRequestSeconds,
			Help:    "Time from a request's header to the end of its answer.",
			Buckets: secondsBuckets(),
		}, []string{labelLocation, labelService, labelOperation}),
	}
	return r, register(reg, r.total, r.errors, r.seconds)
}

// Observe counts one answer; code is that of its error, empty without one. A forwarded request is counted once, where it
// was served. Operation and code come from fixed sets, never from a client: each new value is a new series.
func (r *Requests) Observe(l geo.Location, s geo.Service, operation string, status int, code string, took time.Duration) {
	if r == nil {
		return
	}
	r.total.WithLabelValues(string(l), s.String(), operation, strconv.Itoa(status)).Inc()
	if code != "" {
		r.errors.WithLabelValues(string(l), s.String(), strconv.Itoa(status), code).Inc()
	}
	r.seconds.WithLabelValues(string(l), s.String(), operation).Observe(took.Seconds())
}

// Commits measures the commits of the primary role.
type Commits struct{ seconds *prometheus.HistogramVec }

// NewCommits registers antipode_commit_seconds.
func NewCommits(reg prometheus.Registerer) (*Commits, error) {
	c := &Commits{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    nameCommitSeconds,
		Help:    "Time from a write's proposal until every in-sync replica held it.",
		Buckets: secondsBuckets(),
	}, []string{labelLocation, labelService})}
	return c, register(reg, c.seconds)
}

// Observe records one commit.
func (c *Commits) Observe(l geo.Location, s geo.Service, took time.Duration) {
	if c != nil {
		c.seconds.WithLabelValues(string(l), s.String()).Observe(took.Seconds())
	}
}
