package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"antipode/geo"
)

// Abandoned counts the payload of uploads that failed after it was stored: chunks that no row names.
type Abandoned struct{ bytes *prometheus.CounterVec }

// NewAbandoned registers antipode_abandoned_payload_bytes_total.
func NewAbandoned(reg prometheus.Registerer) (*Abandoned, error) {
	a := &Abandoned{bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: nameAbandoned,
		Help: "Payload bytes put for uploads that failed afterwards, of one copy.",
	}, []string{labelLocation})}
	return a, register(reg, a.bytes)
}

// Add counts bytes. Zero creates the series.
func (a *Abandoned) Add(l geo.Location, bytes int64) {
	if a != nil {
		a.bytes.WithLabelValues(string(l)).Add(float64(bytes))
	}
}
