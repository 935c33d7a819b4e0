package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Queues counts what a location does with queues by itself.
type Queues struct{ scalings, collected *prometheus.CounterVec }

// NewQueues registers antipode_queue_scalings_total and antipode_queue_collected_messages_total.
func NewQueues(reg prometheus.Registerer) (*Queues, error) {
	q := &Queues{
		scalings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: nameScaled,
			Help: "Subqueues that were added to a queue, drained or removed, by its load.",
		}, []string{labelLocation, labelHow}),
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: nameCollected,
			Help: "Messages that were deleted since they had expired, or since their queue was cleared.",
		}, []string{labelLocation, labelReason}),
	}
	return q, errors.Join(register(reg, q.scalings), register(reg, q.collected))
}

// AddScaled counts n subqueues that were added, drained or removed. Zero creates the series.
func (q *Queues) AddScaled(l geo.Location, how string, n uint64) {
	if q != nil {
		q.scalings.WithLabelValues(string(l), how).Add(float64(n))
	}
}

// AddCollected counts n messages. Zero creates the series.
func (q *Queues) AddCollected(l geo.Location, expired bool, n uint64) {
	if q == nil {
		return
	}
	why := "cleared"
	if expired {
		why = "expired"
	}
	q.collected.WithLabelValues(string(l), why).Add(float64(n))
}
