package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Held counts writes of accounts that slow or refuse them while changes are late.
type Held struct{ writes *prometheus.CounterVec }

// NewHeld registers antipode_held_writes_total.
func NewHeld(reg prometheus.Registerer) (*Held, error) {
	h := &Held{writes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: nameHeld,
		Help: "Writes that were refused or slowed because changes of the account have not reached its secondary in time.",
	}, []string{labelLocation, labelHow})}
	return h, register(reg, h.writes)
}

// Add counts n writes. Zero creates the series.
func (h *Held) Add(l geo.Location, refused bool, n uint64) {
	if h == nil {
		return
	}
	how := "slowed"
	if refused {
		how = "refused"
	}
	h.writes.WithLabelValues(string(l), how).Add(float64(n))
}
