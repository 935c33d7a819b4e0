package admin

import (
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"antipode/metrics"
)

// scrapeTimeout bounds the answer to a scrape of Metrics.
const scrapeTimeout = 2 * time.Second

// Metrics serves the metrics of a process that has no admin port, and whether it lives. There is nothing else to read or
// to do, so that it is not closed to any host: the process's configuration says where it listens.
func Metrics(reg prometheus.Gatherer) http.Handler {
	m := http.NewServeMux()
	m.Handle("GET /metrics", promhttp.HandlerFor(metrics.WithFormer(reg), promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax, Timeout: scrapeTimeout,
	}))
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return m
}
